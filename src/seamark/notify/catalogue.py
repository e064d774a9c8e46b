"""Schema discovery: what clients may know of the event types. Topics, storage and access are nobody's business."""

from __future__ import annotations

from seamark.notify.eventtype import EventType, Schema
from seamark.notify.scalars import ENCODER

NO_SCHEMA = "No notification schema configured"


class Catalogue:
    """Answers, made once."""

    __slots__ = ("_each", "_types", "everything")

    def __init__(self, schema: Schema) -> None:
        shown = {event.name: _shown(event) for event in schema}
        body: dict[str, object] = {
            "event_types": sorted(shown),
            "schema": shown,
            "status": "success",
            "total_schemas": len(shown),
        }
        if not schema.configured:
            body["message"] = NO_SCHEMA
        self.everything = ENCODER.encode(body)
        self._types = sorted(shown) if schema.configured else None
        self._each = {
            name: ENCODER.encode({"event_type": name, "schema": one, "status": "success"})
            for name, one in shown.items()
        }

    def one(self, name: str, request_id: str) -> tuple[int, bytes]:
        """Status and body for one event type."""
        found = self._each.get(name)
        if found is not None:
            return 200, found
        missing = {"message": f"Event type '{name}' not found", "request_id": request_id, "status": "error"}
        if self._types is None:
            return 404, ENCODER.encode(missing | {"message": NO_SCHEMA})
        return 404, ENCODER.encode(missing | {"available_types": self._types})


def _shown(event: EventType) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, field in event.fields.items():
        about: dict[str, object] = {"type": field.handler, "required": field.required, **field.options()}
        if field.description is not None:
            about["description"] = field.description
        fields[name] = about
    required = event.payload_required
    return {"identifier": fields, "payload": None if required is None else {"required": required}}
