"""The small values beside the streams. Implements the `Shelf` capability; written only by commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from seamark.log.chunk import corrupt
from seamark.log.protocol import Put
from seamark.log.seal import Buffer, Damaged, seal, unseal
from seamark.log.store import Change, Space, Store, View, after

_PAGE = 256


class Values:
    """What is on the shelf: the store's values, covered by those acknowledged and not yet committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: dict[bytes, bytes | None] = {}

    def fetch(self, space: str, key: bytes) -> bytes | None:
        place = _place(space, key)
        if place in self._shown:
            return self._shown[place]
        with self._store.view() as view:
            value = view.get(Space.SHELF, place)
            if value is None:
                _check_hole(view, place)
                return None
            return _open(place, value)

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """In key order. Reads a page at a time, so it may be held across other work; it then sees later changes."""
        skip = len(_place(space, b""))
        start: bytes | None = _place(space, prefix)
        stop = after(_place(space, prefix))
        while start is not None:
            page, start = self._page(start, stop)
            for place, value in page:
                yield place[skip:], value

    def show(self, puts: Iterable[Put]) -> None:
        """Acknowledged before their commit."""
        for put in puts:
            self._shown[_place(put.space, put.key)] = put.value

    def pending(self) -> list[Change]:
        return [_change(place, value) for place, value in self._shown.items()]

    def committed(self) -> None:
        self._shown.clear()

    def _page(self, start: bytes, stop: bytes | None) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Some values from `start` on, and where the next page starts."""
        with self._store.view() as view:
            found = {place: _open(place, value) for place, value in islice(view.scan(Space.SHELF, start, stop), _PAGE)}
            behind = max(found) + b"\0" if found else start
            _check_hole(view, start)
            _check_hole(view, behind)
        end = behind if len(found) == _PAGE else None
        for place, shown in self._shown.items():
            if place >= start and (stop is None or place < stop) and (end is None or place < end):
                if shown is None:
                    found.pop(place, None)
                else:
                    found[place] = shown
        return sorted(found.items()), end


def _check_hole(view: View, place: bytes) -> None:
    """A search ends beside a key that was damaged and led it astray: then nobody knows what is there. Raises Corrupt."""
    for beside, value in view.beside(Space.SHELF, place):
        _open(beside, value)


def change_of(put: Put) -> Change:
    return _change(_place(put.space, put.key), put.value)


def _place(space: str, key: bytes) -> bytes:
    return space.encode() + b"\0" + key


def _change(place: bytes, value: bytes | None) -> Change:
    return Space.SHELF, place, None if value is None else seal(place, value)


def _open(place: bytes, value: Buffer) -> bytes:
    try:
        return bytes(unseal(place, value))
    except Damaged as damage:
        space, _, key = place.partition(b"\0")
        raise corrupt(f"{space.decode()}/{key!r}", 0, "shelf", damage) from damage
