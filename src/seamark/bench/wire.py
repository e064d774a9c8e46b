"""The bytes that the load client sends, and what it looks for in the bytes that come back."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator

import msgspec

PAYLOAD_BYTES = 300
STAMP_DIGITS = 19
INSTANCE = b"0123456789abcdef"  # as long as the real ones
_HEAD = b'{"t":"'
_MIDDLE = b'","pad":"'
_TAIL = b'"}'
_PAD = b"x" * (PAYLOAD_BYTES - len(_HEAD) - STAMP_DIGITS - len(_MIDDLE) - len(_TAIL))
_RECORD = re.compile(rb'"\$?seq":(\d+),"\$?ts(?:_ms)?":\d+,"data":\{"t":"(\d{19})"')
_MARKS = ((b"id: ", b"@"), (b'"seq":', b","), (b'"$seq":', b","), (b'"to_seq":', b","))  # as in drain.c
_LENGTH = b"content-length: "


class Answer(Exception):
    """A request of the benchmark's own set-up was refused."""


def payload(stamp: int = 0) -> bytes:
    """One record's data: JSON of a fixed length that carries the time it was sent."""
    return b"%b%019d%b%b%b" % (_HEAD, stamp, _MIDDLE, _PAD, _TAIL)


def append_body(count: int, stamp: int = 0) -> bytes:
    """A body for `POST /raw/{stream}`."""
    return b'{"records":[%b]}' % b",".join([b'{"data":%b}' % payload(stamp)] * count)


def request(method: str, path: str, body: bytes = b"", *, token: str = "", media: str = "application/json") -> bytes:
    """A whole HTTP/1.1 request, as a client library would send it."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAccept: */*\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def event(seq: int, ts_ms: int, data: bytes) -> bytes:
    """What a watch says for one record; the bare server writes the same bytes as the real one."""
    return b'id: %d@%b\nevent: record\ndata: {"seq":%d,"ts_ms":%d,"data":%b}\n\n' % (seq, INSTANCE, seq, ts_ms, data)


def events(text: bytes) -> Iterator[tuple[int, int]]:
    """Seq and stamp of each record in whole events: those of the raw surface hold one, those of a topics watch many."""
    for found in _RECORD.finditer(text):
        yield int(found[1]), int(found[2])


def last_seq(buffer: bytearray, count: int) -> int | None:
    """The newest seq in the first `count` bytes of a read, without looking at the rest of it.

    Seqs are dense, so the newest says how many came. Each event names its seq twice, so whatever the end of a read
    cuts, this read or the next one shows it whole.
    """
    for mark, stop_mark in _MARKS:
        end = count
        while (at := buffer.rfind(mark, 0, end)) >= 0:
            at += len(mark)
            stop = buffer.find(stop_mark, at, count)
            if buffer[at:stop].isdigit() and stop > 0:
                return int(buffer[at:stop])
            end = at - 1
    return None


def answer_bytes(buffer: bytearray, count: int) -> int | None:
    """Length of the whole HTTP answer that starts the buffer, None while its head is not complete."""
    head = buffer.find(b"\r\n\r\n", 0, count)
    if head < 0:
        return None
    lower = bytes(buffer[: head + 2]).lower()
    at = lower.find(_LENGTH)
    if at < 0:
        return head + 4
    return head + 4 + int(lower[at + len(_LENGTH) : lower.index(b"\r\n", at)])


class Unchunker:
    """Takes chunked coding off a body, whatever way the reads cut it."""

    __slots__ = ("_left", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0  # bytes of the current chunk still to come, its closing line end included

    def feed(self, data: bytes) -> bytes:
        """The body bytes that `data` completes."""
        data = self._rest + data
        out = []
        at = 0
        while at < len(data):
            if self._left == 0:
                end = data.find(b"\r\n", at)
                if end < 0:
                    break
                self._left = int(data[at:end], 16) + 2
                at = end + 2
            part = data[at : at + self._left]
            out.append(part[: max(self._left - 2, 0)])
            self._left -= len(part)
            at += len(part)
        self._rest = data[at:]
        return b"".join(out)


def ask(host: str, port: int, method: str, path: str, body: object = None, *, token: str = "") -> dict[str, object]:
    """One request of the set-up, outside any measurement."""
    text = fetch(host, port, method, path, None if body is None else msgspec.json.encode(body), token=token)
    found: dict[str, object] = msgspec.json.decode(text) if text else {}
    return found


def fetch(host: str, port: int, method: str, path: str, body: bytes | None = None, *, token: str = "") -> bytes:
    """The body of one answer, which must be a good one."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise Answer(f"{method} {path}: {answer.status} {text[:300].decode(errors='replace')}")
    return text
