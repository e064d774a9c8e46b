"""JSON exactly as the protocols allow it: UTF-8, no NaN or Infinity, no lone surrogates, bounded nesting.

msgspec refuses most of that by itself. What it lets through is invalid UTF-8 inside `Raw`, and nesting up to Python's own
recursion limit.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import numpy as np

from seamark import limits
from seamark.errors import BadRequest

T = TypeVar("T")

_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"\\')
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one level down, one up
_QUOTE = ord('"')


def decode(body: bytes, decoder: msgspec.json.Decoder[T], *, name: str = "the body") -> T:
    """`body` as the decoder's type. Raises BadRequest with a message fit for the client, who knows the text as `name`."""
    try:
        if not body.isascii():
            _check_utf8(body)
        if _too_deep(body):
            raise BadRequest(f"{name} nests deeper than {limits.JSON_DEPTH_MAX} levels")
        return decoder.decode(body)
    except UnicodeDecodeError as error:
        raise BadRequest(f"{name} is not UTF-8: invalid byte at {error.start}") from None
    except msgspec.ValidationError as error:
        raise BadRequest(f"{name}: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        if not body.strip():
            raise BadRequest(f"{name} is empty") from None
        raise BadRequest(f"{name} is not JSON: {error}") from None


def _check_utf8(body: bytes) -> None:
    """The same error as from `body.decode()`, without the text, which may be four times as large."""
    if len(body) <= limits.JSON_SLICE_BYTES:
        body.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(body), limits.JSON_SLICE_BYTES):
        begun = len(decoder.getstate()[0])  # of a character that the slice before cut in two
        end = at + limits.JSON_SLICE_BYTES
        try:
            decoder.decode(body[at:end], final=end >= len(body))
        except UnicodeDecodeError as error:
            place = at - begun + error.start
            raise UnicodeDecodeError("utf-8", body, place, place + 1, error.reason) from None


def _too_deep(body: bytes) -> bool:
    """The cheap questions first, because every request asks them: whether there are brackets enough at all."""
    enough = 2 * limits.JSON_DEPTH_MAX
    if len(body) <= enough:
        return False
    structure = body.translate(None, _NOT_STRUCTURE)
    return len(structure) > enough and _deepest(_brackets(structure, body)) > limits.JSON_DEPTH_MAX


def depth(text: bytes) -> int:
    """How deep brackets nest outside strings. Right for well-formed JSON; for anything else some number."""
    return _deepest(_brackets(text.translate(None, _NOT_STRUCTURE), text))


def opened(text: bytes, level: int) -> int:
    """How many brackets open at a level (the outermost is 1): how many items a list there has, before any is decoded."""
    count = height = 0
    for steps in _slices(_brackets(text.translate(None, _NOT_STRUCTURE), text).translate(_STEPS), np.int8):
        levels = steps.cumsum(dtype=np.int32) + height
        count += int(np.count_nonzero((levels == level) & (steps > 0)))
        height = int(levels[-1])
    return count


def _brackets(structure: bytes, text: bytes) -> bytes:
    """Those outside strings."""
    if b"\\" in structure:
        structure = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NOT_MARKS)
    if _quoted_brackets(structure):
        return _outside_strings(structure)
    return structure.translate(None, b'"')


def _quoted_brackets(structure: bytes) -> bool:
    """Whether any string holds a bracket: without escapes, quotes then do not come in adjacent pairs."""
    return b'"' in structure.replace(b'""', b"")


def _outside_strings(structure: bytes) -> bytes:
    """The brackets that an even number of quotes comes before."""
    parts: list[bytes] = []
    odd = np.uint8(0)
    for marks in _slices(structure, np.uint8):
        quotes = marks == _QUOTE
        seen = quotes.cumsum(dtype=np.uint8) + odd  # a sum of bytes overflows, which changes nothing about odd and even
        odd = seen[-1]
        parts.append(marks[(seen % 2 == 0) & ~quotes].tobytes())
    return b"".join(parts)


def _deepest(brackets: bytes) -> int:
    """One pass whatever the shape: a hostile text must not cost more than its length."""
    level = deepest = 0
    for steps in _slices(brackets.translate(_STEPS), np.int8):
        levels = steps.cumsum(dtype=np.int32)
        deepest = max(deepest, level + int(levels.max()))
        level += int(levels[-1])
    return deepest


def _slices(data: bytes, kind: type[np.generic]) -> Iterator[Any]:
    """A slice at a time, so that a big text needs little memory beside itself."""
    whole = np.frombuffer(data, dtype=kind)
    for at in range(0, len(whole), limits.JSON_SLICE_BYTES):
        yield whole[at : at + limits.JSON_SLICE_BYTES]
