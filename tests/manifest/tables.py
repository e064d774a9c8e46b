"""Random flags and segments, as tables and as files without an error, and contexts to ask them with."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

TEXTS = ["", "gold", "silver", "go", "d"]
VERSIONS = ["1.0.0", "1.0.0-a", "1.0.0-b+x", "1.10.0", "1.9.0", "1.0", "x"]
NUMBERS: list[Any] = [0, 1, 1.0, 1.5, -1, 2**53, 2**53 + 1, float(2**53), math.inf]
POOLS: dict[str, list[Any]] = {
    "plan": TEXTS,
    "app.version": VERSIONS,
    "age": NUMBERS,
    "beta": [True, False],
    "user.id": ["u-1", "u-2", "u-3", ""],
}
TEXT_OPS = ["contains", "not_contains", "starts_with", "ends_with"]
SEMVER_OPS = ["semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"]
ANYTHING = st.sampled_from([*TEXTS, *VERSIONS, *NUMBERS, True, False, math.nan, "u-1", "u-2", "u-3"])
CONTEXTS = st.dictionaries(st.sampled_from([*POOLS, "other"]), ANYTHING)


@st.composite
def atoms(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(list(POOLS)))
    pool = st.sampled_from(POOLS[name])
    ops = ["eq", "neq", "in", "not_in", "is_set", "is_not_set"]
    ops += ["gt", "gte", "lt", "lte"] if name == "age" else TEXT_OPS if name == "plan" else []
    ops += SEMVER_OPS if name == "app.version" else []
    op = draw(st.sampled_from(ops))
    if op in ("is_set", "is_not_set"):
        return {"attribute": name, "op": op}
    if op in ("in", "not_in"):
        return {"attribute": name, "op": op, "values": draw(st.lists(pool, min_size=1, max_size=3))}
    if op in SEMVER_OPS:
        pool = st.sampled_from(VERSIONS[:5])
    return {"attribute": name, "op": op, "value": draw(pool)}


def predicates(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    leaves = atoms() | st.sampled_from(keys).map(lambda key: {"segment": key}) if keys else atoms()
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts})
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts})
            | inner.map(lambda part: {"not": part})
        ),
        max_leaves=5,
    )


@st.composite
def segment_tables(draw: st.DrawFn, keys: list[str]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if draw(st.booleans()):
        start, end = sorted(draw(st.tuples(st.integers(0, 9_999), st.integers(0, 9_999))))
        salt = draw(st.sampled_from(["", "2026"]))
        table["bucket"] = {"entity_id_attribute": "user.id", "salt": salt, "start": start, "end": end}
    if not table or draw(st.booleans()):
        table["predicate"] = draw(predicates(keys))
    return table


@st.composite
def blocks(draw: st.DrawFn, keys: list[str], catch_all: bool) -> dict[str, Any]:
    variants = st.sampled_from(["a", "b", "c"])
    block: dict[str, Any] = {}
    if catch_all or draw(st.booleans()):
        block["variant"] = draw(variants)
    if draw(st.booleans()):
        audience: st.SearchStrategy[dict[str, Any]] = predicates(keys).map(lambda predicate: {"predicate": predicate})
        if keys:
            audience |= st.sampled_from(keys).map(lambda key: {"segment": key})
        rules = st.tuples(audience, variants).map(lambda drawn: {**drawn[0], "variant": drawn[1]})
        block["rules"] = draw(st.lists(rules, max_size=3))
    if not catch_all and draw(st.booleans()):
        block["testing"] = draw(st.booleans())
    return block


@st.composite
def segments_of(draw: st.DrawFn) -> dict[str, Any]:
    """Each may name those before it."""
    segments: dict[str, Any] = {}
    for number in range(draw(st.integers(0, 4))):
        segments[f"s{number}"] = draw(segment_tables(list(segments)))
    return segments


@st.composite
def flags_of(draw: st.DrawFn, keys: list[str]) -> dict[str, Any]:
    environments: dict[str, Any] = {"_": draw(blocks(keys, catch_all=True))}
    for name in draw(st.sets(st.sampled_from(["prod", "dev"]))):
        environments[name] = draw(blocks(keys, catch_all=False))
    return {"type": "string", "variants": {"a": "A", "b": "B", "c": "C"}, "environments": environments}


@st.composite
def flag_and_segments(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    segments = draw(segments_of())
    return draw(flags_of(list(segments))), segments


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, bytes]:
    """Files of up to three flags."""
    segments = draw(segments_of())
    flags = {key: draw(flags_of(list(segments))) for key in "abc"[: draw(st.integers(0, 3))]}
    return files_of(flags, segments, typed=draw(st.booleans()))


def files_of(flags: dict[str, Any], segments: dict[str, Any], *, typed: bool) -> dict[str, bytes]:
    head = 'schema_version = "0.1"\n'
    files = {f"segments/{key}.toml": f"{head}segment = {toml(table)}" for key, table in segments.items()}
    files |= {f"flags/{key}.toml": f"{head}flag = {toml(table)}" for key, table in flags.items()}
    if typed:
        files["namespace.toml"] = f"{head}[namespace.environments]\nprod = {{}}\ndev = {{}}\nqa = {{}}"
    return {path: text.encode() for path, text in files.items()}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
