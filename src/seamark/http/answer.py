"""The first lines of an answer, as bytes. Pure: what goes on the wire before a body."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

from seamark.clock import NS_PER_SECOND, Clock
from seamark.wire.exchange import Headers

BODILESS = frozenset({204, 304})
CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_starts: dict[tuple[int, bytes], bytes] = {}
_STARTS_MAX = 1_024  # status and media come from code, not from clients; this only guards against a mistake


class HttpDate:
    """The Date header's value, made once a second."""

    __slots__ = ("_clock", "_second", "_text")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._text = b""

    def __call__(self) -> bytes:
        second = self._clock.now_ns() // NS_PER_SECOND
        if second != self._second:
            self._second = second
            self._text = formatdate(second, usegmt=True).encode()
        return self._text


def status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Status"
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def header_lines(headers: Headers) -> bytes:
    """Extra header lines. A value that could split the answer is a programming error."""
    lines = []
    for name, value in headers:
        if b"\n" in value or b"\r" in value or b"\n" in name or b"\r" in name:
            raise ValueError(f"header {name!r} holds a line break")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def unconnected(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers without what they say of the connection."""
    return [(name, value) for name, value in headers if name.lower() != b"connection"]


def whole(
    status: int, body: bytes, *, media: bytes, marks: bytes, extra: bytes = b"", head_only: bool = False
) -> bytes:
    """A complete answer. `marks` are the lines every answer carries, `extra` those of this one."""
    start = _starts.get((status, media)) or _start(status, media)
    if status in BODILESS:
        return b"%b%b%b\r\n" % (start, marks, extra)
    if head_only:
        return b"%bContent-Length: %d\r\n%b%b\r\n" % (start, len(body), marks, extra)
    return b"%bContent-Length: %d\r\n%b%b\r\n%b" % (start, len(body), marks, extra, body)


def stream_head(status: int, *, chunked: bool, marks: bytes, extra: bytes) -> bytes:
    """What comes before an endless body: chunked, or for HTTP/1.0 ended by the end of the connection."""
    framing = b"Transfer-Encoding: chunked\r\n" if chunked else CLOSE
    return b"%b%b%b%b\r\n" % (status_line(status), marks, framing, extra)


def _start(status: int, media: bytes) -> bytes:
    start = status_line(status)
    if media and status not in BODILESS:
        start += header_lines([(b"Content-Type", media)])
    if len(_starts) < _STARTS_MAX:
        _starts[(status, media)] = start
    return start
