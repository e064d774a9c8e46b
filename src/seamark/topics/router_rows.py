"""Routers on the shelf: each has a row that says what it is, and one that says how far it got. The second moves with every
copy, in the same commit."""

from __future__ import annotations

import msgspec

from seamark.errors import Corrupt
from seamark.log.protocol import Put, Shelf
from seamark.log.watermarks import Cursor
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.topics.routers import Router

ROUTERS, PLACES = "topics:router", "topics:router-place"

_log = logger("topics")


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a router got: what it has passed of its source, and how many copies it made in its life. For one that
    promises `exactly_once` also from where to read its dest, so as to find copies that it did not make."""

    source: Cursor
    forwarded: int = 0
    dest: Cursor = Cursor()


_encode = msgspec.json.Encoder().encode
_router = msgspec.json.Decoder(Router)
_place = msgspec.json.Decoder(Place)


def router_put(router: Router) -> Put:
    return Put(ROUTERS, router.name.encode(), _encode(router))


def place_put(name: str, place: Place) -> Put:
    return Put(PLACES, name.encode(), _encode(place))


def removal(name: str) -> list[Put]:
    return [Put(ROUTERS, name.encode(), None), Put(PLACES, name.encode(), None)]


def place_of(shelf: Shelf, name: str) -> Place | None:
    """None when nothing is kept of it. Raises Corrupt."""
    row = shelf.fetch(PLACES, name.encode())
    return None if row is None else _place.decode(row)


def load(shelf: Shelf) -> list[tuple[Router, Place]]:
    """All that were kept. One whose rows are damaged is left where it is, and does not run."""
    kept: list[tuple[Router, Place]] = []
    try:
        places = dict(shelf.scan(PLACES))
        for name, row in shelf.scan(ROUTERS):
            if name in places:
                kept.append((_router.decode(row), _place.decode(places[name])))
    except Corrupt as damage:
        _log.error(events.CORRUPT_VALUE, space=ROUTERS, error=damage.message)
    return kept
