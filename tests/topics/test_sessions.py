"""Watch sessions by themselves: ids, time, bounds."""

from __future__ import annotations

import base64

import pytest

from seamark.clock import ManualClock
from seamark.errors import Busy, SessionNotFound
from seamark.limits import WATCH_SESSION_SECONDS
from seamark.log.watermarks import Cursor
from seamark.topics.cursor import topic_set
from seamark.topics.render import Variant
from seamark.topics.sessions import Sessions, Wanted, WatchSession

WANTED = Wanted("anyone", (), Variant(), 256, 1_000, 15_000, False)
TOPICS = topic_set(["topics:a", "topics:b"])
CURSORS = [Cursor(1, "x"), Cursor(2)]


class Desk:
    """Sessions with a clock and randomness of the test's."""

    def __init__(self, most: int = 0) -> None:
        self.clock = ManualClock()
        self.forgotten: list[WatchSession] = []
        self.drawn = 0
        self.sessions = Sessions(self.clock, self.draw, most=most, forget=self.forgotten.append)

    def draw(self, count: int) -> bytes:
        self.drawn += 1
        return bytes([self.drawn]) * count

    def create(self) -> tuple[str, WatchSession]:
        return self.sessions.create(WANTED, TOPICS, CURSORS)


def test_a_wid_is_sixteen_random_bytes_and_nothing_else() -> None:
    desk = Desk()
    wid, watch = desk.create()
    assert (len(wid), wid[:4]) == (26, "wid_")
    assert base64.urlsafe_b64decode(wid[4:] + "==") == b"\x01" * 16
    assert desk.sessions.find(wid) is watch
    assert wid.encode() not in watch.key  # only its digest is kept
    assert desk.create()[0] != wid
    assert [watch.cursor(0), watch.cursor(1)] == CURSORS


@pytest.mark.parametrize("wid", ["", "wid_", "wid_AQEBAQEBAQEBAQEBAQEBAQ=", "nonsense", "\ud800", "x" * 9_000])
def test_no_other_wid_will_do(wid: str) -> None:
    desk = Desk()
    assert desk.create()[0] == "wid_AQEBAQEBAQEBAQEBAQEBAQ"
    with pytest.raises(SessionNotFound):
        desk.sessions.find(wid)


def test_a_session_is_given_up_when_it_was_idle_for_too_long() -> None:
    desk = Desk()
    early, watch = desk.create()
    desk.clock.advance(WATCH_SESSION_SECONDS / 2)
    late, _ = desk.create()
    desk.clock.advance(WATCH_SESSION_SECONDS / 2)
    assert desk.sessions.find(early) is watch
    desk.clock.advance(0.1)
    with pytest.raises(SessionNotFound):
        desk.sessions.find(early)
    assert desk.forgotten == [watch]
    assert desk.sessions.find(late)
    assert len(desk.sessions) == 1


def test_one_with_an_open_stream_is_not() -> None:
    desk = Desk()
    wid, watch = desk.create()
    desk.sessions.opened(watch, None)  # type: ignore[arg-type]
    desk.clock.advance(10 * WATCH_SESSION_SECONDS)
    assert desk.sessions.find(wid) is watch
    desk.sessions.closed(watch)
    desk.clock.advance(WATCH_SESSION_SECONDS)
    assert desk.sessions.find(wid) is watch
    desk.clock.advance(1)
    desk.sessions.collect()
    assert desk.forgotten == [watch]


def test_the_number_of_sessions_is_bounded() -> None:
    desk = Desk(most=2)
    desk.create()
    desk.create()
    with pytest.raises(Busy) as refused:
        desk.create()
    assert refused.value.fields == {"limit": "max_watch_sessions", "max": 2}
    desk.clock.advance(WATCH_SESSION_SECONDS + 1)
    desk.sessions.collect()
    desk.create()
