"""Addresses: where a server is, and whether another address is the same server's."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_TARGET = re.compile(r"[!-~]*")


class Origin(NamedTuple):
    """What a secret may be told to: one that is equal, and nobody else."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """As it stands in a request line and a Host header: a port that goes without saying is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Address(NamedTuple):
    origin: Origin
    target: str  # path and query, as they were written

    @property
    def url(self) -> str:
        return f"{self.origin.scheme}://{self.origin.authority}{self.target}"


def read_address(url: str) -> Address:
    """Raises ValueError. A name or password in an address is refused: they would end up in logs."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address holds no name and no password")
    host = parts.hostname.encode("idna").decode() if ":" not in parts.hostname else parts.hostname
    origin = Origin(parts.scheme, host, parts.port or _PORTS[parts.scheme])
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not _TARGET.fullmatch(target):
        raise ValueError("an address has only plain letters")
    return Address(origin, target)
