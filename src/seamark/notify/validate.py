"""From a request to what is done with it: a notification becomes a draft for the log, a watch or a replay becomes an interest.

Both check in the order of the contract, so that of several faults always the same one is told. What stands between the steps
(who may write, who may read) is not known here, so a notification is checked in two.
"""

from __future__ import annotations

from typing import Literal, NoReturn

import msgspec

from seamark import limits
from seamark.errors import BadField, BadFilter
from seamark.log.record import Draft, Geometry
from seamark.match.constraint import Constraint
from seamark.match.filter import Area, Filter
from seamark.match.spatial import geometry_of_value
from seamark.match.subject import WILDCARD, pattern_of
from seamark.notify.eventtype import EventType
from seamark.notify.places import POINT, POINT_CLOUD, POLYGON, PointCloudField, PolygonField, read_point
from seamark.notify.request import Request
from seamark.notify.scalars import ENCODER, scalar_text
from seamark.notify.start import Edge, end_of, refuse_end, start_of
from seamark.notify.topic import STREAM_PREFIX, shown

Operation = Literal["watch", "replay"]
PAYLOAD_GEOMETRY = "spatial_geometry"


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """What a watch or a replay wants."""

    stream: str
    filter: Filter
    topic: str  # for people
    values: dict[str, str]  # canonical, by field; `*` where nothing in particular was asked for
    start: Edge | None
    end: Edge | None = None


# -- notification


def check_notification(request: Request) -> None:
    """What is refused before anybody asks who is calling. Raises BadField."""
    if POINT in request.identifier:
        raise BadField("identifier.point is only supported for watch and replay", field=POINT)
    refuse_end(request, "/notification")


def notification(event: EventType, request: Request) -> Draft:
    """What is stored. Raises BadField or BadFilter."""
    identifier = request.identifier
    if identifier.keys() != event.names:
        _refuse_fields(event, identifier)
    subject = [
        read(value) if type(value := identifier[name]) is str else read_other(value)
        for name, read, read_other in event.steps
    ]
    for other in event.places:
        other.geometry(identifier[other.name])
    place, payload = event.place, request.payload
    geometry = _payload_geometry(payload) if place is None else place.geometry(identifier[place.name])
    if payload is None and event.payload_required:
        raise BadField("Payload is required for notify operation based on schema configuration", field="payload")
    return Draft(ENCODER.encode(payload), None, None, None, tuple(subject), geometry)


def generic_notification(request: Request) -> Draft:
    """The same without a schema: the values by the names of their fields, which are kept beside them."""
    names = sorted(request.identifier)
    subject = [scalar_text(name, request.identifier[name]) for name in names]
    for name, value in zip(names, subject, strict=True):
        if not value:
            raise BadField(f"Field '{name}' cannot be empty", field=name)
    meta = ENCODER.encode(names)
    return Draft(ENCODER.encode(request.payload), None, None, meta, tuple(subject), _payload_geometry(request.payload))


def generic_stream(event_type: str) -> str:
    """The log's name for the stream of an event type without schema. Raises BadField."""
    if not 0 < len(event_type.encode()) <= limits.BASE_BYTES_MAX:
        raise BadField(f"event_type must have 1 to {limits.BASE_BYTES_MAX} bytes", field="event_type")
    return STREAM_PREFIX + event_type


def _refuse_fields(event: EventType, identifier: dict[str, object]) -> NoReturn:
    for name in identifier:
        if name not in event.names:
            raise BadField(f"Unknown field '{name}' provided for notify operation", field=name)
    name = next(name for name in event.fields if name not in identifier)
    raise _missing(name, "notify")


def _payload_geometry(payload: object) -> Geometry | None:
    """Where a notification without a polygon of its own is about, if its payload says so."""
    if type(payload) is dict and PAYLOAD_GEOMETRY in payload:
        return geometry_of_value(payload[PAYLOAD_GEOMETRY])
    return None


# -- watch and replay


