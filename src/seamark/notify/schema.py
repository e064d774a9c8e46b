"""The `notification_schema` of the contract's file. Everything that a start must not survive is refused here, named by its
key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from seamark import limits
from seamark.notify.configtree import Node, refuse
from seamark.notify.eventtype import EventType, Schema
from seamark.notify.fields import Field
from seamark.notify.handlers import read_fields
from seamark.notify.places import POINT_CLOUD
from seamark.notify.policy import PLUGINS, POLICY_KEYS, read_auth, read_policy

ROOT = "notification_schema"
HISTORY_MAX = "max_historical_notifications"
_EVENT_KEYS = ("topic", "identifier", "payload", "storage_policy", "auth", "endpoint", HISTORY_MAX)
_TOPIC_KEYS = ("base", "key_order")


def read_schema(
    raw: object,
    *,
    strict: bool | None = None,
    policies: bool = True,
    auth_enabled: bool = False,
    plugins: Collection[str] = PLUGINS,
) -> Schema:
    """From the file's mapping, None when it has none. `policies`: whether the engine can keep to storage policies;
    `plugins`: those that `auth.plugins` may name. Raises BadConfig."""
    if raw is None:
        return Schema(None, strict=strict)
    root = Node(raw, ROOT)
    event_types = {
        name: _event_type(name, root.node(name), policies=policies, auth_enabled=auth_enabled, plugins=plugins)
        for name in root
    }
    owners: dict[str, str] = {}
    for event in event_types.values():
        owner = owners.setdefault(event.base.lower(), event.name)
        if owner != event.name:
            refuse(
                root.at(f"{event.name}.topic.base"), f"'{owner}' has the base '{event.base}' too", "a base of its own"
            )
    return Schema(event_types, strict=strict)


def ignored(raw: object) -> list[str]:
    """Keys of the file's mapping that nothing reads, in those blocks where the contract does not mind them."""
    return sorted(f"{ROOT}.{place}.{key}" for place, block, known in _lax(raw) for key in block if key not in known)


def _lax(raw: object) -> Iterator[tuple[str, Mapping[object, object], Collection[str]]]:
    """Those blocks: their place, what is in them, and what may be."""
    for name, event in _mapping(raw).items():
        yield f"{name}", _mapping(event), _EVENT_KEYS
        for block, known in (("topic", _TOPIC_KEYS), ("storage_policy", POLICY_KEYS)):
            yield f"{name}.{block}", _mapping(_mapping(event).get(block)), known


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else {}


def _event_type(name: str, node: Node, *, policies: bool, auth_enabled: bool, plugins: Collection[str]) -> EventType:
    fields = read_fields(node.node("identifier") if "identifier" in node else Node({}, node.at("identifier")))
    base, key_order = _topic(node.node("topic"), fields) if "topic" in node else (None, None)
    if base is None and "storage_policy" in node:
        refuse(node.at("storage_policy"), "there is no topic that it could be for", "a topic beside it")
    payload = None
    if "payload" in node:
        node.node("payload").only({"required"})
        payload = node.node("payload").flag("required")
    most = limits.SEQ_MAX
    return EventType(
        name,
        fields,
        base=base,
        key_order=key_order,
        payload_required=payload,
        policy=read_policy(node.node("storage_policy"), supported=policies) if "storage_policy" in node else None,
        auth=read_auth(node.node("auth"), enabled=auth_enabled, plugins=plugins) if "auth" in node else None,
        history_max=node.count(HISTORY_MAX, least=1, most=most) if HISTORY_MAX in node else None,
    )


def _topic(node: Node, fields: Mapping[str, Field]) -> tuple[str, tuple[str, ...]]:
    base = node.text("base")
    if not 0 < len(base.encode()) <= limits.BASE_BYTES_MAX:
        refuse(node.at("base"), f"{base[:40]!r} is not valid", f"1 to {limits.BASE_BYTES_MAX} bytes of text")
    order = node.texts("key_order")
    where = node.at("key_order")
    if not order:
        refuse(where, "it must not be empty", "at least one identifier")
    if len(order) > limits.SUBJECT_TOKENS_MAX:
        refuse(where, f"it has {len(order)} identifiers", f"{limits.SUBJECT_TOKENS_MAX} at the most")
    for at, key in enumerate(order):
        if key == POINT_CLOUD:
            refuse(where, f"it must not contain reserved spatial key '{key}'", "identifiers that are not spatial")
        if key not in fields:
            refuse(where, f"it contains undeclared identifier '{key}'", ", ".join(fields))
        if key in order[:at]:
            refuse(where, f"it contains duplicate identifier '{key}'", "each identifier once")
    for key, field in fields.items():
        if key not in order and not field.spatial:
            refuse(where, f"it must include identifier '{key}'", "every identifier that is not spatial")
    return base, order
