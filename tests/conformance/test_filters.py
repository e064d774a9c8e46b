"""What the contract's own client is given when it filters: as history, and live, exactly what its filter says."""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Callable
from typing import Any

import pyaviso
import pytest

from seamark.testing.server import ServerProcess
from tests.conformance.rig import POLYGON, connect, listening, replay, sequences, wait_for_watches

pytestmark = pytest.mark.slow  # processes of their own

DATE = "20260913"
FIELDS = ("severity", "anomaly", "region")
WEATHER = list(itertools.product((0, 3, 7, 10), (-1.5, 0.0, 40.0), ("north", "south", "west")))
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "in": lambda value, among: value in among,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "between": lambda value, ends: ends[0] <= value <= ends[1],
}
FILTERS: list[dict[str, Any]] = [
    {},
    {"severity": 3},
    {"severity": "03"},
    {"anomaly": -1.5},
    {"anomaly": "4e1"},
    {"region": "NORTH"},
    {"severity": {"eq": 7}},
    {"severity": {"in": [0, 10]}},
    {"severity": {"gt": 3}},
    {"severity": {"gte": 3}},
    {"severity": {"lt": 3}},
    {"severity": {"lte": 3}},
    {"severity": {"between": [3, 7]}},
    {"severity": {"between": [4, 6]}},
    {"anomaly": {"eq": 40}},
    {"anomaly": {"in": [40.0, -1.5]}},
    {"anomaly": {"gt": -1.5}},
    {"anomaly": {"lte": 0}},
    {"anomaly": {"between": [-0.5, 0.5]}},
    {"region": {"eq": "south"}},
    {"region": {"in": ["North", "west"]}},
    {"severity": {"gte": 3}, "anomaly": {"between": [0, 40]}, "region": {"in": ["north", "south"]}},
    {"severity": 10, "anomaly": {"lt": 0}, "region": "west"},
]
SPOTS = {  # closed rings, latitude first
    "diamond": POLYGON,
    "far": [[10, 10], [10, 11], [11, 11], [11, 10], [10, 10]],
    "around": [[50, 10], [50, 20], [55, 20], [55, 10], [50, 10]],
    "corner": [[52.6, 13.5], [52.7, 13.5], [52.7, 13.6], [52.6, 13.5]],  # shares one vertex with the diamond
    "overlap": [[52.5, 13.5], [52.5, 13.8], [52.8, 13.8], [52.8, 13.5], [52.5, 13.5]],
}
PLACES: list[tuple[dict[str, Any], set[str]]] = [
    ({"polygon": POLYGON}, {"diamond", "around", "corner", "overlap"}),
    ({"polygon": SPOTS["far"]}, {"far"}),
    ({"polygon": SPOTS["corner"]}, {"diamond", "around", "corner", "overlap"}),
    ({"polygon": [[0, 0], [0, 1], [1, 1], [0, 0]]}, set()),
    ({"polygon": "(10.4,10.4,10.4,10.6,10.6,10.6,10.4,10.4)"}, {"far"}),
    ({"point": [52.5, 13.45]}, {"diamond", "around"}),
    ({"point": [52.5, 13.4]}, {"around"}),  # a vertex of the diamond
    ({"point": "10.5,10.5"}, {"far"}),
    ({"point": [0, 0]}, set()),
    ({"point": [52.55, 13.58], "date": DATE}, {"around", "overlap"}),
    ({"point": [52.55, 13.58], "date": "20260914"}, set()),
]


def canonical(field: str, value: Any) -> Any:
    if field == "region":
        return value.lower()
    return int(value) if field == "severity" else float(value)


def passes(values: tuple[int, float, str], wanted: dict[str, Any]) -> bool:
    """What the contract says of a filter, a field at a time."""
    for field, value in zip(FIELDS, values, strict=True):
        condition = wanted.get(field, {"eq": value})
        constraint = condition if isinstance(condition, dict) else {"eq": condition}
        ((name, operand),) = constraint.items()
        several = isinstance(operand, list)
        if not OPERATORS[name](
            value, [canonical(field, one) for one in operand] if several else canonical(field, operand)
        ):
            return False
    return True


def publish_weather(client: pyaviso.AvisoClient) -> None:
    for values in WEATHER:
        identifier = {"date": DATE, **dict(zip(FIELDS, values, strict=True))}
        client.notify(event_type="weather", identifier=identifier, payload=list(values))


