"""GET over HTTP/1.1: one request on one connection, straight or through a proxy, with TLS where the address says so. An answer is
read piece by piece, and whoever reads it says how long it may be silent. Redirects are not followed: no server of ours makes any."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import h11

from seamark.client.address import Address, Origin
from seamark.client.proxy import Proxy, proxy_for
from seamark.limits import CLIENT_ANSWER_HEAD_BYTES_MAX

_READ_BYTES = 64 * 1024
_NUMBER = re.compile(r"[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")
_EYEBALLS_SECONDS = 0.25  # before the next address of a name is tried beside the one before


class NoAnswer(Exception):
    """There was none, it broke off, or it is not HTTP. Nothing follows from it but to try again later."""


class Answer:
    """Read it to its end, or close it: it holds a connection."""

    __slots__ = ("_client", "_line", "headers", "status")

    def __init__(self, client: HttpClient, line: _Line, status: int, headers: Mapping[str, str]) -> None:
        self._client = client
        self._line = line
        self.status = status
        self.headers = headers

    async def pieces(self, silence_seconds: float) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises NoAnswer, also after silence."""
        while (piece := await self._line.piece(silence_seconds)) is not None:
            yield piece

    async def read(self, most: int, seconds: float) -> bytes:
        """The whole body. Raises NoAnswer, also when it is longer than `most` or takes longer than `seconds`."""
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                while (piece := await self._line.piece(seconds)) is not None:
                    body += piece
                    if len(body) > most:
                        raise NoAnswer(f"the answer is longer than {most} bytes")
        except TimeoutError:
            raise NoAnswer(f"the answer was not here after {seconds:g} s") from None
        return bytes(body)

    def close(self) -> None:
        self._client.forget(self._line)


class _Line:
    """One connection with one request on it."""

    __slots__ = ("_reader", "_wire", "writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=CLIENT_ANSWER_HEAD_BYTES_MAX)

    def send(self, request: h11.Request) -> None:
        self.writer.write((self._wire.send(request) or b"") + (self._wire.send(h11.EndOfMessage()) or b""))

    async def head(self) -> h11.Response:
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise NoAnswer("the server closed the connection without an answer")

    async def piece(self, seconds: float) -> bytes | None:
        try:
            async with asyncio.timeout(seconds):
                event = await self._event()
        except TimeoutError:
            raise NoAnswer(f"the server was silent for {seconds:g} s") from None
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def _event(self) -> object:
        try:
            while (event := self._wire.next_event()) is h11.NEED_DATA:
                self._wire.receive_data(await self._reader.read(_READ_BYTES))
        except h11.RemoteProtocolError as error:
            raise NoAnswer(f"the answer is not HTTP, or broke off: {error}") from None
        except OSError as error:
            raise NoAnswer(f"the connection broke: {error}") from None
        return event


class HttpClient:
    """Opens connections in the loop that runs. `tls` None: the certificates that the system trusts."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._tls = tls
        self._environ = environ
        self._open: set[_Line] = set()

    async def get(self, address: Address, headers: Mapping[str, str], *, seconds: float) -> Answer:
        """The head of an answer, within `seconds`. Raises NoAnswer."""
        line: _Line | None = None
        try:
            async with asyncio.timeout(seconds):
                proxy = proxy_for(address.origin) if self._environ is None else proxy_for(address.origin, self._environ)
                line = await self._connect(address.origin, proxy)
                line.send(_request(address, headers, proxy))
                await line.writer.drain()
                head = await line.head()
        except BaseException as error:
            if line is not None:
                self.forget(line)
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"{address.origin.authority} did not answer within {seconds:g} s") from None
            if isinstance(error, OSError | ValueError | h11.ProtocolError):
                raise NoAnswer(f"{address.origin.authority} cannot be asked: {error}") from None
            raise
        found = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in head.headers}
        return Answer(self, line, head.status_code, found)

    def forget(self, line: _Line) -> None:
        self._open.discard(line)
        line.writer.transport.abort()

    def descriptors(self) -> list[int]:
        """Of the connections that are open now: a child of a fork has to let go of them."""
        sockets = [line.writer.get_extra_info("socket") for line in tuple(self._open)]
        return [found.fileno() for found in sockets if found is not None]

    async def _connect(self, origin: Origin, proxy: Proxy | None) -> _Line:
        tls = self._trust() if origin.is_secure else None
        place = (origin.host, origin.port) if proxy is None else (proxy.host, proxy.port)
        reader, writer = await asyncio.open_connection(*place, ssl=None if proxy else tls, **_race(place[0]))
        line = _Line(reader, writer)
        self._open.add(line)
        try:
            if proxy is not None and tls is not None:
                await _tunnel(reader, writer, origin, proxy)
                await writer.start_tls(tls, server_hostname=origin.host)
        except BaseException:
            self.forget(line)
            raise
        return line

    def _trust(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _race(host: str) -> dict[str, Any]:
    """A name may have addresses that lead nowhere, so the next one is tried beside it, where the loop can do that. A number has
    nothing to race, and a race that is cancelled may leave a socket to the garbage collector."""
    loop = asyncio.get_running_loop()
    is_raced = isinstance(loop, asyncio.BaseEventLoop) and not _NUMBER.fullmatch(host)
    return {"happy_eyeballs_delay": _EYEBALLS_SECONDS} if is_raced else {}


def _request(address: Address, headers: Mapping[str, str], proxy: Proxy | None) -> h11.Request:
    plain = proxy is not None and not address.origin.is_secure
    fields = {"Host": address.origin.authority, "Accept-Encoding": "identity", "Connection": "close", **headers}
    if plain and proxy is not None and proxy.authorization is not None:
        fields["Proxy-Authorization"] = proxy.authorization
    return h11.Request(method="GET", target=address.url if plain else address.target, headers=list(fields.items()))


async def _tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, origin: Origin, proxy: Proxy) -> None:
    """Ask the proxy for a way through. It says nothing after its head until the server is spoken to."""
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=CLIENT_ANSWER_HEAD_BYTES_MAX)
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    target = f"{host}:{origin.port}"
    fields = {"Host": target} | ({} if proxy.authorization is None else {"Proxy-Authorization": proxy.authorization})
    writer.write(wire.send(h11.Request(method="CONNECT", target=target, headers=list(fields.items()))) or b"")
    line_end: object = h11.NEED_DATA
    while line_end is h11.NEED_DATA:
        wire.receive_data(await reader.read(_READ_BYTES))
        line_end = wire.next_event()
    status = line_end.status_code if isinstance(line_end, h11.Response) else 0
    if not 200 <= status < 300:
        raise NoAnswer(f"the proxy does not let us through to {target}: {status}")
