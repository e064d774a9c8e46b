"""What clients write: for each value some of the ways in which it may be written; and notifications and wishes by chance, each as
what is sent together with what it means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from tests.notify.model import SECOND, Condition, Kind, Place, Ring, Span, Where, Wish

MILLISECOND = SECOND // 1_000
HISTORY_MAX = 6

KINDS = (
    Kind("things", "stuff", ("word", "step", "level", "side"), "polygon", frozenset({"word"}), history_max=HISTORY_MAX),
    Kind("days", "days", ("date", "time", "expver"), latest=True, history_max=4),
    Kind("few", "few", ("step",), cap=4, history_max=HISTORY_MAX),
    Kind(
        "fresh", "fresh", ("side", "step"), "polygon", frozenset({"polygon"}), ttl=60 * SECOND, history_max=HISTORY_MAX
    ),
    Kind("clouds", "clouds", ("word",), "point_cloud", frozenset({"point_cloud"}), history_max=HISTORY_MAX),
    Kind("free", "free", (), history_max=HISTORY_MAX, free=True),
)

_INT = {"type": "IntHandler", "required": False}
_SIDE = {"type": "EnumHandler", "values": ["north", "South"], "required": False}
_PLACE = {"type": "PolygonHandler"}
SCHEMA: dict[str, Any] = {
    "things": {
        "topic": {"base": "stuff", "key_order": ["word", "step", "level", "side"]},
        "identifier": {
            "word": {"type": "StringHandler", "required": True},
            "step": _INT,
            "level": {"type": "FloatHandler", "required": False},
            "side": _SIDE,
            "polygon": {**_PLACE, "required": False},
        },
    },
    "days": {
        "topic": {"base": "days", "key_order": ["date", "time", "expver"]},
        "identifier": {
            "date": {"type": "DateHandler", "required": False},
            "time": {"type": "TimeHandler", "required": False},
            "expver": {"type": "ExpverHandler", "default": "1", "required": False},
        },
        "payload": {"required": True},
        "storage_policy": {"allow_duplicates": False},
        "max_historical_notifications": 4,
    },
    "few": {
        "topic": {"base": "few", "key_order": ["step"]},
        "identifier": {"step": _INT},
        "storage_policy": {"max_messages": 4},
    },
    "fresh": {
        "topic": {"base": "fresh", "key_order": ["side", "step"]},
        "identifier": {"side": _SIDE, "step": _INT, "polygon": {**_PLACE, "required": True}},
        "storage_policy": {"retention_time": "1m"},
    },
    "clouds": {
        "topic": {"base": "clouds", "key_order": ["word"]},
        "identifier": {
            "word": {"type": "StringHandler", "required": False},
            "point_cloud": {"type": "PointCloudHandler", "required": True},
        },
    },
}

SPELLINGS: dict[str, dict[str, tuple[object, ...]]] = {
    "word": {
        "od": ("od",),
        "OD": ("OD",),
        "a.b*c>d%2E": ("a.b*c>d%2E",),
        "7": ("7", 7),
        "true": (True, "true"),
        "ü ": ("ü ",),
    },
    "step": {
        "0": (0, "0", "-0", "+00"),
        "7": (7, "7", "+7", "007"),
        "42": (42, "42"),
        "-3": (-3, "-3", "-03"),
        "9007199254740993": (9007199254740993, "9007199254740993"),
    },
    "level": {
        "2.5": (2.5, "2.5", "+2.50", "25e-1", ".25E1"),
        "42": (42, 42.0, "42.", "4.2E1"),
        "-0": (-0.0, "-0.0"),
        "0": (0, 0.0, "0"),
        "-0.5": (-0.5, "-.5"),
    },
    "side": {"north": ("north", "North", "NORTH"), "south": ("south", "South")},
    "date": {
        "20250706": ("20250706", 20250706, "2025-07-06", "2025-187"),
        "20240229": ("20240229", "2024-02-29", "2024-060"),
        "20241231": ("2024-366", "20241231"),
    },
    "time": {"0900": (9, "9", "09", "9:00", "0900"), "1230": ("12:30", 1230), "0000": (0, "00", "0000")},
    "expver": {"0001": ("1", 1, "0001", "+1", ""), "abc": ("ABC", "abc"), "12345": (12345, "012345")},
    "a": {"x": ("x",), "1": (1, "1")},
    "b": {"y": ("y",), "false": (False,)},
}
NUMBERS = {"step": (-3, 0, 1, 7, 42, 9007199254740992, 9007199254740993), "level": (-0.5, 0, 0.0, 2.5, 2.75, 42, 42.0)}
PAYLOADS: tuple[Any, ...] = (None, 1, "text", True, [1, "a", None], {"b": {"d": 1, "c": "é"}, "a": []}, "", {})
BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("things", {"step": "4.0"}),
    ("things", {"step": " 4"}),
    ("things", {"step": {"eq": 4}}),
    ("things", {"level": "nan"}),
    ("things", {"level": "1e999"}),
    ("things", {"side": "east"}),
    ("things", {"word": ""}),
    ("things", {"word": None}),
    ("things", {"word": ["od"]}),
    ("things", {"point": "1,1"}),
    ("things", {"other": "1"}),
    ("things", {"polygon": "(0,0,0,4,4,4,4,0)"}),
    ("things", {"polygon": "(0,0,0,4,4,4,0,0"}),
    ("things", {"polygon": "0,0,0,4,99,4,0,0"}),
    ("days", {"date": "2025-02-29"}),
    ("days", {"date": "2025-366"}),
    ("days", {"time": "930"}),
    ("days", {"time": "24"}),
    ("clouds", {"point_cloud": []}),
    ("clouds", {"point_cloud": "1,1"}),
)


@dataclass(frozen=True)
class Notice:
    """A notification: what is sent, and what it means."""

    kind: Kind
    identifier: dict[str, Any]
    payload: Any
    tokens: dict[str, str]
    where: Where | None
    told: bool


@dataclass(frozen=True)
class Asking:
    """The same for a watch or a replay."""

    kind: Kind
    identifier: dict[str, Any]
    wish: Wish


def some_value(chance: Random, name: str) -> tuple[str, object]:
    canonical = chance.choice(list(SPELLINGS[name]))
    return canonical, chance.choice(SPELLINGS[name][canonical])


def some_ring(chance: Random) -> tuple[Ring, Any]:
    """A box or half of one on a small grid, so that edges and corners often meet; and a way to write it."""
    lat, lon = chance.randint(0, 5), chance.randint(0, 5)
    height, width = chance.randint(1, 4), chance.randint(1, 4)
    corners = [(lat, lon), (lat, lon + width), (lat + height, lon + width), (lat + height, lon)]
    if chance.random() < 0.5:
        del corners[chance.randrange(4)]
    if chance.random() < 0.5:
        corners.reverse()
    closed = [*corners, corners[0]]
    flat = [number for pair in closed for number in pair]
    written = chance.choice(
        [
            ",".join(map(str, flat)),
            f"({','.join(map(str, flat))})",
            f" ( {' , '.join(f'{number}.0' for number in flat)} ) ",
            [list(pair) for pair in closed],
            [[float(pair[0]), pair[1]] for pair in closed],
        ]
    )
    return tuple((Fraction(a), Fraction(b)) for a, b in corners), written


def some_point(chance: Random) -> tuple[Place, Any]:
    """On the same grid, and between its lines."""
    lat, lon = chance.randint(0, 16) / 2, chance.randint(0, 16) / 2
    written = chance.choice([f"{lat},{lon}", f"({lat}, {lon})", f" {lat} ,{lon} ", [lat, lon]])
    return (Fraction(lat), Fraction(lon)), written


def some_cloud(chance: Random) -> Where:
    pairs = [[float(chance.randint(0, 9)), float(chance.randint(0, 9))] for _ in range(chance.randint(1, 4))]
    return Where(tuple((Fraction(lat), Fraction(lon)) for lat, lon in pairs), False, pairs)


def some_notice(chance: Random, kind: Kind) -> Notice:
    names = chance.choice([("a",), ("a", "b"), ("b",)]) if kind.free else kind.keys
    chosen = {name: some_value(chance, name) for name in names}
    identifier: dict[str, Any] = {name: spelled for name, (_, spelled) in chosen.items()}
    where, payload = None, chance.choice(PAYLOADS)
    if kind.place == "polygon":
        corners, written = some_ring(chance)
        where = Where(corners, True, written)
        identifier["polygon"] = written
    elif kind.place == "point_cloud":
        where = some_cloud(chance)
        identifier["point_cloud"] = where.written
    elif kind.name == "few" and chance.random() < 0.5:
        corners, written = some_ring(chance)
        if isinstance(written, str):
            where, payload = Where(corners, True, written), {"spatial_geometry": written, "n": 1}
    if kind.name == "days" and payload is None:
        payload = 0
    tokens = {name: canonical for name, (canonical, _) in chosen.items()}
    return Notice(kind, identifier, payload, tokens, where, kind.place is not None)


def some_condition(chance: Random, name: str) -> tuple[Condition, dict[str, Any]]:
    if name == "side":
        words = chance.choices(["north", "NORTH", "South"], k=2)
        if chance.random() < 0.5:
            return Condition("eq", (words[0].lower(),)), {"eq": words[0]}
        return Condition("in", tuple(word.lower() for word in words)), {"in": words}
    operator = chance.choice(["eq", "in", "gt", "gte", "lt", "lte", "between"])
    count = {"in": 3, "between": 2}.get(operator, 1)
    numbers = chance.choices(NUMBERS[name], k=count)
    if operator == "between":
        numbers.sort()
    condition = Condition(operator, tuple(map(Fraction, numbers)))
    return condition, {operator: numbers if operator in ("in", "between") else numbers[0]}


def some_asking(chance: Random, kind: Kind) -> Asking:
    identifier: dict[str, Any] = {}
    words: dict[str, str] = {}
    wanted: dict[str, Condition] = {}
    names = chance.choice([("a",), ("a", "b")]) if kind.free else kind.keys
    insists_on = chance.choices(names, k=chance.choice([0, 1, 1, 2]))
    for name in names:
        if name not in insists_on:
            if kind.free or name in kind.required:
                words[name] = identifier[name] = "*"
        elif name in NUMBERS or (name == "side" and chance.random() < 0.5):
            wanted[name], identifier[name] = some_condition(chance, name)
        else:
            words[name], identifier[name] = some_value(chance, name)
    polygon, point = None, None
    where = chance.choice(["nowhere", "nowhere", "polygon", "point"])
    if kind.name == "clouds" or (where == "polygon" and kind.place is not None):
        polygon, identifier["polygon"] = some_ring(chance)
    elif not kind.free and (where == "point" or "polygon" in kind.required):
        point, identifier["point"] = some_point(chance)
    if chance.random() < 0.2 and not kind.free:
        identifier["unheard_of"] = "is not looked at"
    return Asking(kind, identifier, Wish(words, wanted, polygon, point))


def some_span(chance: Random, moments: list[int], head: int, *, replay: bool) -> tuple[Span, dict[str, str]]:
    """From and to anywhere; `moments` are those at which something happened."""
    how = chance.choice(["id", "id", "date"] if replay else ["id", "id", "date", "live"])
    if how == "live":
        return Span(), {}
    body: dict[str, str] = {}
    from_id = from_date = to_id = to_date = None
    if how == "id":
        from_id = chance.choice([0, 1, 1, chance.randint(1, head + 2)])
        body["from_id"] = chance.choice(number_texts(from_id))
    else:
        from_date = chance.choice(moments) + chance.choice([-1, 0, 0, 0, 1]) * MILLISECOND
        body["from_date"] = chance.choice(moment_texts(from_date))
    until = chance.choice(["open", "id", "date"]) if replay else "open"
    if until == "id":
        to_id = chance.randint(from_id or 0, max(from_id or 0, head + 2))
        body["to_id"] = chance.choice(number_texts(to_id))
    elif until == "date":
        to_date = max(chance.choice(moments) + chance.choice([-1, 0, 0, 0, 1]) * MILLISECOND, from_date or 0)
        body["to_date"] = chance.choice(moment_texts(to_date))
    return Span(from_id, from_date, to_id, to_date), body


def number_texts(number: int) -> list[str]:
    return [str(number), f"+{number}", f"00{number}"]


def moment_texts(ns: int) -> list[str]:
    """Of a whole number of milliseconds."""
    milliseconds = ns // MILLISECOND
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    naive = at.strftime("%Y-%m-%dT%H:%M:%S") + f".{milliseconds % 1000:03d}"
    east = (at + timedelta(hours=2)).strftime("%Y-%m-%d %H:%M:%S") + f".{milliseconds % 1000:03d}+02:00"
    texts = [str(milliseconds), f"{naive}Z", naive, naive.replace("T", " "), east, f" {naive}Z "]
    return [*texts, str(milliseconds // 1000)] if milliseconds % 1000 == 0 else texts
