"""The schema from the file: what it becomes, and everything that stops a start."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from seamark import limits
from seamark.errors import BadConfig, UnknownEventType
from seamark.log.settings import StreamSettings
from seamark.notify.eventtype import Schema
from seamark.notify.places import PointCloudField, PolygonField
from seamark.notify.schema import read_schema

YAML = """
mars:
  topic: {base: mars, key_order: [class, expver, domain, date, time, stream, step, level]}
  identifier:
    class: {type: StringHandler, max_length: 2, required: true, description: two letters}
    expver: {type: ExpverHandler, default: "0001", required: false}
    domain: {type: EnumHandler, values: [a, b, 1], required: false}
    date: {type: DateHandler, canonical_format: "%Y-%m-%d", required: true}
    time: {type: TimeHandler, required: true}
    stream: {type: StringHandler, required: false}
    step: {type: IntHandler, range: [0, 100000], required: false}
    level: {type: FloatHandler, range: [0, 7.5], required: false}
    polygon: {type: PolygonHandler, required: false}
  payload: {required: true}
  storage_policy: {retention_time: 7d, max_messages: 10, max_size: 1Gi, allow_duplicates: false, compression: true}
  endpoint: {base: legacy}
  unknown_block: {is: ignored}
observations:
  topic: {base: obs, key_order: [date], extra: ignored}
  identifier:
    date: {type: DateHandler, required: true}
    point_cloud: {type: PointCloudHandler, required: true, max_points: 7}
  max_historical_notifications: 5
bare:
  identifier:
    b: {type: IntHandler, required: true}
    a: {type: IntHandler, required: true}
    place: {type: PolygonHandler, required: true}
