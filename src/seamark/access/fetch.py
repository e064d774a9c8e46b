"""Asking a service whose word counts here: one GET, with a bound on its time, its size, and on how many are under way."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple

import httpx

from seamark import limits

FAILURES = (TimeoutError, httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
"""Everything that `Fetcher.get` raises."""


class Fetched(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Fetcher:
    """Connections are kept. Redirects are answers like others: what we send must not travel on."""

    def __init__(
        self,
        *,
        timeout_seconds: float,
        bytes_max: int,
        connect_seconds: float | None = None,
        auth: httpx.Auth | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._bytes_max = bytes_max
        most = limits.AUTH_CONNECTIONS_MAX
        # What passes here are passwords: neither proxies nor .netrc of the environment. Who is trusted is for this machine to say.
        self._http = httpx.AsyncClient(
            auth=auth,
            timeout=httpx.Timeout(None, connect=connect_seconds),
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            trust_env=False,
            verify=ssl.create_default_context(),
            headers={"Accept-Encoding": "identity"},
        )

    async def get(
        self, url: str, *, header: tuple[bytes, bytes] | None = None, params: Mapping[str, str] | None = None
    ) -> Fetched:
        """Raises one of FAILURES."""
        headers = [] if header is None else [header]
        async with asyncio.timeout(self._timeout_seconds):
            try:
                return await self._get(url, headers, params)
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
                # A connection that was kept too long ends just when it is used again. Nothing is changed by asking twice.
                return await self._get(url, headers, params)

    async def close(self) -> None:
        await self._http.aclose()

    async def _get(self, url: str, headers: list[tuple[bytes, bytes]], params: Mapping[str, str] | None) -> Fetched:
        async with self._http.stream("GET", url, headers=headers, params=params) as answer:
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > self._bytes_max:
                    raise httpx.StreamError("the answer is too large")
            return Fetched(answer.status_code, answer.headers, bytes(body))
