"""CloudEvents to the byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadConfig
from seamark.log.record import Record
from seamark.match.spatial import geometry_of, geometry_of_cloud, geometry_of_value
from seamark.notify.cloudevent import Renderer, dataschema
from seamark.notify.eventtype import EventType

TS = 1_751_827_800_123_456_789
POLYGON = "(52.5,13.4,52.6,13.5,52.5,13.6,52.4,13.5,52.5,13.4)"
Types = dict[str, EventType]


def renderer(types: Types, name: str, base_url: str = "http://localhost") -> Renderer:
    return Renderer(name, types.get(name), base_url=base_url)


def test_a_cloudevent(event_types: Types) -> None:
    record = Record(7, TS, b'{"note":"x"}', subject=("20250706", "1200"), geometry=geometry_of(POLYGON))
    assert renderer(event_types, "test_polygon").event(record) == (
        b'{"data":{"identifier":{"date":"20250706","polygon":"' + POLYGON.encode() + b'","time":"1200"},'
        b'"payload":{"note":"x"}},"datacontenttype":"application/json",'
        b'"dataschema":"http://localhost/schema/test_polygon","id":"test_polygon@7","sequence":7,'
        b'"source":"http://localhost","specversion":"1.0","time":"2025-07-06T18:50:00.123456789Z",'
        b'"type":"int.ecmwf.aviso.test_polygon"}'
    )


def identifier(types: Types, name: str, record: Record) -> object:
    event = json.loads(renderer(types, name).event(record))
    assert list(event) == sorted(event)
    assert list(event["data"]["identifier"]) == sorted(event["data"]["identifier"])
    return event["data"]["identifier"]


def test_what_says_nothing_is_left_out(event_types: Types) -> None:
    record = Record(1, TS, b"null", subject=("od", "", "*", "**", " "))
    assert identifier(event_types, "mars", record) == {"class": "od", "level": "**", "region": " "}


def test_places_are_told_as_they_came(event_types: Types) -> None:
    pairs = geometry_of("[[0,0],[0,1.50],[1,1],[0,0]]", pairs=True)
    record = Record(1, TS, b"null", subject=("20250706", "1200"), geometry=pairs)
    assert b'"polygon":[[0,0],[0,1.50],[1,1],[0,0]],"time"' in renderer(event_types, "test_polygon").event(record)
    record = Record(1, TS, b"null", subject=("20250706",), geometry=geometry_of_cloud("[[52.52,13.0]]"))
    assert identifier(event_types, "observations", record) == {"date": "20250706", "point_cloud": [[52.52, 13.0]]}
    record = Record(1, TS, b"null", subject=("1",), geometry=geometry_of(POLYGON))
    assert identifier(event_types, "fires", record) == {"area": POLYGON, "number": "1"}
    record = Record(1, TS, b"null", subject=("[[0,0]]", "1"), geometry=pairs)
    assert identifier(event_types, "keyed", record) == {"n": "1", "polygon": [[0, 0], [0, 1.5], [1, 1], [0, 0]]}


def test_the_place_of_a_payload_is_no_identifier(event_types: Types) -> None:
    record = Record(1, TS, b"null", subject=("od", "1", "1", "1", "north"), geometry=geometry_of_value(POLYGON))
    assert "polygon" not in renderer(event_types, "mars").event(record).decode()


def test_records_of_another_time(event_types: Types) -> None:
    """Stored when the schema had other keys, or no place."""
    assert identifier(event_types, "mars", Record(1, TS, b"null", subject=("od",))) == {"class": "od"}
    assert identifier(event_types, "test_polygon", Record(1, TS, b"null", subject=("a", "b", "c"))) == {
        "date": "a",
        "time": "b",
    }
    assert identifier(event_types, "test_polygon", Record(1, TS, b"null")) == {}
    assert b'"payload":null}' in renderer(event_types, "mars").event(Record(1, TS, b""))


def test_without_schema() -> None:
    record = Record(3, TS, b"[1.0]", meta=b'["a\\"","b"]', subject=("x", "y"))
    event = json.loads(Renderer('odd "name" 100%', None, base_url="http://localhost").event(record))
    assert event["data"] == {"identifier": {'a"': "x", "b": "y"}, "payload": [1.0]}
    assert event["id"] == 'odd "name" 100%@3'
    assert event["type"] == 'int.ecmwf.aviso.odd "name" 100%'


@pytest.mark.parametrize(
    ("ts", "text"),
    [
        (TS // 10**9 * 10**9, ":00Z"),
        (TS // 10**6 * 10**6, ":00.123Z"),
        (TS // 10**3 * 10**3, ":00.123456Z"),
        (TS, ":00.123456789Z"),
    ],
)
def test_times(event_types: Types, ts: int, text: str) -> None:
    assert f'"time":"2025-07-06T18:50{text}"' in renderer(event_types, "mars").event(Record(1, ts, b"1")).decode()


@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2),
    st.integers(1, 2**63 - 1), st.integers(0, 2**62),
)  # fmt: skip
def test_any_values(values: list[str], seq: int, ts: int) -> None:
    from seamark.notify.schema import read_schema
    from tests.notify.example import SCHEMA

    event_type = read_schema(SCHEMA).get("test_polygon")
    text = Renderer("test_polygon", event_type, base_url="http://localhost").event(
        Record(seq, ts, b'{"a":[]}', subject=tuple(values))
    )
    event = json.loads(text)
    said = {name: value for name, value in zip(("date", "time"), values, strict=True) if value not in ("", "*")}
    assert event["data"] == {"identifier": said, "payload": {"a": []}}
    assert (event["id"], event["sequence"]) == (f"test_polygon@{seq}", seq)
    assert json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode() == text
    assert b"\n" not in text


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://localhost", "http://localhost/schema/mars"),
        ("https://Aviso.Example:8443/api", "https://aviso.example:8443/api/schema/mars"),
        ("HTTP://EXAMPLE:80", "http://example/schema/mars"),
        ("https://example:443", "https://example/schema/mars"),
        ("http://[::1]:8000", "http://[::1]:8000/schema/mars"),
        ("localhost:8000", "localhost:8000/schema/mars"),
    ],
)
def test_addresses_of_schemas(base_url: str, url: str) -> None:
    assert dataschema(base_url, "mars") == url
    event = json.loads(Renderer("mars", None, base_url=base_url).event(Record(1, TS, b"1")))
    assert (event["dataschema"], event["source"]) == (url, base_url)


def test_names_in_addresses() -> None:
    assert dataschema("http://x", "a b/é") == "http://x/schema/a%20b/%C3%A9"


@pytest.mark.parametrize(
    "base_url", ["", "localhost", "localhost:", "ftp://x", "http://", "http://x:port", "http://[::1"]
)
def test_no_addresses(base_url: str) -> None:
    with pytest.raises(BadConfig, match=r"application\.base_url"):
        dataschema(base_url, "mars")