"""


def mapping() -> dict[str, Any]:
    loaded = yaml.safe_load(YAML)
    assert isinstance(loaded, dict)
    return loaded


def test_a_schema() -> None:
    schema = read_schema(mapping())
    assert schema.strict
    assert schema.configured
    assert schema.names == ["bare", "mars", "observations"]
    mars = schema.get("mars")
    assert mars is not None
    assert mars.stream == "notify:mars"
    assert mars.key_order == ("class", "expver", "domain", "date", "time", "stream", "step", "level")
    assert mars.payload_required is True
    assert isinstance(mars.place, PolygonField)
    assert {name: field.options() for name, field in mars.fields.items()} == {
        "class": {"max_length": 2},
        "expver": {"default": "0001"},
        "domain": {"values": ("a", "b", "1")},
        "date": {"canonical_format": "%Y-%m-%d"},
        "time": {},
        "stream": {"max_length": None},
        "step": {"range": (0, 100_000)},
        "level": {"range": (0.0, 7.5)},
        "polygon": {},
    }
    assert mars.settings(StreamSettings(cap_bytes=5, sparse=True)) == StreamSettings(
        ttl_ms=7 * 86_400_000, cap_records=10, cap_bytes=2**30, latest_per_subject=1, sparse=True
    )


def test_what_was_not_said() -> None:
    schema = read_schema(mapping())
    observations, bare = schema.get("observations"), schema.of_base("bare")
    assert observations is not None
    assert observations.payload_required is None
    assert observations.history_max == 5
    assert isinstance(observations.place, PointCloudField)
    assert observations.place.max_points == 7
    assert not observations.auth.required
    default = StreamSettings(latest_per_subject=3, ttl_ms=9)
    assert observations.settings(default) == default
    assert observations.fields["date"].options() == {"canonical_format": "%Y%m%d"}
    # Without a topic: the name of the event type, and all values by the names of their fields.
    assert bare is not None
    assert (bare.base, bare.key_order) == ("bare", ("a", "b"))
    assert schema.of_base("obs") is observations
    assert schema.of_base("OBS") is None


@pytest.mark.parametrize(
    ("raw", "said", "strict"),
    [
        (None, None, False), ({}, None, False), (mapping(), None, True),
        (None, True, True), ({}, True, True), (mapping(), False, False),
    ],
)  # fmt: skip
def test_strict_or_not(raw: Any, said: bool | None, strict: bool) -> None:
    schema = read_schema(raw, strict=said)
    assert schema.strict is strict
    assert schema.configured is (raw is not None)
    if strict:
        with pytest.raises(UnknownEventType) as caught:
            schema.find("nope")
        assert caught.value.message == "unknown event type 'nope'"
        assert caught.value.fields == {"event_type": "nope", "configured": schema.names}
    else:
        assert schema.find("nope") is None


def test_finding() -> None:
    schema = read_schema(mapping())
    assert schema.find("mars") is schema.get("mars")
    with pytest.raises(UnknownEventType):
        schema.find("MARS")
    for name, base in (("mars", "mars"), ("MARS", "mars"), ("Observations", "obs"), ("OBS", "obs"), ("nope", None)):
        event = schema.resolve(name)
        assert (event and event.base) == base
    assert Schema(None).resolve("x") is None


def with_(path: str, value: Any) -> dict[str, Any]:
    """The schema with one thing changed; None takes it out."""
    changed = copy.deepcopy(mapping())
    *parents, last = path.split(".")
    node = changed
    for key in parents:
        node = node.setdefault(key, {})
    if value is None:
        del node[last]
    else:
        node[last] = value
    return changed


REFUSED: list[tuple[str, Any, str]] = [
    ("mars", 5, "notification_schema.mars"),
    ("mars.identifier.class.type", "NumberHandler", "mars.identifier.class.type"),
    ("mars.identifier.class.type", None, "mars.identifier.class.type"),
    ("mars.identifier.class.required", None, "mars.identifier.class.required"),
    ("mars.identifier.class.required", "yes", "mars.identifier.class.required"),
    ("mars.identifier.class.extra", 1, "mars.identifier.class.extra"),
    ("mars.identifier.class.range", [0, 1], "mars.identifier.class.range"),  # an option of another handler
    ("mars.identifier.class.max_length", -1, "mars.identifier.class.max_length"),
    ("mars.identifier.class.max_length", "2", "mars.identifier.class.max_length"),
    ("mars.identifier.class.description", [1], "mars.identifier.class.description"),
    ("mars.identifier.class", "StringHandler", "mars.identifier.class"),
    ("mars.identifier", [], "mars.identifier"),
    ("mars.identifier.domain.values", None, "mars.identifier.domain.values"),
    ("mars.identifier.domain.values", "a", "mars.identifier.domain.values"),
    ("mars.identifier.domain.values", [True], "mars.identifier.domain.values"),
    ("mars.identifier.date.canonical_format", "%d/%m/%Y", "mars.identifier.date.canonical_format"),
    ("mars.identifier.step.range", [1], "mars.identifier.step.range"),
    ("mars.identifier.step.range", [2, 1], "mars.identifier.step.range"),
    ("mars.identifier.step.range", [0, 1.5], "mars.identifier.step.range"),
    ("mars.identifier.step.range", [0, True], "mars.identifier.step.range"),
    ("mars.identifier.step.range", [0, 2**63], "mars.identifier.step.range"),
    ("mars.identifier.level.range", [0, float("inf")], "mars.identifier.level.range"),
    ("mars.identifier.level.range", ["0", "1"], "mars.identifier.level.range"),
    ("mars.identifier.expver.default", [1], "mars.identifier.expver.default"),
    ("mars.topic", "mars", "mars.topic"),
    ("mars.topic.base", "", "mars.topic.base"),
    ("mars.topic.base", None, "mars.topic.base"),
    ("mars.topic.base", "m" * 256, "mars.topic.base"),
    ("mars.topic.base", "OBS", "topic.base"),  # the base of another, in another case
    ("mars.topic.key_order", None, "mars.topic.key_order"),
    ("mars.topic.key_order", [], "mars.topic.key_order"),
    ("mars.topic.key_order", ["class", "nope"], "mars.topic.key_order"),
    ("mars.topic.key_order", ["class", "class"], "mars.topic.key_order"),
    ("mars.topic.key_order", ["class"], "mars.topic.key_order"),
    ("observations.topic.key_order", ["date", "point_cloud"], "observations.topic.key_order"),
    (
        "observations.identifier.polygon",
        {"type": "PolygonHandler", "required": False},
        "observations.identifier.polygon",
    ),
    (
        "observations.identifier.cloud",
        {"type": "PointCloudHandler", "required": False},
        "observations.identifier.cloud",
    ),
    ("observations.identifier.point_cloud.max_points", 0, "observations.identifier.point_cloud.max_points"),
    ("observations.identifier.point_cloud.max_points", 10_001, "observations.identifier.point_cloud.max_points"),
    ("observations.max_historical_notifications", 0, "observations.max_historical_notifications"),
    ("mars.payload", {}, "mars.payload.required"),
    ("mars.payload.type", ["String"], "mars.payload.type"),
    ("mars.payload.required", 1, "mars.payload.required"),
    ("bare.storage_policy", {"max_messages": 1}, "bare.storage_policy"),
    ("mars.storage_policy.max_messages", 0, "mars.storage_policy.max_messages"),
    ("mars.auth", {}, "mars.auth.required"),
]


@pytest.mark.parametrize(("path", "value", "name"), REFUSED)
def test_what_stops_a_start(path: str, value: Any, name: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_schema(with_(path, value))
    assert str(caught.value.fields["name"]).endswith(name)
    assert caught.value.fields["accepts"]
    assert str(caught.value.fields["name"]).startswith("notification_schema")


def test_other_refusals() -> None:
    with pytest.raises(BadConfig, match="not a mapping"):
        read_schema([])
    with pytest.raises(BadConfig, match="its key 5 is not text"):
        read_schema({5: {}})
    with pytest.raises(BadConfig, match="it contains undeclared identifier 'nope'"):
        read_schema(with_("mars.topic.key_order", ["nope"]))
    with pytest.raises(BadConfig, match="it must include identifier 'expver'"):
        read_schema(with_("mars.topic.key_order", ["class"]))
    with pytest.raises(BadConfig, match="not supported by backend 'in_memory'"):
        read_schema(mapping(), policies=False)
    many = {f"f{number}": {"type": "IntHandler", "required": True} for number in range(limits.SUBJECT_TOKENS_MAX + 1)}
    with pytest.raises(BadConfig, match="at the most"):
        read_schema({"e": {"topic": {"base": "e", "key_order": list(many)}, "identifier": many}})


def test_a_polygon_may_be_a_key() -> None:
    """Not wise, but configurations of the contract's own examples have it."""
    event = read_schema(with_("observations", None) | {
        "p": {"topic": {"base": "p", "key_order": ["polygon"]}, "identifier": {"polygon": {"type": "PolygonHandler", "required": True}}}
    }).get("p")  # fmt: skip
    assert event is not None
    assert event.key_order == ("polygon",)
    assert event.place is event.fields["polygon"]


def test_the_polygon_of_that_name_comes_first() -> None:
    polygon = {"type": "PolygonHandler", "required": True}
    one = {"type": "IntHandler", "required": True}
    raw = {
        "e": {"topic": {"base": "e", "key_order": ["n"]}, "identifier": {"area": polygon, "polygon": polygon, "n": one}}
    }
    event = read_schema(raw).get("e")
    assert event is not None
    assert event.place is event.fields["polygon"]
