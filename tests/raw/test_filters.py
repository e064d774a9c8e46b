from __future__ import annotations

import pytest

from seamark.errors import BadInput
from seamark.log.record import Record
from seamark.match.spatial import geometry_of
from seamark.raw.filters import parse_filter

SQUARE = "0,0,0,2,2,2,2,0,0,0"


def record(*subject: str, node: str | None = None, polygon: str | None = None) -> Record:
    geometry = None if polygon is None else geometry_of(polygon)
    return Record(1, 1, b"null", node, None, None, subject or None, geometry)


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("{}", record(), None),
        ('{"subject":["a",null]}', record("a", "x"), record("a")),
        ('{"subject":["a",{"gte":5}]}', record("a", "5"), record("a", "4")),
        ('{"subject":["a",{"lt":5.5}]}', record("a", "5.25"), record("a", "6")),
        ('{"subject":[{"in":["n","S"]}]}', record("s"), record("e")),
        ('{"subject":[{"between":[3,7]}]}', record("7"), record("8")),
        ('{"exclude_nodes":["me"]}', record(node="you"), record(node="me")),
        (f'{{"polygon":"{SQUARE}"}}', record(polygon="2,2,2,3,3,3,3,2,2,2"), record(polygon="5,5,5,6,6,6,6,5,5,5")),
        ('{"point":"1,1"}', record(polygon=SQUARE), record()),
    ],
)
def test_filters(text: str, wanted: Record, unwanted: Record | None) -> None:
    wants = parse_filter(text).compile()
    assert wants(wanted)
    assert unwanted is None or not wants(unwanted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"subjects":[]}',
        '{"subject":[]}',
        '{"subject":["a"' + ',"a"' * 100 + "]}",
        '{"subject":[1]}',
        '{"subject":[{}]}',
        '{"subject":[{"gte":1,"lte":2}]}',
        '{"subject":[{"gte":"x"}]}',
        '{"subject":[{"eq":true}]}',
        '{"subject":[{"eq":null}]}',
        '{"subject":[{"in":[]}]}',
        '{"subject":[{"in":[1,"a"]}]}',
        '{"subject":[{"between":[2,1]}]}',
        '{"subject":[{"eq":NaN}]}',
        '{"subject":[{"near":1}]}',
        f'{{"polygon":"{SQUARE}","point":"1,1"}}',
        '{"polygon":"0,0,1,1"}',
        '{"point":"91,0"}',
    ],
)
def test_bad_filters(text: str) -> None:
    with pytest.raises(BadInput):
        parse_filter(text)
