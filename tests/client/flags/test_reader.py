from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seamark.client.flags.client import FlagsClient
from seamark.client.flags.offline import OfflineFlags
from seamark.client.flags.reader import FlagReader
from seamark.client.flags.track import Track
from seamark.clock import ManualClock
from seamark.manifest.subscription import EVERY_FLAG
from tests.flags.manifests import HEAD

KINDS = {
    "boolean": ("true", True, False),
    "string": ('"hi"', "hi", "bye"),
    "integer": ("10", 10, 1),
    "float": ("0.5", 0.5, 0.1),
    "json": ("{ a = [1, { b = true }] }", {"a": [1, {"b": True}]}, None),
}
GETTERS = {
    "boolean": "get_bool",
    "string": "get_string",
    "integer": "get_int",
    "float": "get_float",
    "json": "get_json",
}
ZEROS = {"boolean": "false", "string": '""', "integer": "0", "float": "0.0", "json": "{}"}


def typed(kind: str, value: str, extra: str = "") -> bytes:
    return (
        f'{HEAD}[flag]\ntype = "{kind}"\n[flag.variants]\none = {value}\nzero = {ZEROS[kind]}\n'
        f'[flag.environments._]\nvariant = "one"\n{extra}'
    ).encode()


RULE = """
[[flag.environments._.rules]]
predicate = { attribute = "plan", op = "eq", value = "pro" }
variant = "zero"

[flag.environments.staging]
testing = true
[[flag.environments.staging.rules]]
predicate = { attribute = "plan", op = "is_set" }
variant = "zero"
"""


@pytest.fixture(scope="module")
def flags() -> OfflineFlags:
    files = {f"flags/{kind}-flag.toml": typed(kind, value, RULE) for kind, (value, _, _) in KINDS.items()}
    files["namespace.toml"] = (
        f'{HEAD}[namespace]\nslug = "shop"\n[namespace.environments]\nproduction = {{}}\nstaging = {{}}\n'.encode()
    )
    return FlagsClient.from_files(files)


def getter(flags: FlagReader, kind: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(flags, GETTERS[kind])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_has_its_getter_and_no_other(flags: OfflineFlags, kind: str) -> None:
    _, value, default = KINDS[kind]
    assert getter(flags, kind)(f"{kind}-flag", default) == value
    assert type(getter(flags, kind)(f"{kind}-flag", default)) is type(value)
    for other in KINDS.keys() - {kind}:
        assert getter(flags, other)(f"{kind}-flag", "mine") == "mine"
        details = flags.details(f"{kind}-flag", "mine", kind=other)
        assert (details.value, details.error_code, details.version) == ("mine", "TYPE_MISMATCH", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_may_answer_with_nothing_at_all(flags: OfflineFlags, kind: str) -> None:
    """Zero values are values."""
    found = getter(flags, kind)(f"{kind}-flag", KINDS[kind][2], {"plan": "pro"})
    assert found == {"boolean": False, "string": "", "integer": 0, "float": 0.0, "json": {}}[kind]


def test_what_is_told_of_an_answer(flags: OfflineFlags) -> None:
    details = flags.details("string-flag", "bye", {"plan": "pro"})
    assert (details.value, details.variant, details.rule_matched, details.reason) == (
        "",
        "zero",
        "rule:0",
        "matched_rule",
    )
    assert (details.namespace, details.environment, details.error_code) == ("shop", "production", None)
    details = flags.details("string-flag", "bye")
    assert (details.value, details.rule_matched, details.reason) == ("hi", "default", "fallthrough")


def test_environments_and_what_is_for_testing(flags: OfflineFlags) -> None:
    context = {"plan": "free"}
    assert flags.get_int("integer-flag", 1, context, environment="staging") == 10
    assert flags.get_int("integer-flag", 1, context, environment="staging", include_testing=True) == 0
    assert flags.details("integer-flag", 1, context, environment="staging", include_testing=True).value == 0
    for unknown in ("moon", "_", ""):
        assert flags.get_int("integer-flag", 1, environment=unknown) == 1
        assert flags.details("integer-flag", 1, environment=unknown).error_code == "UNKNOWN_ENVIRONMENT"
        assert flags.eval_all(environment=unknown) == {}


def test_all_of_them(flags: OfflineFlags) -> None:
    found = flags.eval_all({"plan": "pro"})
    assert set(found) == {f"{kind}-flag" for kind in KINDS}
    assert {details.variant for details in found.values()} == {"zero"}
    assert flags.eval_all(namespace="other") == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"flag": "missing"}, "FLAG_NOT_FOUND"),
        ({"flag": None}, "FLAG_NOT_FOUND"),
        ({"flag": []}, "INVALID_CONTEXT"),
        ({"context": 7}, "INVALID_CONTEXT"),
        ({"context": ["plan"]}, "INVALID_CONTEXT"),
        ({"namespace": "other"}, "UNKNOWN_NAMESPACE"),
        ({"environment": "moon"}, "UNKNOWN_ENVIRONMENT"),
    ],
)
def test_no_question_raises(flags: OfflineFlags, kind: str, asked: dict[str, Any], code: str) -> None:
    given = {"flag": f"{kind}-flag", "default": "mine", **asked}
    assert getter(flags, kind)(**given) == "mine"
    details = flags.details(**given)
    assert (details.value, details.error_code, details.reason) == ("mine", code, "sdk_default")
    assert details.error_message


def test_before_anything_was_verified() -> None:
    empty = FlagReader({"ns": Track("ns", EVERY_FLAG, ManualClock())}, "production", None)
    for kind in KINDS:
        assert getter(empty, kind)("a", "mine") == "mine"
    details = empty.details("a", "mine")
    assert (details.value, details.error_code, details.stale) == ("mine", "PROVIDER_NOT_READY", True)
    assert empty.eval_all() == {}
    assert empty.last_refresh_error() is None


def test_a_value_may_be_changed_by_whoever_got_it(flags: OfflineFlags) -> None:
    first = flags.get_json("json-flag", None)
    first["a"][1]["b"] = "mine"
    first["more"] = 1
    other: Any = flags.details("json-flag").value
    other["a"].clear()
    assert flags.get_json("json-flag", None) == {"a": [1, {"b": True}]}
    assert flags.eval_all()["json-flag"].value == {"a": [1, {"b": True}]}


def test_of_several_namespaces_one_has_to_be_named() -> None:
    clock = ManualClock()
    tracks = {slug: Track(slug, EVERY_FLAG, clock) for slug in ("one", "two")}
    several = FlagReader(tracks, "production", None)
    assert several.details("a").error_code == "UNKNOWN_NAMESPACE"
    assert FlagReader(tracks, "production", "two").details("a").namespace == "two"
    tracks["one"].fail("fetch", "first")
    clock.advance(1)
    tracks["two"].fail("lint", "second")
    latest, first = several.last_refresh_error(), several.last_refresh_error("one")
    assert latest is not None
    assert first is not None
    assert (str(latest), str(first)) == ("lint: second", "fetch: first")
    assert several.statuses()["one"].stale
    with pytest.raises(KeyError):
        several.status()
