"""What the event stream says, read without trust: `version` in its two deliveries, and `resync`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from seamark.manifest.delta import FileChange

PROTOCOL = "v2"
STOP_REASON = "protocol_downgrade"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class BadEvent(ValueError):
    """The server says something that the protocol does not know. `fatal`: it speaks another one."""

    def __init__(self, message: str, *, namespace: str | None = None, version: int = 0, fatal: bool = False) -> None:
        super().__init__(message)
        self.namespace = namespace
        self.version = version  # 0: not even that was to be understood
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class Inline:
    """What turns one closure into the next."""

    namespace: str
    version: int
    before: str | None  # the closure hash that it is for
    after: str
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where the whole closure is. `hash` None: only its answer says, as after a resync. `url` None: the event said no place,
    and it has to be asked for by its version."""

    namespace: str
    version: int
    hash: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Resync:
    """What is held means nothing any more: the closure is at `snapshot`."""

    snapshot: Snapshot
    reason: str


Said = Inline | Snapshot | Resync


class _Version(msgspec.Struct):
    """Members that are unknown are passed over: the protocol may grow."""

    protocol: str
    namespace: str
    version: int
    closure_hash: str
    delivery: Literal["inline", "snapshot"]
    prev_closure_hash: str | None = None
    files: list[FileChange] | None = None
    snapshot_url: str | None = None


class _Resync(msgspec.Struct):
    protocol: str
    namespace: str
    current_version: int
    reason: str
    snapshot_url: str


class _Head(msgspec.Struct):
    """What is looked at first: whose event it is, and in which protocol."""

    protocol: str = ""
    namespace: str | None = None
    version: Any = 0


_head = msgspec.json.Decoder(_Head)
_version = msgspec.json.Decoder(_Version)
_resync = msgspec.json.Decoder(_Resync)


def read_event(event: str, data: str) -> Said | None:
    """What an event says; None for events of other names, which are not for us. Raises BadEvent."""
    if event not in {"version", "resync"}:
        return None
    raw = data.encode("utf-8", "surrogatepass")
    try:
        head = _head.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"an event is not what it should be: {error}") from None
    if head.protocol != PROTOCOL:
        raise BadEvent(f"the server speaks protocol {head.protocol[:20]!r}", namespace=head.namespace, fatal=True)
    try:
        return _read_version(_version.decode(raw)) if event == "version" else _read_resync(_resync.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        version = head.version if type(head.version) is int and head.version > 0 else 0
        raise BadEvent(
            f"an event is not what it should be: {error}", namespace=head.namespace, version=version
        ) from None


def _read_version(found: _Version) -> Said:
    for text in (found.closure_hash, found.prev_closure_hash):
        if text is not None and not _HASH.fullmatch(text):
            raise BadEvent("a closure hash is none", namespace=found.namespace, version=max(0, found.version))
    if found.version < 1:
        raise BadEvent("a version is less than 1", namespace=found.namespace)
    if found.delivery == "inline":
        if not found.files:
            raise BadEvent("an inline event brings no files", namespace=found.namespace, version=found.version)
        return Inline(found.namespace, found.version, found.prev_closure_hash, found.closure_hash, tuple(found.files))
    if found.snapshot_url is None:
        message = "a snapshot event does not say where the snapshot is"
        raise BadEvent(message, namespace=found.namespace, version=found.version)
    return Snapshot(found.namespace, found.version, found.closure_hash, found.snapshot_url)


def _read_resync(found: _Resync) -> Said:
    fatal = found.reason == STOP_REASON
    if fatal:
        raise BadEvent("the server cannot serve protocol v2 here", namespace=found.namespace, fatal=True)
    if found.current_version < 1:
        raise BadEvent("a version is less than 1", namespace=found.namespace)
    return Resync(Snapshot(found.namespace, found.current_version, None, found.snapshot_url), found.reason)
