"""From the bytes of a file to its TOML, or to why they are none."""

from __future__ import annotations

import re
import tomllib
from typing import Any, NamedTuple

from seamark import limits
from seamark.manifest.diagnostic import Diagnostic, diagnostic

SCHEMA_VERSION = "schema_version"

_BOM = b"\xef\xbb\xbf"
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
_WEIGHTS = {b"{": 240, b"[": 400, b"=": 120, b",": 60, b".": 240}  # bytes of memory, measured
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
# A key of n parts costs the parser memory for n * n, so it must not get to see a long one.
_DEEP_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}\.[ \t]*+){{{limits.TOML_KEY_PARTS_MAX}}}", re.MULTILINE)


class Document(NamedTuple):
    """`table` is None where there is no TOML, and `version` where none is well-formed; `found` says why."""

    table: dict[str, Any] | None
    version: str | None
    found: Diagnostic | None


def weight_of(content: bytes) -> int:
    """About how many bytes of memory a file takes when it is read, and hardly ever more: tables take fifty times what they
    take in the file. Known before it is read."""
    return 2 * len(content) + sum(content.count(mark) * each for mark, each in _WEIGHTS.items())


def read_document(path: str, content: bytes) -> Document:
    """Strict: UTF-8 without a byte order mark, TOML 1.0, and a well-formed schema version at the top."""
    if len(content) > limits.MANIFEST_FILE_BYTES_MAX:
        much = f"{len(content):,} bytes are more than the {limits.MANIFEST_FILE_BYTES_MAX:,} that a file may have"
        return Document(None, None, diagnostic("E910", path, much))
    if content.startswith(_BOM):
        return _unread(path, "the file starts with a byte order mark")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return _unread(path, f"the file is not UTF-8 (at byte {error.start})")
    if text.count(".") >= limits.TOML_KEY_PARTS_MAX and _DEEP_KEY.search(text):
        return _unread(path, f"a key has more than {limits.TOML_KEY_PARTS_MAX} parts")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        return _unread(path, "arrays or tables are nested too deep")
    except ValueError as error:  # also of a number with more digits than Python will read
        return _unread(path, f"the file is not TOML: {error}")
    version = table.get(SCHEMA_VERSION)
    if not isinstance(version, str):
        return Document(
            table, None, diagnostic("E001", path, f"`{SCHEMA_VERSION}` has to be a string at the top of the file")
        )
    if _VERSION.fullmatch(version) is None:
        return Document(
            table, None, diagnostic("E001", path, f'`{SCHEMA_VERSION}` has to be like "0.1"', SCHEMA_VERSION)
        )
    return Document(table, version, None)


def _unread(path: str, why: str) -> Document:
    return Document(None, None, diagnostic("E001", path, why))
