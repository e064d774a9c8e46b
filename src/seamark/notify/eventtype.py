"""Event types as the surface uses them: which fields identify a notification, in which order they make its key, and what else
was configured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from seamark.errors import UnknownEventType
from seamark.log.settings import StreamSettings
from seamark.notify.fields import Field
from seamark.notify.places import POINT_CLOUD, POLYGON, PointCloudField, PolygonField
from seamark.notify.policy import StoragePolicy, StreamAuth
from seamark.notify.topic import STREAM_PREFIX

Place = PolygonField | PointCloudField


class EventType:
    """One entry of the schema, ready for use. `key_order` names the tokens of the subject.

    `place` is the field that becomes the geometry of a record; `places` are the other spatial ones, which are only checked.
    `steps` are the fields of the subject in order, each with its two ways of being read: for strings, and for any other JSON
    value.
    """

    __slots__ = (
        "auth",
        "base",
        "fields",
        "history_max",
        "key_order",
        "name",
        "names",
        "payload_required",
        "place",
        "places",
        "policy",
        "positions",
        "steps",
        "stream",
    )

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Field],
        *,
        base: str | None = None,
        key_order: tuple[str, ...] | None = None,
        payload_required: bool | None = None,
        policy: StoragePolicy | None = None,
        auth: StreamAuth | None = None,
        history_max: int | None = None,
    ) -> None:
        self.name = name
        self.fields = fields
        self.base = name if base is None else base
        self.stream = STREAM_PREFIX + self.base
        self.key_order = _default_order(fields) if key_order is None else key_order
        self.payload_required = payload_required  # None: there was no `payload` block
        self.policy = policy or StoragePolicy()
        self.auth = auth or StreamAuth()
        self.history_max = history_max
        self.names = frozenset(fields)
        self.positions = {key: position for position, key in enumerate(self.key_order)}
        places = [field for field in fields.values() if isinstance(field, Place)]
        self.place = _place(places)
        self.places = tuple(field for field in places if field is not self.place)
        self.steps: tuple[tuple[str, Callable[[str], str], Callable[[object], str]], ...] = tuple(
            (key, fields[key].read, fields[key].read_other) for key in self.key_order
        )

    def settings(self, default: StreamSettings) -> StreamSettings:
        """How its stream is kept, where `default` is what the engine says."""
        return self.policy.settings(default)


class Schema:
    """All event types. `strict`: nothing else is taken."""

    __slots__ = ("_by_base", "_by_name", "configured", "strict")

    def __init__(self, event_types: Mapping[str, EventType] | None, *, strict: bool | None = None) -> None:
        """None: there is no schema in the configuration, which is told apart from an empty one."""
        self.configured = event_types is not None
        self._by_name = dict(event_types or {})
        self._by_base = {event.base: event for event in self._by_name.values()}
        self.strict = bool(self._by_name) if strict is None else strict

    def __iter__(self) -> Iterator[EventType]:
        return iter(self._by_name.values())

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)

    def get(self, name: str) -> EventType | None:
        return self._by_name.get(name)

    def of_base(self, base: str) -> EventType | None:
        return self._by_base.get(base)

    def find(self, name: str) -> EventType | None:
        """None for an event type without schema, where that is allowed. Raises UnknownEventType, also for the base of another:
        its stream is that one's, with its schema and its roles."""
        event = self._by_name.get(name)
        if event is None and (self.strict or name in self._by_base):
            raise UnknownEventType(f"unknown event type '{name}'", event_type=name, configured=self.names)
        return event

    def resolve(self, name: str) -> EventType | None:
        """The one that an operator means: by its name, exactly or in another case, else by its base."""
        lower = name.lower()
        return (
            self._by_name.get(name)
            or next((event for event in self if event.name.lower() == lower), None)
            or next((event for event in self if event.base.lower() == lower), None)
        )


def _default_order(fields: Mapping[str, Field]) -> tuple[str, ...]:
    """Without a topic: the event type's name and all values, by the names of the fields."""
    return tuple(sorted(key for key, field in fields.items() if not field.spatial))


def _place(places: Sequence[Place]) -> Place | None:
    """The one that filters are about where it has their name, else the first."""
    named = [field for field in places if field.name in (POLYGON, POINT_CLOUD)]
    return next(iter(named or places), None)
