"""The contract on evaluation, read plainly and slowly from what files say. It shares no code with the room."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from seamark.manifest.model import Context


def plain(predicate: Mapping[str, Any], context: Context, segments: Mapping[str, Any]) -> bool:
    if "segment" in predicate:
        return plain_segment(predicate["segment"], context, segments)
    if "all" in predicate:
        return all(plain(part, context, segments) for part in predicate["all"])
    if "any" in predicate:
        return any(plain(part, context, segments) for part in predicate["any"])
    if "not" in predicate:
        return not plain(predicate["not"], context, segments)
    op, name = predicate["op"], predicate["attribute"]
    if op in ("is_set", "is_not_set"):
        return bool((name in context) == (op == "is_set"))
    return name in context and plain_op(op, context[name], predicate.get("values", predicate.get("value")))


def same_kind(one: object, other: object) -> bool:
    return kind(one) == kind(other)


def kind(value: object) -> type:
    return bool if value is True or value is False else str if isinstance(value, str) else float


def plain_op(op: str, value: Any, operand: Any) -> bool:
    if value != value:  # noqa: PLR0124 - it is not a number
        return False
    if op in ("eq", "neq"):
        return same_kind(value, operand) and bool((value == operand) == (op == "eq"))
    if op in ("in", "not_in"):
        alike = [item for item in operand if same_kind(value, item)]
        return bool(alike) and (value in alike) == (op == "in")
    if op in ("gt", "gte", "lt", "lte"):
        if kind(value) is not float:
            return False
        orders = {"gt": value > operand, "gte": value >= operand, "lt": value < operand, "lte": value <= operand}
        return bool(orders[op])
    if not isinstance(value, str):
        return False
    if op.startswith("semver_"):
        found, wanted = plain_version(value), plain_version(operand)
        return (
            found is not None
            and wanted is not None
            and plain_op(op.replace("semver_", ""), 0.0 + compare(found, wanted), 0.0)
        )
    inside = operand in value
    ends = {"starts_with": value[: len(operand)] == operand, "ends_with": value.endswith(operand)}
    return bool({"contains": inside, "not_contains": not inside, **ends}[op])


def plain_version(text: str) -> tuple[list[int], str] | None:
    numbers, _, pre = text.partition("+")[0].partition("-")
    parts = numbers.split(".")
    return ([int(part) for part in parts], pre) if len(parts) == 3 and all(map(str.isdigit, parts)) else None


def compare(one: tuple[list[int], str], other: tuple[list[int], str]) -> int:
    """Pre-releases are single words here."""
    first, second = ((numbers, not pre, pre) for numbers, pre in (one, other))
    return (first > second) - (first < second)


def plain_segment(key: str, context: Context, segments: Mapping[str, Any]) -> bool:
    segment = segments[key]
    if "predicate" in segment and not plain(segment["predicate"], context, segments):
        return False
    if "bucket" not in segment:
        return True
    bucket = segment["bucket"]
    entity = context.get(bucket["entity_id_attribute"])
    if not isinstance(entity, str) or not entity:
        return False
    digest = sha256(f"{bucket['salt'] or key}:{entity}".encode()).hexdigest()
    return bool(bucket["start"] <= int(digest[:16], 16) % 10_000 <= bucket["end"])


def plain_answer(
    flag: Mapping[str, Any], environment: str, context: Context, testing: bool, segments: Any
) -> tuple[str, str]:
    blocks = flag["environments"]
    own, other = blocks.get(environment), blocks["_"]

    def first(rules: list[Any]) -> tuple[str, str] | None:
        for place, rule in enumerate(rules):
            if "segment" in rule:
                hit = plain_segment(rule["segment"], context, segments)
            else:
                hit = plain(rule["predicate"], context, segments)
            if hit:
                return rule["variant"], f"rule:{place}"
        return None

    if own is not None and "rules" in own and (not own.get("testing", False) or testing):
        found = first(own["rules"])
        if found is not None:
            return found
    if own is not None and "variant" in own:
        return own["variant"], "default"
    if own is None or "rules" not in own:
        found = first(other.get("rules", []))
        if found is not None:
            return found
    return other["variant"], "default"
