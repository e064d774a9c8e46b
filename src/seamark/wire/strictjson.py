"""JSON exactly as the protocols allow it: UTF-8, no NaN or Infinity, no lone surrogates, bounded nesting.

msgspec refuses most of that by itself. What it lets through is invalid UTF-8 inside `Raw`, and nesting up to Python's own
recursion limit.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

from seamark import limits
from seamark.errors import BadRequest

T = TypeVar("T")

_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"\\')
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: one level down, one up


def decode(body: bytes, decoder: msgspec.json.Decoder[T], *, name: str = "the body") -> T:
    """`body` as the decoder's type. Raises BadRequest with a message fit for the client, who knows the text as `name`."""
    try:
        if not body.isascii():
            body.decode()
        if _too_deep(body):
            raise BadRequest(f"{name} nests deeper than {limits.JSON_DEPTH_MAX} levels")
        return decoder.decode(body)
    except UnicodeDecodeError as error:
        raise BadRequest(f"{name} is not UTF-8: invalid byte at {error.start}") from None
    except msgspec.ValidationError as error:
        raise BadRequest(f"{name}: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"{name} is not JSON: {error}") from None


def _too_deep(body: bytes) -> bool:
    """The cheap questions first, because every request asks them: whether there are brackets enough at all."""
    enough = 2 * limits.JSON_DEPTH_MAX
    if len(body) <= enough:
        return False
    structure = body.translate(None, _NOT_STRUCTURE)
    return len(structure) > enough and _depth(structure, body) > limits.JSON_DEPTH_MAX


def depth(text: bytes) -> int:
    """How deep brackets nest outside strings. Right for well-formed JSON; for anything else some number."""
    return _depth(text.translate(None, _NOT_STRUCTURE), text)


def _depth(structure: bytes, text: bytes) -> int:
    if b"\\" in structure or _quoted_brackets(structure):
        brackets = _outside_strings(text)
    else:
        brackets = structure.translate(None, b'"')
    if not brackets:
        return 0
    # One pass whatever the shape: a hostile text must not cost more than its length.
    steps = np.frombuffer(brackets.translate(_STEPS), dtype=np.int8)
    return int(steps.cumsum(dtype=np.int32).max())


def _quoted_brackets(structure: bytes) -> bool:
    """Whether any string holds a bracket: without escapes, quotes then do not come in adjacent pairs."""
    return b'"' in structure.replace(b'""', b"")


def _outside_strings(text: bytes) -> bytes:
    """The brackets outside strings, by walking over the quotes that are not escaped."""
    parts = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return b"".join(parts[::2]).translate(None, _NOT_BRACKETS)
