"""What clients may know of the schema."""

from __future__ import annotations

import json

from seamark.notify.catalogue import Catalogue
from seamark.notify.eventtype import Schema
from seamark.notify.schema import read_schema

MARS = {
    "identifier": {
        "class": {"description": "two letters", "max_length": 2, "required": True, "type": "StringHandler"},
        "expver": {"default": "0001", "required": False, "type": "ExpverHandler"},
        "level": {"range": None, "required": False, "type": "FloatHandler"},
        "region": {"required": False, "type": "EnumHandler", "values": ["north", "south"]},
        "step": {"range": [0, 100], "required": False, "type": "IntHandler"},
    },
    "payload": {"required": True},
}


def test_everything(schema: Schema) -> None:
    body = Catalogue(schema).everything
    found = json.loads(body)
    assert json.dumps(found, separators=(",", ":"), sort_keys=True).encode() == body
    assert set(found) == {"event_types", "schema", "status", "total_schemas"}
    assert found["event_types"] == ["fires", "keyed", "mars", "observations", "test_polygon"]
    assert (found["status"], found["total_schemas"]) == ("success", 5)
    assert found["schema"]["mars"] == MARS
    assert found["schema"]["test_polygon"] == {
        "identifier": {
            "date": {"canonical_format": "%Y%m%d", "required": False, "type": "DateHandler"},
            "polygon": {"required": True, "type": "PolygonHandler"},
            "time": {"required": True, "type": "TimeHandler"},
        },
        "payload": {"required": False},
    }
    assert found["schema"]["observations"]["payload"] is None
    assert found["schema"]["observations"]["identifier"]["point_cloud"]["max_points"] == 10_000
    for secret in (b"topic", b"key_order", b"storage", b"auth"):
        assert secret not in body


def test_absent_options_are_null() -> None:
    fields = {
        "s": {"type": "StringHandler", "required": True},
        "x": {"type": "ExpverHandler", "required": True},
        "i": {"type": "IntHandler", "required": True},
    }
    shown = json.loads(Catalogue(read_schema({"e": {"identifier": fields}})).everything)["schema"]["e"]["identifier"]
    assert shown == {
        "s": {"max_length": None, "required": True, "type": "StringHandler"},
        "x": {"default": None, "required": True, "type": "ExpverHandler"},
        "i": {"range": None, "required": True, "type": "IntHandler"},
    }


def test_one(schema: Schema) -> None:
    status, body = Catalogue(schema).one("mars", "id")
    assert status == 200
    assert json.loads(body) == {"event_type": "mars", "schema": MARS, "status": "success"}
    assert body.startswith(b'{"event_type":"mars","schema":{"identifier":{"class":{"description":')
    status, body = Catalogue(schema).one("x", "id")
    assert (status, body) == (
        404,
        b'{"available_types":["fires","keyed","mars","observations","test_polygon"],"message":"Event type \'x\' not found",'
        b'"request_id":"id","status":"error"}',
    )


def test_no_schema() -> None:
    catalogue = Catalogue(read_schema(None))
    assert catalogue.everything == (
        b'{"event_types":[],"message":"No notification schema configured","schema":{},"status":"success","total_schemas":0}'
    )
    assert catalogue.one("x", "id") == (
        404,
        b'{"message":"No notification schema configured","request_id":"id","status":"error"}',
    )
    assert b"message" not in Catalogue(read_schema({})).everything