def publish_areas(client: pyaviso.AvisoClient) -> None:
    for name, ring in SPOTS.items():
        client.notify(event_type="areas", identifier={"date": DATE, "polygon": ring}, payload=name)


@pytest.fixture(scope="module")
def published(server: ServerProcess) -> pyaviso.AvisoClient:
    client = connect(server.base_url)
    publish_weather(client)
    publish_areas(client)
    return client


@pytest.mark.parametrize("wanted", FILTERS, ids=json.dumps)
def test_history_is_filtered_by_constraints(published: pyaviso.AvisoClient, wanted: dict[str, Any]) -> None:
    heard = replay(published, "weather", filter={"date": DATE, **wanted}, until=len(WEATHER))
    assert [one.payload for one in heard] == [list(values) for values in WEATHER if passes(values, wanted)]


@pytest.mark.parametrize(("wanted", "names"), PLACES, ids=lambda value: json.dumps(value, default=sorted))
def test_history_is_filtered_by_place(published: pyaviso.AvisoClient, wanted: dict[str, Any], names: set[str]) -> None:
    heard = replay(published, "areas", filter=wanted, until=len(SPOTS))
    assert [one.payload for one in heard] == [name for name in SPOTS if name in names]
    assert all(one.identifier["polygon"] == SPOTS[one.payload] for one in heard)


def test_all_filters_live_at_once(server: ServerProcess, published: pyaviso.AvisoClient) -> None:
    wanted: dict[str, dict[str, Any]] = {
        **{f"weather {n}": {"event_type": "weather", "filter": {"date": DATE, **one}} for n, one in enumerate(FILTERS)},
        **{f"areas {n}": {"event_type": "areas", "filter": one} for n, (one, _) in enumerate(PLACES)},
    }
    expected: dict[str, list[Any]] = {
        **{f"weather {n}": [list(v) for v in WEATHER if passes(v, one)] for n, one in enumerate(FILTERS)},
        **{f"areas {n}": [name for name in SPOTS if name in names] for n, (_, names) in enumerate(PLACES)},
    }
    with listening(connect(server.base_url).listen_many(wanted)) as listener:
        wait_for_watches(server.base_url, "weather", len(FILTERS))
        wait_for_watches(server.base_url, "areas", len(PLACES))
        publish_weather(published)
        publish_areas(published)
        heard = listener.until(sum(map(len, expected.values())))
    assert {name: [one.payload for who, one in heard if who == name] for name in expected} == expected


def test_point_clouds_are_found_by_a_polygon(published: pyaviso.AvisoClient) -> None:
    for cloud in ([[46, 8], [47, 9]], [[46.5, 8.5]], [[1, 1], [2, 2]]):
        published.notify(event_type="observations", identifier={"date": DATE, "point_cloud": cloud})
    ring = [[46, 8], [46, 9], [47, 9], [47, 8], [46, 8]]
    heard = replay(published, "observations", filter={"date": DATE, "polygon": ring})
    assert sequences(heard) == [1, 2]
    assert heard[0].identifier["point_cloud"] == [[46, 8], [47, 9]]


@pytest.mark.parametrize(
    ("event_type", "wanted"),
    [
        ("weather", {}),
        ("weather", {"date": {"eq": DATE}}),
        ("weather", {"date": DATE, "severity": {"gte": 1, "lte": 3}}),
        ("weather", {"date": DATE, "severity": {"gt": "3"}}),
        ("weather", {"date": DATE, "severity": {"between": [3]}}),
        ("weather", {"date": DATE, "severity": {"near": 3}}),
        ("weather", {"date": DATE, "severity": 11}),
        ("weather", {"date": DATE, "region": {"gt": "north"}}),
        ("weather", {"date": DATE, "region": "east"}),
        ("areas", {}),
        ("areas", {"polygon": POLYGON, "point": [1, 1]}),
        ("areas", {"polygon": POLYGON[:-1]}),
        ("areas", {"point": [91, 0]}),
    ],
    ids=str,
)
def test_a_wrong_filter_stops_the_listener(
    published: pyaviso.AvisoClient, event_type: str, wanted: dict[str, Any]
) -> None:
    for endpoint, mode, start in (("WATCH", "watch", None), ("REPLAY", "replay_only", 0)):
        with listening(published.listen(event_type, filter=wanted, mode=mode, start_from=start)) as listener:
            error = listener.end()
        assert isinstance(error, pyaviso.HttpError)
        assert error.status == 400
        assert json.loads(error.body)["code"] == f"INVALID_{endpoint}_REQUEST"
