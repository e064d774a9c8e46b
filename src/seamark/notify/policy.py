"""How long the notifications of an event type are kept (`storage_policy`), and who may read and write them (`auth`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from seamark import limits
from seamark.log.settings import StreamSettings
from seamark.notify.configtree import Node, refuse

_SPAN = re.compile(r"([0-9]{1,15})([smhdw])", re.IGNORECASE)
_SIZE = re.compile(r"([0-9]{1,15})([KMGT])(i?)")
_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_POWER = {"K": 1, "M": 2, "G": 3, "T": 4}
POLICY_KEYS = ("retention_time", "max_messages", "max_size", "allow_duplicates", "compression")
PLUGINS = frozenset({"ecpds"})  # that ship with Seamark; others may be installed
Roles = Mapping[str, tuple[str, ...]]


class StoragePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What was said; None is what was not. Compression is accepted, and left to the store."""

    ttl_ms: int | None = None
    cap_records: int | None = None
    cap_bytes: int | None = None
    allow_duplicates: bool | None = None

    def settings(self, default: StreamSettings) -> StreamSettings:
        """The settings of a stream: the policy's where it says something, else those of the engine."""
        changes: dict[str, int] = {}
        for name in ("ttl_ms", "cap_records", "cap_bytes"):
            value = getattr(self, name)
            if value is not None:
                changes[name] = value
        if self.allow_duplicates is not None:
            changes["latest_per_subject"] = 0 if self.allow_duplicates else 1
        return msgspec.structs.replace(default, **changes)


class StreamAuth(msgspec.Struct, frozen=True, kw_only=True):
    """Who may read and write: roles by realm, None where nobody was named. `*` is every role of a realm."""

    required: bool = False
    read_roles: Roles | None = None
    write_roles: Roles | None = None
    plugins: tuple[str, ...] = ()


def read_policy(node: Node, *, supported: bool) -> StoragePolicy:
    """`supported` False: an engine that cannot keep to any policy. Raises BadConfig."""
    known = [key for key in POLICY_KEYS if key in node]
    if known and not supported:
        refuse(node.at(known[0]), "it is not supported by backend 'in_memory'", "no storage_policy, or another backend")
    if "compression" in node:
        node.flag("compression")
    return StoragePolicy(
        ttl_ms=_span(node, "retention_time") if "retention_time" in node else None,
        cap_records=node.count("max_messages", least=1, most=limits.SEQ_MAX) if "max_messages" in node else None,
        cap_bytes=_size(node, "max_size") if "max_size" in node else None,
        allow_duplicates=node.flag("allow_duplicates") if "allow_duplicates" in node else None,
    )


def read_auth(node: Node, *, enabled: bool, plugins: Collection[str] = PLUGINS) -> StreamAuth:
    """`enabled`: whether there is any auth at all; `plugins`: those that there are. Raises BadConfig."""
    node.only({"required", "read_roles", "write_roles", "plugins"})
    auth = StreamAuth(
        required=node.flag("required"),
        read_roles=read_roles(node.node("read_roles")) if "read_roles" in node else None,
        write_roles=read_roles(node.node("write_roles")) if "write_roles" in node else None,
        plugins=_plugins(node, plugins) if "plugins" in node else (),
    )
    for key, said in (("read_roles", auth.read_roles), ("write_roles", auth.write_roles), ("plugins", auth.plugins)):
        if said and not auth.required:
            refuse(node.at(key), "it needs auth.required: true", "auth.required: true, or no such key")
    if auth.required and not enabled:
        refuse(node.at("required"), "auth is globally disabled", "auth.enabled: true, or no auth of event types")
    return auth


def read_roles(node: Node) -> dict[str, tuple[str, ...]]:
    """Realm -> roles, none of them empty, blank or padded. Raises BadConfig."""
    realms = list(node)
    if not realms:
        refuse(node.path, "it is empty", "at least one realm, or no such key")
    roles = {realm: node.texts(realm) for realm in realms}
    for realm, names in roles.items():
        if not names:
            refuse(node.at(realm), "it has no roles", "at least one role")
        for word in (realm, *names):
            if not word or word != word.strip():
                refuse(node.at(realm), f"{word!r} is blank or padded", "names without space around them")
    return roles


def _plugins(node: Node, known: Collection[str]) -> tuple[str, ...]:
    plugins = node.texts("plugins")
    if not plugins or not set(known).issuperset(plugins):
        refuse(node.at("plugins"), "it is empty or names something unknown", ", ".join(sorted(known)))
    return plugins


def _span(node: Node, key: str) -> int:
    text = node.text(key)
    found = _SPAN.fullmatch(text)
    ms = int(found[1]) * _MS[found[2].lower()] if found else 0
    if not 0 < ms <= limits.SPAN_MS_MAX:
        refuse(node.at(key), f"{text!r} is not valid", "a positive number with a unit: 30s, 5m, 12h, 7d, 2w")
    return ms


def _size(node: Node, key: str) -> int:
    text = node.text(key)
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * (1024 if found[3] else 1000) ** _POWER[found[2]] if found else 0
    if not 0 < size <= limits.SEQ_MAX:
        refuse(node.at(key), f"{text!r} is not valid", "a positive number with a unit: K, Ki, M, Mi, G, Gi, T, Ti")
    return size