def interest(event: EventType | None, request: Request, operation: Operation) -> Interest:
    """What a watch or a replay asks for; `event` None without a schema. Raises BadField or BadFilter."""
    area = _point(request)
    start = start_of(request, needed=operation == "replay")
    end = None
    if operation == "replay":
        assert start is not None
        end = end_of(request, start)
    else:
        refuse_end(request, "/watch")
    if event is None:
        return _generic_interest(request, start, end)
    values, constraints = _fields(event, request.identifier, operation)
    if area is None:
        area = _polygon(event, request.identifier)
    pattern = pattern_of(values[key] for key in event.key_order)
    everywhere = all(token is None for token in pattern)
    wanted = Filter(subject=None if everywhere else pattern, constraints=constraints, area=area)
    return Interest(
        stream=event.stream, filter=wanted, topic=shown(event.base, pattern), values=values, start=start, end=end
    )


def _fields(
    event: EventType, identifier: dict[str, object], operation: Operation
) -> tuple[dict[str, str], list[tuple[int, Constraint]]]:
    """Every declared field as one word, `*` where it may be anything, and the conditions on some of them."""
    values: dict[str, str] = {}
    constraints: list[tuple[int, Constraint]] = []
    for name, field in event.fields.items():
        values[name] = WILDCARD
        if isinstance(field, PointCloudField):
            _check_cloud(field, identifier, operation)
        elif name not in identifier:
            # A point stands in for the polygon: both say where.
            if field.required and not (name == POLYGON and POINT in identifier):
                raise _missing(name, operation)
        elif isinstance(value := identifier[name], dict):
            constraint = field.constraint(value)  # only fields of the subject have any
            constraints.append((event.positions[name], constraint))
        else:
            values[name] = field.read(value) if isinstance(value, str) else field.read_other(value)
    return values, constraints


def _point(request: Request) -> Area | None:
    """The point asked for, checked before everything else. Raises BadField."""
    if POINT not in request.identifier:
        return None
    if POLYGON in request.identifier:
        raise BadField(
            "Cannot specify both identifier.polygon and identifier.point. Provide only one spatial filter.", field=POINT
        )
    try:
        return read_point(request.identifier[POINT])
    except BadFilter as error:
        why = f"identifier.point must be a valid 'lat,lon' coordinate pair: {error.message}"
        raise BadField(why, field=POINT, details=error.message) from None


def _polygon(event: EventType, identifier: dict[str, object]) -> Area | None:
    """The polygon asked for, where records of this type have a place to compare it with."""
    place = event.place
    if POLYGON not in identifier or place is None:
        return None
    value = identifier[POLYGON]
    if isinstance(place, PointCloudField):
        place = PolygonField(POLYGON, required=False)
        if isinstance(value, dict):
            place.constraint(value)  # which it does not take; where it is declared, that was said before
    return place.area(value) if place.name == POLYGON else None


def _check_cloud(field: PointCloudField, identifier: dict[str, object], operation: Operation) -> None:
    """Nobody asks for a cloud; a polygon does for it."""
    if POINT_CLOUD in identifier:
        raise BadField(
            f"Field '{POINT_CLOUD}' is not supported for {operation} operation; use '{POLYGON}'", field=POINT_CLOUD
        )
    if field.required and POLYGON not in identifier:
        raise _missing(POINT_CLOUD, operation)


def _generic_interest(request: Request, start: Edge | None, end: Edge | None) -> Interest:
    values: dict[str, str] = {}
    for name in sorted(request.identifier):
        value = request.identifier[name]
        if isinstance(value, dict):
            raise BadField(f"Field '{name}' constraint object is not supported without schema", field=name)
        values[name] = scalar_text(name, value)
    pattern = pattern_of(values.values())
    stream, topic = generic_stream(request.event_type), shown(request.event_type, pattern)
    return Interest(stream=stream, filter=Filter(subject=pattern), topic=topic, values=values, start=start, end=end)


def _missing(name: str, operation: str) -> BadField:
    return BadField(f"Required field '{name}' missing for {operation} operation", field=name)
