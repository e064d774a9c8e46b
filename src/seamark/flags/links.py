"""Addresses of closures, signed for whoever they are told to."""

from __future__ import annotations

import re

from seamark.flags.rows import owner_of
from seamark.flags.signing import Claim, Signer
from seamark.manifest.subscription import FlagList
from seamark.wire.exchange import Exchange

_HOST = re.compile(rb"[A-Za-z0-9._-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?")


class Base:
    """Where clients find this server: what the setting says, else the address that a client itself has used."""

    __slots__ = ("_listening", "_public_url", "_scheme")

    def __init__(self, *, public_url: str, scheme: str, listening: str) -> None:
        self._public_url = public_url
        self._scheme = scheme
        self._listening = listening

    def of(self, exchange: Exchange) -> str:
        if self._public_url:
            return self._public_url
        host = exchange.header(b"host") or b""
        place = host.decode() if _HOST.fullmatch(host) else self._listening
        return f"{self._scheme}://{place}"


class Links:
    """Of one caller, below the address that it uses."""

    __slots__ = ("_base", "_principal", "_signer")

    def __init__(self, signer: Signer, *, base: str, principal: str) -> None:
        self._signer = signer
        self._base = base
        self._principal = principal

    def snapshot(self, stream: str, number: int, wanted: FlagList) -> str:
        """Where the closure of a version can be had, for a minute."""
        tenant, namespace = owner_of(stream)
        token = self._signer.sign(Claim(self._principal, tenant, namespace, number, wanted.canonical))
        place = f"{self._base}/api/v1/tenants/{tenant}/namespaces/{namespace}/closure"
        return f"{place}?version={number}&subscription={wanted.token}&token={token}"
