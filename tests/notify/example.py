"""Event types that the tests of this room share."""

from __future__ import annotations

from typing import Any

SCHEMA: dict[str, Any] = {
    "test_polygon": {
        "topic": {"base": "polygon", "key_order": ["date", "time"]},
        "identifier": {
            "date": {"type": "DateHandler", "canonical_format": "%Y%m%d", "required": False},
            "time": {"type": "TimeHandler", "required": True},
            "polygon": {"type": "PolygonHandler", "required": True},
        },
        "payload": {"required": False},
    },
    "mars": {
        "topic": {"base": "mars", "key_order": ["class", "expver", "step", "level", "region"]},
        "identifier": {
            "class": {"type": "StringHandler", "max_length": 2, "required": True, "description": "two letters"},
            "expver": {"type": "ExpverHandler", "default": "0001", "required": False},
            "step": {"type": "IntHandler", "range": [0, 100], "required": False},
            "level": {"type": "FloatHandler", "required": False},
            "region": {"type": "EnumHandler", "values": ["north", "south"], "required": False},
        },
        "payload": {"required": True},
    },
    "observations": {
        "topic": {"base": "obs", "key_order": ["date"]},
        "identifier": {
            "date": {"type": "DateHandler", "required": False},
            "point_cloud": {"type": "PointCloudHandler", "required": True},
        },
    },
    "fires": {
        "topic": {"base": "fires", "key_order": ["number"]},
        "identifier": {
            "number": {"type": "IntHandler", "required": True},
            "area": {"type": "PolygonHandler", "required": True},
        },
    },
    "keyed": {
        "topic": {"base": "keyed", "key_order": ["polygon", "n"]},
        "identifier": {
            "n": {"type": "IntHandler", "required": False},
            "polygon": {"type": "PolygonHandler", "required": True},
        },
    },
}
