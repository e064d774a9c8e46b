"""Asking auth-o-tron who somebody is: what a caller shows is passed on as it is, and what comes back is a token."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seamark import limits
from seamark.access.bearer import Presented
from seamark.access.fetch import FAILURES, Fetcher
from seamark.access.jwt import INVALID, Tokens
from seamark.access.user import User
from seamark.errors import Busy, Forbidden, Unauthenticated, Unreachable

PATH = "/authenticate"
UNAVAILABLE = "The authentication service cannot be reached or does not answer as it should"
_FIELDS = ("token", "jwt", "access_token")
_ANY = msgspec.json.Decoder()


class AuthOTron:
    """Nothing that it says is kept: whoever is shut out there is shut out here with the next request."""

    def __init__(self, url: str, tokens: Tokens, *, timeout_seconds: float) -> None:
        self._url = url.rstrip("/") + PATH
        self._tokens = tokens
        self._asking = 0
        self._fetcher = Fetcher(timeout_seconds=timeout_seconds, bytes_max=limits.AUTH_ANSWER_BYTES_MAX)

    async def user(self, shown: Presented) -> User:
        """Raises Unauthenticated, Forbidden, Unreachable or Busy."""
        if self._asking >= limits.AUTH_ASKING_MAX:
            most = limits.AUTH_ASKING_MAX
            raise Busy("too many callers wait for the authentication service", limit="auth_asking", max=most)
        self._asking += 1
        try:
            answer = await self._fetcher.get(self._url, header=(b"Authorization", shown.header))
        except FAILURES as error:
            raise Unreachable(UNAVAILABLE, service="auth-o-tron", cause=type(error).__name__) from None
        finally:
            self._asking -= 1
        if answer.status == 401:
            raise Unauthenticated(INVALID)
        if answer.status == 403:
            raise Forbidden("The authentication service denies access")
        token = token_in(answer.headers, answer.body) if 200 <= answer.status < 300 else None
        if token is None:
            raise Unreachable(UNAVAILABLE, service="auth-o-tron", status=answer.status)
        return self._tokens.user(token)

    async def close(self) -> None:
        await self._fetcher.close()


def token_in(headers: Mapping[str, str], body: bytes) -> str | None:
    """The token of an answer: in its header, else in its body as a JSON object, a JSON string, or bare."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    try:
        text = body.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    try:
        document: object = _ANY.decode(text)
    except msgspec.DecodeError:
        document = text  # a token is no JSON
    if isinstance(document, dict):
        document = next((document[field] for field in _FIELDS if document.get(field)), None)
    return document.strip() or None if isinstance(document, str) else None
