"""Server-sent events without I/O: a writer, and a parser by the WHATWG rules. The client SDK shares this file."""

from __future__ import annotations

import re
from typing import NamedTuple

from seamark.errors import SeamarkError
from seamark.limits import SSE_LINE_BYTES_MAX

_LINE_END = re.compile("\r\n|\r|\n")
_LINE_END_BYTES = re.compile(b"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_DIGITS = frozenset("0123456789")


class SseError(SeamarkError):
    """The other side does not speak server-sent events within our bounds. Fields: `max`."""

    code = "sse_line_too_long"
    status = 502


def event(
    data: str | bytes | None = None,
    *,
    event: str | None = None,
    id: str | None = None,
    retry: int | None = None,
    id_first: bool = True,
) -> bytes:
    """One block, LF only, with the blank line that ends it. Data with line ends becomes several `data` lines.

    Some contracts print `id` before `event` and some after; clients must not care, but string-matching ones do.
    """
    lines: list[bytes] = []
    if retry is not None:
        if retry < 0:
            raise ValueError("retry counts milliseconds and cannot be negative")
        lines.append(b"retry: %d" % retry)
    named = [(b"id: ", id), (b"event: ", event)]
    lines += [name + _single_line(value) for name, value in (named if id_first else named[::-1]) if value is not None]
    if data is not None:
        raw = data.encode() if isinstance(data, str) else data
        lines += [b"data: " + line for line in _LINE_END_BYTES.split(raw)]
    if not lines:
        raise ValueError("an event needs at least one field")
    return b"\n".join(lines) + b"\n\n"


def comment(text: str = "") -> bytes:
    """A comment block: the text directly after the colon, so `" hb"` gives `: hb`. Parsers drop it."""
    return b"".join(b":" + line.encode() + b"\n" for line in _LINE_END.split(text)) + b"\n"


def _single_line(value: str) -> bytes:
    """CR and LF would end the field early, and an id with NUL is ignored by every parser: all three are refused."""
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError("an event name or id holds no CR, LF or NUL")
    return value.encode()


class Event(NamedTuple):
    """What a block meant. `id` is the last event id in force, which persists from block to block."""

    data: str
    event: str = "message"
    id: str = ""


class Comment(NamedTuple):
    """Text after the colon of a comment line, without one leading space."""

    text: str


class Parser:
    """Bytes in, in pieces of any size; events out. `retry_ms` and `last_event_id` hold what the stream last said.

    Lines are cut before decoding, so no piece of a UTF-8 character is ever at stake and U+2028 is plain text.
    """

    __slots__ = (
        "_at_start",
        "_comments",
        "_data",
        "_data_chars",
        "_event",
        "_id",
        "_line_bytes_max",
        "_partial",
        "_skip_lf",
        "last_event_id",
        "retry_ms",
    )

    def __init__(
        self, *, last_event_id: str = "", comments: bool = False, line_bytes_max: int = SSE_LINE_BYTES_MAX
    ) -> None:
        self.last_event_id = last_event_id
        self.retry_ms: int | None = None
        self._id = last_event_id
        self._event = ""
        self._data: list[str] = []
        self._data_chars = 0
        self._comments = comments
        self._line_bytes_max = line_bytes_max
        self._partial = bytearray()  # a line whose end has not come
        self._skip_lf = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Event | Comment]:
        """The events that `chunk` completed, in order. Comments are among them only when asked for."""
        if not chunk:
            return []
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._skip_lf and chunk:  # the other half of a CRLF that was cut in two
            self._skip_lf = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if not chunk:
            return []
        self._skip_lf = chunk[-1] == 0x0D
        lines = _cut(chunk)
        rest = lines.pop()
        out: list[Event | Comment] = []
        for line in lines:
            self._line(self._whole(line), out)
        self._keep(rest)
        return out

    def _without_bom(self, chunk: bytes) -> bytes:
        """One byte order mark may open the stream; until it is decided the first bytes are held back."""
        start = bytes(self._partial) + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._partial += chunk
            return b""
        self._partial.clear()
        self._at_start = False
        return start.removeprefix(_BOM)

    def _whole(self, line: bytes) -> str:
        if self._partial:
            line = bytes(self._partial) + line
            self._partial.clear()
        if len(line) > self._line_bytes_max:
            raise self._too_long()
        return line.decode("utf-8", "replace")

    def _keep(self, rest: bytes) -> None:
        self._partial += rest
        if len(self._partial) > self._line_bytes_max:
            raise self._too_long()

    def _too_long(self) -> SseError:
        return SseError("a line or an event of the stream is too long", max=self._line_bytes_max)

    def _line(self, line: str, out: list[Event | Comment]) -> None:
        if not line:
            self._dispatch(out)
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data_chars += len(value) + 1  # with its line end: empty lines take room too
            if self._data_chars > self._line_bytes_max:
                raise self._too_long()
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id":
            if "\0" not in value:
                self._id = value
        elif field == "retry":
            # `str.isdigit` would also take superscripts and other scripts' digits
            if value and _DIGITS.issuperset(value):
                self.retry_ms = int(value.lstrip("0")[:15] or "0")
        elif not field and self._comments:
            out.append(Comment(value))

    def _dispatch(self, out: list[Event | Comment]) -> None:
        self.last_event_id = self._id
        data, self._data, self._data_chars = self._data, [], 0
        name, self._event = self._event, ""
        if data:
            out.append(Event("\n".join(data), name or "message", self._id))


def _cut(chunk: bytes) -> list[bytes]:
    """Split at CRLF, LF and CR; the last piece is what follows the last line end."""
    if b"\r" in chunk:
        return _LINE_END_BYTES.split(chunk)
    return chunk.split(b"\n")
