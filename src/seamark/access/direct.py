"""Asking auth-o-tron who somebody is: what a caller shows is passed on as it is, and what comes back is a token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import msgspec

from seamark import limits
from seamark.access.bearer import Presented
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
        self._timeout_seconds = timeout_seconds
        self._asking = 0
        # Neither proxies nor .netrc of the environment: what passes here are people's passwords.
        self._http = httpx.AsyncClient(
            timeout=None,
            limits=httpx.Limits(
                max_connections=limits.AUTH_CONNECTIONS_MAX, max_keepalive_connections=limits.AUTH_CONNECTIONS_MAX
            ),
            trust_env=False,
            headers={"Accept-Encoding": "identity"},
        )

    async def user(self, shown: Presented) -> User:
        """Raises Unauthenticated, Forbidden, Unreachable or Busy."""
        if self._asking >= limits.AUTH_ASKING_MAX:
            most = limits.AUTH_ASKING_MAX
            raise Busy("too many callers wait for the authentication service", limit="auth_asking", max=most)
        self._asking += 1
        try:
            async with asyncio.timeout(self._timeout_seconds):
                status, headers, body = await self._ask(shown.header)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Unreachable(UNAVAILABLE, service="auth-o-tron", cause=type(error).__name__) from None
        finally:
            self._asking -= 1
        if status == 401:
            raise Unauthenticated(INVALID)
        if status == 403:
            raise Forbidden("The authentication service denies access")
        token = token_in(headers, body) if 200 <= status < 300 else None
        if token is None:
            raise Unreachable(UNAVAILABLE, service="auth-o-tron", status=status)
        return self._tokens.user(token)

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, header: bytes) -> tuple[int, Mapping[str, str], bytes]:
        async with self._http.stream("GET", self._url, headers=[(b"Authorization", header)]) as answer:
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > limits.AUTH_ANSWER_BYTES_MAX:
                    raise httpx.StreamError("the answer is too large")
            return answer.status_code, answer.headers, bytes(body)


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
