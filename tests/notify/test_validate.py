"""What is stored of a notification, what a watch wants, and in which order faults are told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from seamark.errors import BadField, BadFilter, SeamarkError
from seamark.log.record import Draft, Geometry, Record
from seamark.match.spatial import parse_point, parse_polygon
from seamark.notify import validate
from seamark.notify.eventtype import EventType
from seamark.notify.request import Request
from seamark.notify.schema import read_schema
from seamark.notify.start import Edge
from seamark.notify.validate import Operation, check_notification, generic_notification, generic_stream, interest

Types = dict[str, EventType]
SQUARE = "(0,0,0,10,10,10,10,0,0,0)"
OTHER = "5,5,5,15,15,15,15,5,5,5"
FAR = "50,50,50,60,60,60,60,50,50,50"
PAIRS = [[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]
MARS = {"class": "od", "expver": "1", "step": 12, "level": "42.50", "region": "North"}


def notification(types: Types, name: str, identifier: dict[str, Any], payload: Any = None) -> Draft:
    request = Request(name, identifier, payload=payload)
    check_notification(request)
    return validate.notification(types[name], request)


def stored(draft: Draft) -> Record:
    return Record(1, 1, draft.payload, None, None, draft.meta, draft.subject, draft.geometry)


# -- notification


def test_a_notification(event_types: Types) -> None:
    draft = notification(event_types, "mars", MARS, {"b": [1.0], "a": "é"})
    assert draft == Draft('{"a":"é","b":[1.0]}'.encode(), subject=("od", "0001", "12", "42.5", "north"))


def test_a_polygon_is_where_it_is_about(event_types: Types) -> None:
    draft = notification(event_types, "test_polygon", {"date": "2025-07-06", "time": 12, "polygon": SQUARE})
    assert draft == Draft(b"null", subject=("20250706", "1200"), geometry=Geometry(SQUARE, 0, 0, 10, 10))
    draft = notification(event_types, "fires", {"number": 1, "area": OTHER})
    assert draft == Draft(b"null", subject=("1",), geometry=Geometry(OTHER, 5, 5, 15, 15))


def test_a_polygon_as_key(event_types: Types) -> None:
    draft = notification(event_types, "keyed", {"n": 1, "polygon": SQUARE})
    assert draft == Draft(b"null", subject=(SQUARE, "1"), geometry=Geometry(SQUARE, 0, 0, 10, 10))
    text = "[[0,0],[0,10],[10,10],[10,0],[0,0]]"
    draft = notification(event_types, "keyed", {"n": 1, "polygon": PAIRS})
    assert draft == Draft(b"null", subject=(text, "1"), geometry=Geometry(text, 0, 0, 10, 10))


def test_a_point_cloud(event_types: Types) -> None:
    draft = notification(event_types, "observations", {"date": "20250706", "point_cloud": [[1, 2.5]]})
    assert draft == Draft(b"null", subject=("20250706",), geometry=Geometry("points:[[1.0,2.5]]", 1, 2.5, 1, 2.5))


TWO = {
    "two": {
        "topic": {"base": "two", "key_order": ["n"]},
        "identifier": {
            "n": {"type": "IntHandler", "required": True},
            "area": {"type": "PolygonHandler", "required": False},
            "polygon": {"type": "PolygonHandler", "required": False},
        },
    },
    "cloud": {
        "topic": {"base": "cloud", "key_order": ["n"]},
        "identifier": {
            "n": {"type": "IntHandler", "required": True},
            "area": {"type": "PolygonHandler", "required": False},
            "point_cloud": {"type": "PointCloudHandler", "required": True},
        },
    },
}


def test_of_several_places_one_counts_and_all_are_checked() -> None:
    types = {event.name: event for event in read_schema(TWO)}
    draft = notification(types, "two", {"n": 1, "area": FAR, "polygon": SQUARE})
    assert draft.geometry == Geometry(SQUARE, 0, 0, 10, 10)
    draft = notification(types, "cloud", {"n": 1, "area": FAR, "point_cloud": [[1, 2.5]]})
    assert draft.geometry == Geometry("points:[[1.0,2.5]]", 1, 2.5, 1, 2.5)
    for name, other in (("two", {"polygon": SQUARE}), ("cloud", {"point_cloud": [[1, 2.5]]})):
        with pytest.raises(BadFilter, match="field 'area' must be a valid polygon"):
            notification(types, name, {"n": 1, "area": "(0,0", **other})


@pytest.mark.parametrize(
    ("payload", "bounds"),
    [
        ({"spatial_geometry": SQUARE}, (0, 0, 10, 10)),
        ({"spatial_geometry": {"type": "Polygon", "coordinates": [[[0, 0], [0, 5], [5, 5]]]}}, (0, 0, 5, 5)),
        ({"spatial_geometry": "nonsense"}, None),
        ({"spatial_geometry": None}, None),
        ({"inner": {"spatial_geometry": SQUARE}}, None),
        (["spatial_geometry"], None),
        ("spatial_geometry", None),
    ],
)
def test_the_payload_may_say_where(event_types: Types, payload: Any, bounds: tuple[float, ...] | None) -> None:
    geometry = notification(event_types, "mars", MARS, payload).geometry
    found = None if geometry is None else (geometry.min_lat, geometry.min_lon, geometry.max_lat, geometry.max_lon)
    assert found == bounds
    # What has a place of its own does not ask the payload.
    own = notification(event_types, "test_polygon", {"date": "20250706", "time": 12, "polygon": FAR}, payload)
    assert own.geometry == Geometry(FAR, 50, 50, 60, 60)


def without(name: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in (MARS | more).items() if key != name}


@pytest.mark.parametrize(
    ("identifier", "payload", "why"),
    [
        (without("step"), 1, "Required field 'step' missing for notify operation"),  # though it is not required
        ({}, 1, "Required field 'class' missing for notify operation"),
        (without("", nope=1), 1, "Unknown field 'nope' provided for notify operation"),
        (without("step", nope=1), 1, "Unknown field 'nope' provided for notify operation"),  # before what is missing
        (without("", nope=1, step="x"), 1, "Unknown field 'nope' provided for notify operation"),  # and what is wrong
        (without("", step="x"), 1, "Field 'step' must be a valid integer, got: 'x'"),
        (without("", step={"gte": 1}), 1, "Field 'step' constraint object is not supported for notify operation"),
        (without("", region={}), 1, "Field 'region' constraint object is not supported for notify operation"),
        (without("", step=None), 1, "Field 'step' cannot be null"),
        (without("", step=[1]), 1, "Field 'step' must be a scalar value or constraint object, got array"),
        (without("", step="x"), None, "Field 'step' must be a valid integer, got: 'x'"),  # before the payload
        (MARS, None, "Payload is required for notify operation based on schema configuration"),
        (without("", point="1,2", step="x"), None, "identifier.point is only supported for watch and replay"),
    ],
)
def test_refused_notifications(event_types: Types, identifier: dict[str, Any], payload: Any, why: str) -> None:
    with pytest.raises(BadField) as caught:
        notification(event_types, "mars", identifier, payload)
    assert caught.value.message == why


def test_payloads_that_are_there(event_types: Types) -> None:
    for payload, text in ((0, b"0"), (False, b"false"), ("", b'""'), ([], b"[]"), ({}, b"{}")):
        assert notification(event_types, "mars", MARS, payload).payload == text


def test_a_notification_has_no_end() -> None:
    request = Request("mars", {}, to_date="x")
    with pytest.raises(BadField, match="only supported for the replay endpoint, not /notification"):
        check_notification(request)
    check_notification(Request("mars", {}, from_id="x", from_date="y"))  # these are not looked at


# -- without schema


def test_generic_notifications() -> None:
    draft = generic_notification(Request("e", {"b": 4.0, "a": "x.y", "c": True}, payload={"z": 1, "y": 2}))
    assert draft == Draft(b'{"y":2,"z":1}', meta=b'["a","b","c"]', subject=("x.y", "4.0", "true"))
    assert generic_notification(Request("e", {})) == Draft(b"null", meta=b"[]", subject=())
    assert generic_stream("e") == "notify:e"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "Field 'a' cannot be empty"),
        (None, "Field 'a' cannot be null"),
        ([], "Field 'a' must be a scalar value or constraint object, got array"),
        ({"eq": 1}, "Field 'a' constraint object is not supported for notify operation"),
    ],
)
def test_refused_generic_notifications(value: Any, why: str) -> None:
    with pytest.raises(BadField) as caught:
        generic_notification(Request("e", {"a": value}))
    assert caught.value.message == why


@pytest.mark.parametrize("name", ["", "x" * 256, "é" * 128])
def test_event_types_that_no_stream_can_have(name: str) -> None:
    with pytest.raises(BadField, match="event_type must have"):
        generic_stream(name)


@pytest.mark.parametrize(
    ("identifier", "topic", "hits"),
    [
        ({"b": "2", "a": "1"}, "e.1.2", True),
        ({"b": "*", "a": "1"}, "e.1.*", True),
        ({"b": 2, "a": 1}, "e.1.2", True),
        ({"b": "", "a": "1"}, "e.1.", False),
        ({"a": "1"}, "e.1", False),  # nothing is left open by itself
        ({}, "e", False),
        ({"x": "*", "y": "*"}, "e.*.*", True),
        ({"x": "*", "y": "*", "z": "*"}, "e.*.*.*", False),
    ],
)
def test_generic_watches(identifier: dict[str, Any], topic: str, hits: bool) -> None:
    wanted = interest(None, Request("e", identifier), "watch")
    assert (wanted.stream, wanted.topic, wanted.start) == ("notify:e", topic, None)
    assert wanted.filter.matches(stored(generic_notification(Request("e", {"a": "1", "b": "2"})))) is hits


def test_refused_generic_watches() -> None:
    with pytest.raises(BadField, match="Field 'a' constraint object is not supported without schema"):
        interest(None, Request("e", {"a": {"eq": 1}}), "watch")
    with pytest.raises(BadField, match="Field 'a' cannot be null"):
        interest(None, Request("e", {"a": None}, from_id="1"), "replay")


# -- watch and replay


WANTED: list[tuple[str, dict[str, Any], str, bool]] = [
    ("mars", {"class": "od"}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "rd"}, "mars.rd.*.*.*.*", False),
    ("mars", {"class": "*"}, "mars.*.*.*.*.*", True),
    ("mars", {"class": "od", "expver": "0001"}, "mars.od.0001.*.*.*", True),
    ("mars", {"class": "od", "expver": ""}, "mars.od.0001.*.*.*", True),
    ("mars", {"class": "od", "expver": "*"}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "step": "+012"}, "mars.od.*.12.*.*", True),
    ("mars", {"class": "od", "level": 42.5}, "mars.od.*.*.42.5.*", True),
    ("mars", {"class": "od", "level": "4.25e1"}, "mars.od.*.*.42.5.*", True),
    ("mars", {"class": "od", "region": "NORTH"}, "mars.od.*.*.*.north", True),
    ("mars", {"class": "od", "region": "south"}, "mars.od.*.*.*.south", False),
    ("mars", {"class": "od", "nope": {"any": ["thing"]}}, "mars.od.*.*.*.*", True),  # not declared, not looked at
    ("mars", {"class": "od", "polygon": "nonsense"}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "step": {"gte": 12}}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "step": {"gt": 12}}, "mars.od.*.*.*.*", False),
    ("mars", {"class": "od", "step": {"between": [12, 12]}}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "step": {"in": [1, 12]}}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "level": {"eq": 42.5}}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "level": {"lt": 42.5}}, "mars.od.*.*.*.*", False),
    ("mars", {"class": "od", "region": {"in": ["North", "south"]}}, "mars.od.*.*.*.*", True),
    ("mars", {"class": "od", "step": {"gte": 1}, "level": {"gte": 50}}, "mars.od.*.*.*.*", False),
    ("mars", {"class": "od", "point": "1,1"}, "mars.od.*.*.*.*", False),  # it has no geometry
    ("test_polygon", {"time": "1200", "polygon": OTHER}, "polygon.*.1200", True),
    ("test_polygon", {"time": "1200", "polygon": [[5, 5], [5, 15], [15, 15], [5, 5]]}, "polygon.*.1200", True),
    ("test_polygon", {"time": "1200", "polygon": FAR}, "polygon.*.1200", False),
    ("test_polygon", {"time": "1200", "polygon": "10,10,10,20,20,20,10,10"}, "polygon.*.1200", True),  # one vertex
    ("test_polygon", {"time": "1200", "point": "5,5"}, "polygon.*.1200", True),
    ("test_polygon", {"time": "1200", "point": [5, 5]}, "polygon.*.1200", True),
    ("test_polygon", {"time": "1200", "point": "(0,5)"}, "polygon.*.1200", False),  # on an edge
    ("test_polygon", {"time": "1200", "point": "10,10"}, "polygon.*.1200", False),  # on a vertex
    ("test_polygon", {"time": "1300", "point": "5,5"}, "polygon.*.1300", False),
    ("observations", {"polygon": SQUARE}, "obs.*", True),
    ("observations", {"polygon": FAR}, "obs.*", False),
    ("observations", {"polygon": "1,1,1,2,2,2,1,1", "date": "20250706"}, "obs.20250706", True),  # a vertex on the point
    ("fires", {"number": 1, "area": FAR}, "fires.1", True),  # checked, and no filter: only `polygon` is
    ("fires", {"number": 1, "area": FAR, "polygon": FAR}, "fires.1", True),
    ("fires", {"number": 1, "area": FAR, "point": "5,5"}, "fires.1", True),
    ("keyed", {"polygon": SQUARE}, f"keyed.{SQUARE}.*", True),
    ("keyed", {"polygon": f"{SQUARE} "}, f"keyed.{SQUARE} .*", False),  # as a key it must be the very same text
    ("keyed", {"point": "5,5"}, "keyed.*.*", True),
]  # fmt: skip

STORED: dict[str, dict[str, Any]] = {
    "mars": MARS,
    "test_polygon": {"date": "20250706", "time": "1200", "polygon": SQUARE},
    "observations": {"date": "20250706", "point_cloud": [[80, 80], [1, 1]]},
    "fires": {"number": 1, "area": SQUARE},
    "keyed": {"n": 1, "polygon": SQUARE},
}


@pytest.mark.parametrize(("name", "identifier", "topic", "hits"), WANTED)
def test_watches(event_types: Types, name: str, identifier: dict[str, Any], topic: str, hits: bool) -> None:
    wanted = interest(event_types[name], Request(name, identifier), "watch")
    assert (wanted.stream, wanted.topic) == (event_types[name].stream, topic)
    record = stored(notification(event_types, name, STORED[name], "x"))
    assert wanted.filter.matches(record) is hits
    assert wanted.filter.compile()(record) is hits
    again = interest(event_types[name], Request(name, identifier, from_id="3", to_id="4"), "replay")
    assert (again.filter, again.topic, again.start, again.end) == (wanted.filter, topic, Edge(3), Edge(4))


def test_what_was_asked_for(event_types: Types) -> None:
    wanted = interest(event_types["mars"], Request("mars", {"class": "od", "step": {"gt": 1}, "x": 1}), "watch")
    assert wanted.values == {"class": "od", "expver": "*", "step": "*", "level": "*", "region": "*"}
    assert wanted.filter.subject == ("od", None, None, None, None)
    area = interest(event_types["test_polygon"], Request("e", {"time": "1", "polygon": OTHER}), "watch").filter.area
    assert area == parse_polygon(OTHER)
    area = interest(event_types["test_polygon"], Request("e", {"time": "1", "point": "1,2"}), "watch").filter.area
    assert area == parse_point("1,2")


def test_everything_is_no_filter(event_types: Types) -> None:
    assert interest(event_types["keyed"], Request("e", {"point": "1,1"}), "watch").filter.subject is None
    assert interest(event_types["observations"], Request("e", {"polygon": SQUARE}), "watch").filter.subject is None
    wanted = interest(event_types["mars"], Request("mars", {"class": "*"}), "watch")
    assert wanted.filter.everything
    assert wanted.topic == "mars.*.*.*.*.*"


REFUSED: list[tuple[Operation, str, dict[str, Any], dict[str, str], str]] = [
    ("watch", "mars", {}, {}, "Required field 'class' missing for watch operation"),
    ("replay", "mars", {}, {"from_id": "1"}, "Required field 'class' missing for replay operation"),
    ("watch", "mars", {"class": ""}, {}, "Field 'class' cannot be empty"),
    ("watch", "mars", {"class": None}, {}, "Field 'class' cannot be null"),
    ("watch", "mars", {"class": ["od"]}, {}, "must be a scalar value or constraint object, got array"),
    ("watch", "mars", {"class": {"eq": "od"}}, {}, "does not support constraint filters; expected scalar value"),
    ("watch", "mars", {"class": "od", "step": {"gt": 101}}, {}, "outside 0..100"),
    ("watch", "mars", {"class": "od", "step": 101}, {}, "outside allowed range [0, 100]"),
    ("watch", "test_polygon", {"time": "1"}, {}, "Required field 'polygon' missing for watch operation"),
    ("watch", "test_polygon", {"polygon": SQUARE}, {}, "Required field 'time' missing"),
    ("watch", "test_polygon", {"time": "1", "polygon": "(0,0"}, {}, "missing the closing"),
    ("watch", "test_polygon", {"time": "1", "polygon": {"eq": SQUARE}}, {}, "does not support constraint filters"),
    ("watch", "fires", {"number": 1, "point": "1,1"}, {}, "Required field 'area' missing"),  # only `polygon` has a stand-in
    ("watch", "observations", {}, {}, "Required field 'point_cloud' missing for watch operation"),
    ("watch", "observations", {"polygon": "(0,0"}, {}, "missing the closing"),
    ("watch", "observations", {"polygon": {"eq": SQUARE}}, {}, "Field 'polygon' does not support constraint filters"),
    ("watch", "observations", {"polygon": SQUARE, "point_cloud": [[1, 1]]}, {}, "Field 'point_cloud' is not supported"),
    # The order: where, from, to, and only then the fields.
    ("replay", "mars", {"polygon": 1, "point": 1}, {"from_id": "x"}, "Cannot specify both identifier.polygon and identifier.point"),
    ("watch", "mars", {"point": "nonsense"}, {"from_id": "x"}, "identifier.point must be a valid 'lat,lon' coordinate pair: "),
    ("watch", "mars", {"point": {"eq": "1,1"}}, {"from_id": "x"}, "Field 'point' constraint object is not supported"),
    ("watch", "mars", {"point": None}, {}, "Field 'point' cannot be null"),
    ("watch", "mars", {}, {"from_id": "x", "from_date": "x"}, "from_id must be a valid positive integer"),
    ("watch", "mars", {}, {"from_id": "1", "from_date": "x"}, "from_date must be a valid datetime/timestamp"),
    ("watch", "mars", {}, {"from_id": "1", "from_date": "1"}, "Cannot specify both from_id and from_date"),
    ("replay", "mars", {}, {}, "Replay endpoint requires either from_id or from_date parameter"),
    ("replay", "mars", {}, {"from_id": "2", "to_id": "1"}, "to_id (1) must not be lower than from_id (2)"),
    ("watch", "mars", {}, {"to_id": "1"}, "to_id and to_date are only supported for the replay endpoint, not /watch"),
]  # fmt: skip


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused[-1])
def test_refused_watches(
    event_types: Types, refused: tuple[Operation, str, dict[str, Any], dict[str, str], str]
) -> None:
    operation, name, identifier, more, why = refused
    with pytest.raises(SeamarkError, match=re.escape(why)) as caught:
        interest(event_types[name], Request(name, identifier, **more), operation)
    assert isinstance(caught.value, BadField | BadFilter)
