from __future__ import annotations

import pytest

from seamark.client.flags.event import Inline, Resync, Said, Snapshot
from seamark.client.flags.inbox import Inbox
from seamark.limits import CLIENT_EVENTS_WAITING_MAX


def inline(version: int) -> Inline:
    return Inline("ns", version, f"h{version - 1}", f"h{version}", ())


def whole(version: int) -> Snapshot:
    return Snapshot("ns", version, f"h{version}", f"http://h/{version}")


def again(version: int, url: str = "u") -> Resync:
    return Resync(Snapshot("ns", version, None, url), "unknown_since")


def drained(inbox: Inbox) -> list[Said]:
    found = []
    while (said := inbox.take()) is not None:
        found.append(said)
    return found


def test_what_is_heard_is_taken_in_order() -> None:
    inbox = Inbox()
    said: list[Said] = [whole(1), inline(2), inline(5)]
    assert all(inbox.put(one) for one in said)
    assert len(inbox) == 3
    assert drained(inbox) == said
    assert inbox.renewals == 1


def test_a_copy_of_what_was_heard_is_passed_over() -> None:
    inbox = Inbox()
    for one in (whole(3), inline(4), inline(5)):
        inbox.put(one)
    for copy in (whole(3), inline(4), inline(5), whole(5)):
        assert not inbox.put(copy)
    assert drained(inbox) == [whole(3), inline(4), inline(5)]
    assert not inbox.put(inline(5))
    assert inbox.renewals == 1


def test_a_whole_closure_makes_what_waits_moot() -> None:
    inbox = Inbox()
    for one in (whole(1), inline(2), inline(3)):
        inbox.put(one)
    inbox.put(whole(4))
    inbox.put(inline(5))
    assert drained(inbox) == [whole(4), inline(5)]
    assert inbox.renewals == 2


def test_to_begin_again_is_not_forgotten_over_a_newer_closure() -> None:
    """The namespace went back: its versions are lower than what is held, and a snapshot alone would be passed over."""
    inbox = Inbox()
    for one in (whole(9), inline(10), again(4), whole(5)):
        inbox.put(one)
    (left,) = drained(inbox)
    assert isinstance(left, Resync)
    assert left.snapshot == whole(5)


def test_after_a_resync_versions_count_from_there() -> None:
    inbox = Inbox()
    inbox.put(whole(9))
    assert inbox.put(again(4))
    assert inbox.put(inline(5))
    assert not inbox.put(again(4))  # the very same again would throw away what followed it
    assert drained(inbox) == [again(4), inline(5)]
    assert inbox.put(again(4, "another"))


@pytest.mark.parametrize("resync", [False, True])
def test_more_than_is_kept_becomes_the_newest_closure(resync: bool) -> None:
    inbox = Inbox()
    inbox.put(again(1) if resync else whole(1))
    for version in range(2, CLIENT_EVENTS_WAITING_MAX + 2):
        inbox.put(inline(version))
        assert len(inbox) <= CLIENT_EVENTS_WAITING_MAX
    last = CLIENT_EVENTS_WAITING_MAX + 1
    newest = Snapshot("ns", last, f"h{last}", None)
    assert drained(inbox) == [Resync(newest, "superseded") if resync else newest]
