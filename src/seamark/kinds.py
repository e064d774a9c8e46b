"""What a setting may be: each kind turns raw text, or a typed value from a file, into the value that code uses."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from seamark import limits


class Secret:
    """A text that does not appear in logs, tracebacks or listings by accident. Falsy when empty."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "********" if self._text else "(none)"


Value = str | int | float | bool | Path | Secret | None


class Kind(NamedTuple):
    """What a setting accepts. `parse` gets text from flags and the environment, typed values from files, and raises
    ValueError for everything else."""

    name: str
    accepts: str
    parse: Callable[[object], Value]


_SIZE_UNITS = {"": 1, "B": 1, "KIB": limits.KIB, "MIB": limits.MIB, "GIB": limits.GIB, "TIB": 1024 * limits.GIB}
_SIZE_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Untyped(str):
    """Text from a flag or the environment, where every value is text. Text from a file is a plain `str`, and there a
    quoted number is an ill-typed one."""

    __slots__ = ()


def _text(raw: object) -> str:
    if not isinstance(raw, str) or any(ord(letter) < 32 for letter in raw):
        raise ValueError
    return str(raw)


def _host(raw: object) -> str:
    text = _text(raw)
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+(%[A-Za-z0-9._-]+)?", text):
        raise ValueError
    return text


def _bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, Untyped):
        word = raw.strip().lower()
        if word in {"true", "1", "yes", "on"}:
            return True
        if word in {"false", "0", "no", "off"}:
            return False
    raise ValueError


def _port(raw: object) -> int:
    if isinstance(raw, Untyped) and re.fullmatch(r"[0-9]{1,5}", raw):
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= 65535:
        raise ValueError
    return raw


def _count(raw: object) -> int:
    if isinstance(raw, Untyped) and re.fullmatch(r"[0-9]{1,19}", raw.strip()):
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= limits.SEQ_MAX:
        raise ValueError
    return raw


def _some_count(raw: object) -> int:
    count = _count(raw)
    if count == 0:
        raise ValueError
    return count


def _open_port(raw: object) -> int:
    port = _port(raw)
    if port == 0:
        raise ValueError
    return port


def _log_level(raw: object) -> str:
    word = _text(raw).lower()
    if word not in {"trace", "debug", "info", "warn", "warning", "error"}:
        raise ValueError
    return word


def _size(raw: object) -> int:
    if isinstance(raw, str):
        found = re.fullmatch(r"([0-9]{1,19}) ?([A-Za-z]{0,3})", raw.strip())
        unit = _SIZE_UNITS.get(found[2].upper()) if found else None
        if found is None or unit is None:
            raise ValueError
        raw = int(found[1]) * unit
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= limits.SEQ_MAX:
        raise ValueError
    return raw


def _duration(raw: object) -> float:
    if isinstance(raw, str):
        found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([a-z]{0,3})", raw.strip())
        unit = _SECONDS.get(found[2]) if found else None
        if found is None or unit is None:
            raise ValueError
        raw = float(found[1]) * unit
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw) or raw < 0:
        raise ValueError
    return float(raw)


def _some_duration(raw: object) -> float:
    seconds = _duration(raw)
    if seconds == 0:
        raise ValueError
    return seconds


def _url(raw: object) -> str:
    text = _text(raw)
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment):
        raise ValueError
    return text.rstrip("/")


def _path(raw: object) -> Path:
    text = _text(raw)
    if not text:
        raise ValueError
    return Path(text)


def _optional_path(raw: object) -> Path | None:
    return None if raw == "" else _path(raw)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. A name other than `localhost` counts as public: it may resolve to
    anything tomorrow."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choice(*words: str) -> Kind:
    def parse(raw: object) -> str:
        if raw not in words:
            raise ValueError
        return str(raw)

    return Kind("choice", " or ".join(words), parse)


TEXT = Kind("text", "text", lambda raw: Secret(_text(raw)))
LINE = Kind("text", "text", _text)
HOST = Kind("host", "a host name or an IP address", _host)
PORT = Kind("port", "a port number from 0 to 65535", _port)
COUNT = Kind("count", "a whole number; 0 sets no bound", _count)
WHOLE = Kind("count", "a whole number", _count)
SOME_COUNT = Kind("count", "a whole number of 1 or more", _some_count)
OPEN_PORT = Kind("port", "a port number from 1 to 65535", _open_port)
LOG_LEVEL = Kind("level", "trace, debug, info, warn or error", _log_level)
BOOL = Kind("bool", "true or false (in the environment also 1, 0, yes, no, on, off)", _bool)
SIZE = Kind(
    "size", 'bytes as a whole number, or with a unit as in "64MiB" (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB)', _size
)
DURATION = Kind("duration", 'seconds, or with a unit as in "1.5s" (ms, s, m, h, d)', _duration)
SOME_DURATION = Kind("duration", 'more than 0 seconds, or with a unit as in "1.5s" (ms, s, m, h, d)', _some_duration)
URL = Kind("url", "an http:// or https:// address without query or fragment, or nothing", _url)
PATH = Kind("path", "a path", _path)
OPTIONAL_PATH = Kind("path", "a path, or nothing", _optional_path)
