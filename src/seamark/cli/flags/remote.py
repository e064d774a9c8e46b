"""A server of flags as verbs see it: where it is, what it is shown, and what its refusals mean for the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click
import httpx

from seamark import limits
from seamark.errors import BadInput, BadRequest, Conflict, Denied, Fault, LintFailed, Missing, SeamarkError, Unreachable
from seamark.kinds import is_loopback
from seamark.manifest.paths import is_slug

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_URL = "http://127.0.0.1:8000"
_KINDS: dict[int, type[SeamarkError]] = {
    401: Denied,
    403: Denied,
    404: Missing,
    409: Conflict,
    410: Missing,
    422: LintFailed,
}


class Place(NamedTuple):
    """A namespace, as `--namespace acme/billing` names it."""

    tenant: str
    namespace: str

    @property
    def path(self) -> str:
        return f"/tenants/{self.tenant}/namespaces/{self.namespace}"

    def __str__(self) -> str:
        return f"{self.tenant}/{self.namespace}"


def server_options(command: F) -> F:
    """`--url` and `--token-file`. There is no option for the token itself: command lines can be read by others."""
    command = click.option(
        "--token-file", metavar="FILE", help="A file with the token's secret. [the variable EXD_TOKEN holds it]"
    )(command)
    return click.option("--url", metavar="URL", help=f"The server. [EXD_URL, or {DEFAULT_URL}]")(command)


def namespace_option(command: F) -> F:
    return click.option(
        "--namespace", "place", metavar="TENANT/NAMESPACE", help="The namespace. [the variable EXD_NAMESPACE]"
    )(command)


def place_of(text: str | None) -> Place:
    """Raises BadInput."""
    given = text or os.environ.get("EXD_NAMESPACE", "")
    tenant, _, namespace = given.partition("/")
    if not is_slug(tenant) or not is_slug(namespace):
        raise BadInput(f"{given!r} names no namespace; accepted: --namespace TENANT/NAMESPACE, as in acme/billing")
    return Place(tenant, namespace)


class Remote:
    """One server and one token. A context manager."""

    def __init__(self, url: str | None, token_file: str | None) -> None:
        """Raises BadInput."""
        self._url = (url or os.environ.get("EXD_URL") or DEFAULT_URL).rstrip("/")
        if urlsplit(self._url).scheme not in {"http", "https"}:
            raise BadInput(f"{self._url!r} is no address of a server; accepted: http://host:port or https://host")
        headers = {"Authorization": f"Bearer {_secret(token_file)}"}
        self._http = httpx.Client(
            base_url=f"{self._url}/api/v1",
            headers=headers,
            timeout=limits.CLI_ANSWER_SECONDS,
            trust_env=not is_loopback(urlsplit(self._url).hostname or ""),  # no proxy leads to this machine
        )

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A good answer. Raises what stands for a bad one, or Unreachable."""
        try:
            answer = self._http.request(method, path, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"{self._url} cannot be reached: {error}", service="flags") from None
        if not answer.is_success:
            raise _refusal(answer)
        return answer

    def json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The same, read."""
        answer = self.ask(method, path, **more)
        try:
            facts = answer.json()
        except ValueError:
            raise Fault(f"{self._url} does not answer as a server of flags does") from None
        return facts if isinstance(facts, dict) else {}

    def rows(
        self, path: str, name: str, *, most: int | None = None, query: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[dict[str, Any]]:
        """Every row of a list, page by page, or the first `most`."""
        cursor: str | None = ""
        while cursor is not None and most != 0:
            size = min(limits.FLAGS_LISTED_MAX, most or limits.FLAGS_LISTED_MAX)
            page = self.json("GET", path, params={"limit": str(size), "cursor": cursor, **query})
            yield from page[name]
            cursor = page["next_cursor"]
            most = None if most is None else most - len(page[name])


def if_version(number: int | None) -> dict[str, str]:
    return {} if number is None else {"If-Version": str(number)}


def _secret(token_file: str | None) -> str:
    if token_file is not None:
        try:
            text = Path(token_file).read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            text = ""
        if not _is_secret(text):
            raise BadInput(f"{token_file} does not hold one secret of a token")
        return text
    secret = os.environ.get("EXD_TOKEN", "").strip()
    if not secret:
        raise BadInput(
            "a token is needed: put its secret into EXD_TOKEN, or name a file that holds it with --token-file"
        )
    if not _is_secret(secret):
        raise BadInput("EXD_TOKEN does not hold one secret of a token")
    return secret


def _is_secret(text: str) -> bool:
    """Whether it can stand in a header. What cannot is refused here, in words that do not repeat it."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _refusal(answer: httpx.Response) -> SeamarkError:
    kind = _KINDS.get(answer.status_code, BadRequest if answer.status_code < 500 else Fault)
    if answer.status_code == 429:
        kind = Fault
    try:
        error = answer.json()["error"]
        message, details = str(error["message"]), dict(error.get("details", {}))
    except (ValueError, KeyError, TypeError):
        message, details = f"the server answers {answer.status_code}", {}
    return kind(message, **details)
