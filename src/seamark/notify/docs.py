"""What the OpenAPI document says about the notify routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Operation = Mapping[str, Any]


def _json(example: object, text: str) -> Operation:
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


def _body(example: object) -> Operation:
    return {"required": True, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


def _stream(text: str) -> Operation:
    return {"description": text, "content": {"text/event-stream": {"schema": {"type": "string"}}}}


_ID = "a3f1d2c8-9b4e-4f7a-bd56-1c8e2a9d4e3f"
_POLYGON = "(52.5,13.4,52.6,13.5,52.5,13.6,52.4,13.5,52.5,13.4)"
_FIELDS = {
    "date": {"canonical_format": "%Y%m%d", "required": False, "type": "DateHandler"},
    "time": {"required": True, "type": "TimeHandler"},
    "polygon": {"required": True, "type": "PolygonHandler"},
}
_ENTRY = {"identifier": _FIELDS, "payload": {"required": False}}

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("POST", "/api/v1/notification"): (
        "Publish a notification: checked against the schema of its event type, and stored before the answer",
        {
            "requestBody": _body(
                {
                    "event_type": "test_polygon",
                    "identifier": {"date": "20250706", "time": "1200", "polygon": _POLYGON},
                    "payload": {"note": "x"},
                }
            ),
            "responses": {
                "200": _json(
                    {"status": "success", "request_id": _ID, "processed_at": "2026-02-25T18:50:00Z"},
                    "it is stored, as durably as the engine is said to be",
                )
            },
        },
    ),
    ("POST", "/api/v1/watch"): (
        "Watch an event type: from a sequence or a date if one is given, and from now on",
        {
            "requestBody": _body(
                {
                    "event_type": "test_polygon",
                    "identifier": {"time": {"in": ["1200"]}, "point": "52.5,13.5"},
                    "from_id": "7",
                }
            ),
            "responses": {
                "200": _stream(
                    "events: live-notification, replay-control, replay, heartbeat, error, connection-closing"
                )
            },
        },
    ),
    ("POST", "/api/v1/replay"): (
        "Replay an event type: from a sequence or a date, to another or to the end",
        {
            "requestBody": _body(
                {
                    "event_type": "test_polygon",
                    "identifier": {"time": "1200", "polygon": _POLYGON},
                    "from_date": "2026-02-25T17:01:02Z",
                    "to_date": "2026-02-25T18:00:00Z",
                }
            ),
            "responses": {"200": _stream("events: replay-control, replay, error, connection-closing")},
        },
    ),
    ("GET", "/api/v1/schema"): (
        "All event types with their fields",
        {
            "responses": {
                "200": _json(
                    {
                        "event_types": ["test_polygon"],
                        "schema": {"test_polygon": _ENTRY},
                        "status": "success",
                        "total_schemas": 1,
                    },
                    "for everybody",
                )
            }
        },
    ),
    ("GET", "/api/v1/schema/{event_type}"): (
        "One event type with its fields",
        {
            "responses": {
                "200": _json(
                    {"event_type": "test_polygon", "schema": _ENTRY, "status": "success"}, "404 when there is none"
                )
            }
        },
    ),
    ("DELETE", "/api/v1/admin/notification/{id}"): (
        "Delete one notification by its id, `<event type>@<sequence>`",
        {
            "responses": {
                "200": _json(
                    {
                        "success": True,
                        "message": "Notification deleted",
                        "notification_id": "test_polygon@42",
                        "request_id": _ID,
                    },
                    "404 when there is none",
                )
            }
        },
    ),
    ("DELETE", "/api/v1/admin/wipe/stream"): (
        "Delete all notifications of one event type, named by itself or by its stream",
        {
            "requestBody": _body({"stream_name": "test_polygon"}),
            "responses": {
                "200": _json(
                    {"success": True, "message": "Successfully wiped stream: test_polygon", "request_id": _ID},
                    "sequences go on, watches stay; 404 when nothing has that name",
                )
            },
        },
    ),
    ("DELETE", "/api/v1/admin/wipe/all"): (
        "Delete all notifications",
        {
            "responses": {
                "200": _json(
                    {"success": True, "message": "Successfully wiped all data", "request_id": _ID}, "sequences go on"
                )
            }
        },
    ),
}
