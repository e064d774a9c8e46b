"""Watch streams: history, live, loss, resuming, removal; in this process, with a clock that moves when told."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from seamark.errors import Busy, ShuttingDown
from seamark.limits import KIB, LEGS_PER_SESSION_MAX, PIPE_HIGH_WATER_BYTES, STALL_SECONDS_MAX, WATCH_INLINE_TOPICS_MAX
from seamark.log.protocol import Declares, News
from seamark.log.watermarks import Loss
from seamark.topics.model import stream_of
from tests.stream.conftest import TapPipe
from tests.topics.rig import TopicsRig
from tests.topics.viewing import Frame, Viewer, id_of, pass_time, settle, watch


def kinds(frames: list[Frame]) -> list[str]:
    return [frame.event for frame in frames]


def tombstones(viewer: Viewer) -> list[tuple[Any, ...]]:
    names = ("topic", "reason", "gap_from", "gap_to", "earliest_seq", "head_seq")
    return [tuple(frame.body[name] for name in names) for frame in viewer.frames if frame.event == "tombstone"]


def records(frame: Frame) -> tuple[int, ...]:
    """What a record frame says of itself: from, to, head, and how many records it has."""
    return frame.body["from_seq"], frame.body["to_seq"], frame.body["head_seq"], len(frame.body["records"])


# -- history and live


async def test_history_then_live(rig: TopicsRig) -> None:
    await rig.write("o", "a", "b")
    viewer = await watch(rig, "o")
    assert [(frame.event, frame.place) for frame in viewer.frames] == [("record", {"o": 2}), ("caught-up", {"o": 2})]
    await rig.write("o", "c")
    await settle()
    assert viewer.frames[2:] == [
        Frame("record", {**viewer.frames[2].body, "from_seq": 2, "to_seq": 3, "head_seq": 3}, {"o": 3}),
        Frame("caught-up", {"topic": "o", "head_seq": 3}, {"o": 3}),
    ]


@pytest.mark.parametrize("others", [(), ("p",)])
async def test_a_live_burst_and_its_caught_up_are_one_write(rig: TopicsRig, others: tuple[str, ...]) -> None:
    for name in ("o", *others):
        await rig.write(name, 1)
    viewer = await watch(rig, "o", *others)
    for n in range(3):
        written = len(viewer.pipe.blocks)
        await rig.write("o", n)
        await settle()
        (block,) = viewer.pipe.blocks[written:]
        assert block.raw.count(b"event: ") == 2


async def test_watchers_of_one_topic_share_their_bytes(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewers = [await watch(rig, "o") for _ in range(5)]
    await rig.write("o", 2)
    await settle()
    assert len({id(viewer.pipe.blocks[-1]) for viewer in viewers}) == 1


async def test_watchers_of_the_same_topics_share_theirs_while_they_move_together(rig: TopicsRig) -> None:
    for name in ("a", "b", "c"):
        await rig.write(name, 1)
    alike = [await watch(rig, "a", "b") for _ in range(3)]
    behind = await watch(rig, "a", "b", starts={"b": {"from_seq": 0}}, node="me")
    await rig.write("b", 2, node="me")  # which that one does not get
    other = await watch(rig, "a", "c")
    for viewer in (*alike, behind, other):
        viewer.pipe.blocks.clear()
    await rig.write("a", 2)
    await settle()
    assert len({id(viewer.pipe.blocks[-1]) for viewer in alike}) == 1
    assert [viewer.frames[-1].place for viewer in (alike[0], other)] == [{"a": 2, "b": 2}, {"a": 2, "c": 1}]
    assert behind.frames[-1].place == {"a": 2, "b": 2}
    alike[0].pipe.fill()
    await rig.write("b", 3)
    await rig.write("a", 3)
    alike[0].pipe.drain()
    await settle()
    for viewer in alike:
        assert viewer.frames[-1].event == "caught-up"
        assert viewer.frames[-1].place == {"a": 3, "b": 3}
        assert (viewer.seqs("a"), viewer.seqs("b")) == ([1, 2, 3], [1, 2, 3])


async def test_so_many_places_at_once_that_not_all_are_kept(rig: TopicsRig) -> None:
    """Each of these has a topic to itself beside the one that they share."""
    names = [f"own-{n}" for n in range(40)]
    for name in ("shared", *names):
        await rig.write(name, 1)
    viewers = [await watch(rig, "shared", name) for name in names for _ in range(2)]
    await rig.write("shared", 2)
    await settle()
    for viewer, name in zip(viewers, [name for name in names for _ in range(2)], strict=True):
        assert viewer.frames[-1] == Frame("caught-up", {"topic": "shared", "head_seq": 2}, {"shared": 2, name: 1})


async def test_every_topic_says_caught_up_at_connect(rig: TopicsRig) -> None:
    await rig.write("a", 1)
    await rig.call("PUT", "/topics/empty", {})
    viewer = await watch(rig, "a", "empty")
    assert sorted(f.body["topic"] for f in viewer.frames if f.event == "caught-up") == ["a", "empty"]
    assert viewer.frames[-1].place == {"a": 1, "empty": 0}


async def test_where_reading_begins(rig: TopicsRig) -> None:
    await rig.write("a", *range(5))
    await rig.write("b", *range(5))
    body = {"topics": {"b": {"from_seq": 3, "tail": True}, "a": {"from_seq": 2}}}
    answer = await rig.call("POST", "/watch", body)
    assert list(answer["topics"]) == ["b", "a"]
    assert answer["topics"]["b"] == {"from_seq": 5, "head_seq": 5, "earliest_seq": 1}
    assert answer["topics"]["a"] == {"from_seq": 2, "head_seq": 5, "earliest_seq": 1}
    viewer = await Viewer(rig, answer["wid"]).open()
    assert (viewer.seqs("a"), viewer.seqs("b")) == ([3, 4, 5], [])


# -- how much at a time


async def test_a_frame_has_at_most_so_many_records(rig: TopicsRig) -> None:
    await rig.write("o", *range(5))
    viewer = await watch(rig, "o", limit=2)
    await rig.write("o", *range(3))
    await settle()
    spans = [records(frame) for frame in viewer.frames if frame.event == "record"]
    assert spans == [(0, 2, 5, 2), (2, 4, 5, 2), (4, 5, 5, 1), (5, 7, 8, 2), (7, 8, 8, 1)]
    assert kinds(viewer.frames).count("caught-up") == 2


async def test_a_frame_has_at_most_so_many_payload_bytes(rig: TopicsRig) -> None:
    await rig.write("o", *("x" * 98 for _ in range(5)))  # with its quotes a hundred bytes each
    for budget, counts in ((200, [2, 2, 1]), (199, [1, 1, 1, 1, 1]), (1, [1, 1, 1, 1, 1]), (0, [5])):
        viewer = await watch(rig, "o", max_batch_bytes=budget)
        assert [records(frame)[3] for frame in viewer.frames if frame.event == "record"] == counts


async def test_history_comes_in_frames_as_big_as_asked_for(rig: TopicsRig) -> None:
    for _ in range(3):
        await rig.write("o", *("x" * 998 for _ in range(1_000)))
    usual = await watch(rig, "o", limit=1_000)
    big = await watch(rig, "o", limit=1_000, max_batch_bytes=1 << 60)
    await settle(200)
    assert [records(frame)[3] for frame in big.frames if frame.event == "record"] == [1_000] * 3
    assert [records(frame)[3] for frame in usual.frames if frame.event == "record"] == [262] * 11 + [118]
    assert usual.seqs() == big.seqs() == [*range(1, 3_001)]


async def test_a_huge_backlog_starves_nobody(rig: TopicsRig) -> None:
    for _ in range(4):
        await rig.write("a-huge", *range(1_000))
    for name in ("b", "c"):
        await rig.write(name, *range(30))
    viewer = await watch(rig, "a-huge", "b", "c", limit=10)
    await settle(2_000)
    order = [frame.body["topic"] for frame in viewer.frames if frame.event == "record"]
    assert order[:9] == ["a-huge", "b", "c"] * 3  # a frame each, in turn
    assert set(order[9:]) == {"a-huge"}
    assert viewer.seqs("a-huge") == [*range(1, 4_001)]


# -- who wrote it


@pytest.mark.parametrize("node", ["me", ["me", "you"]])
@pytest.mark.parametrize("others", [(), ("p",)])
async def test_a_node_does_not_get_its_own(rig: TopicsRig, node: object, others: tuple[str, ...]) -> None:
    for name in others:
        await rig.write(name, 0)
    await rig.write("o", "mine", node="me")
    await rig.write("o", "theirs", node="them")
    await rig.write("o", "mine", "mine", node="me")
    await rig.write("o", "nobody's")
    await rig.write("o", "mine", node="me")
    viewer = await watch(rig, "o", *others, node=node)
    assert viewer.seqs("o") == [2, 5]
    before = len(viewer.frames)
    await rig.write("o", "mine", node="me")
    await settle()
    assert len(viewer.frames) == before  # moved on without a word
    assert viewer.session.topics.streams[0] == stream_of("o")
    viewer.session.settle()
    assert viewer.session.seqs[0] == 7
    await rig.write("o", "theirs", node="them")
    await settle()
    assert viewer.seqs("o") == [2, 5, 8]
    assert viewer.frames[-1].event == "caught-up"


async def test_silent_progress_shows_in_the_next_id(rig: TopicsRig) -> None:
    await rig.write("a", 1)
    await rig.write("b", 1)
    viewer = await watch(rig, "a", "b", node="me")
    await rig.write("a", 2, node="me")
    await rig.write("b", 2)
    await settle()
    assert viewer.frames[-1].place == {"a": 2, "b": 2}


async def test_only_own_records_still_come_to_an_end(rig: TopicsRig) -> None:
    await rig.write("o", 1, 2, node="me")
    viewer = await watch(rig, "o", node="me")
    assert viewer.frames == [Frame("caught-up", {"topic": "o", "head_seq": 2}, {"o": 2})]


@pytest.mark.parametrize("others", [(), ("p",)])
async def test_a_node_gets_its_own_from_the_moment_the_topic_says_so(rig: TopicsRig, others: tuple[str, ...]) -> None:
    for name in ("o", *others):
        await rig.write(name, 1)
    viewer = await watch(rig, "o", *others, node="me")
    for given in (True, False, True):
        await rig.write("o", given, node="me")
        await rig.call("PUT", "/topics/o", {"dedupe_node": not given})
        await settle()
        await rig.write("o", given, node="me")
        await settle()
    assert viewer.seqs("o") == [1, 3, 4, 7]
    assert kinds(viewer.frames[-2:]) == ["record", "caught-up"]


async def test_a_topic_may_give_everything_to_everybody(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/all", {"dedupe_node": False})
    await rig.write("all", 1, node="me")
    await rig.write("some", 1, node="me")
    viewer = await watch(rig, "all", "some", node="me")
    assert (viewer.seqs("all"), viewer.seqs("some")) == ([1], [])


# -- loss


async def test_a_cursor_that_came_too_late(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/o", {"cap_records": 3})
    await rig.write("o", *range(6))
    viewer = await watch(rig, "o", starts={"o": {"from_seq": 1}})
    assert tombstones(viewer) == [("o", "from_seq_too_old", 2, 3, 4, 6)]
    assert [frame.place for frame in viewer.frames] == [{"o": 3}, {"o": 6}, {"o": 6}]
    assert records(viewer.frames[1]) == (3, 6, 6, 3)  # from where reading was taken up
    assert tombstones(await watch(rig, "o", starts={"o": {"from_seq": 3}})) == []


async def test_loss_while_the_reader_was_slow_keeps_its_reason(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/o", {"cap_records": 2})
    await rig.write("o", 1)
    viewer = await watch(rig, "o")
    viewer.pipe.fill()
    for n in range(6):
        await rig.write("o", n)
    viewer.pipe.drain()
    await settle()
    assert tombstones(viewer) == [("o", "cap", 2, 5, 6, 7)]
    assert viewer.seqs() == [1, 6, 7]


async def test_what_its_source_lost_is_a_loss(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o")
    assert isinstance(rig.log, Declares)
    await rig.log.lose(stream_of("o"), 4, Loss.SOURCE)
    await rig.write("o", 2)
    await settle()
    assert tombstones(viewer) == [("o", "source_trim", 2, 4, 1, 4)]
    assert viewer.seqs() == [1, 5]
    later = await watch(rig, "o", starts={"o": {"from_seq": 1}})
    assert tombstones(later) == [("o", "source_trim", 2, 4, 1, 5)]  # the cursor is not before what the topic holds
    await rig.call("PUT", "/topics/o", {"cap_records": 1})
    assert tombstones(await watch(rig, "o")) == [("o", "from_seq_too_old", 1, 4, 5, 5)]


async def test_what_was_deleted_is_silent(rig: TopicsRig) -> None:
    await rig.write("o", *range(5))
    await rig.call("POST", "/topics/o/delete", {"before_seq": 3})
    viewer = await watch(rig, "o")
    assert tombstones(viewer) == []
    assert viewer.seqs() == [3, 4, 5]


async def test_a_cursor_beyond_the_head_is_another_topics(rig: TopicsRig) -> None:
    await rig.write("o", 1, 2)
    answer = await rig.call("POST", "/watch", {"topics": {"o": {"from_seq": 9}}})
    assert answer["topics"]["o"]["from_seq"] == 9
    viewer = await Viewer(rig, answer["wid"]).open()
    assert tombstones(viewer) == [("o", "recreated", 1, 0, 1, 2)]
    assert viewer.frames[0].place == {"o": 0}
    assert viewer.seqs() == [1, 2]


async def test_a_cursor_beyond_the_head_stays_another_topics_when_the_topic_grows(rig: TopicsRig) -> None:
    await rig.write("o", 1, 2)
    answer = await rig.call("POST", "/watch", {"topics": {"o": {"from_seq": 5}}})
    await rig.write("o", *range(6))
    viewer = await Viewer(rig, answer["wid"]).open()
    assert tombstones(viewer) == [("o", "recreated", 1, 0, 1, 8)]
    assert viewer.seqs() == [*range(1, 9)]


@pytest.mark.parametrize("count", [1, 7])
async def test_a_topic_that_was_made_again_is_recognised(rig: TopicsRig, count: int) -> None:
    await rig.write("o", *range(5))
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    await rig.call("DELETE", "/topics/o")
    await rig.write("o", *range(count))
    again = await viewer.again()
    assert tombstones(again) == [("o", "recreated", 1, 0, 1, count)]
    assert again.frames[0].place == {"o": 0}
    assert again.seqs() == [*range(1, count + 1)]


async def test_a_topic_made_again_and_evicted_resumes_where_it_is_safe(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    await rig.call("DELETE", "/topics/o")
    await rig.call("PUT", "/topics/o", {"cap_records": 2})
    await rig.write("o", *range(5))
    again = await viewer.again()
    assert tombstones(again) == [("o", "recreated", 1, 3, 4, 5)]
    assert again.frames[0].place == {"o": 3}
    assert again.seqs() == [4, 5]


async def test_whoever_did_not_hear_that_a_topic_was_made_again_is_told_again(rig: TopicsRig) -> None:
    await rig.write("o", *range(5))
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    await rig.call("DELETE", "/topics/o")
    await rig.write("o", 1, 2)
    for _ in range(2):
        unheard = await viewer.again(id_of(o=5))
        assert tombstones(unheard) == [("o", "recreated", 1, 0, 1, 2)]
        assert unheard.seqs() == [1, 2]
        unheard.pipe.leave()  # and nothing of it reached the client
    heard = await viewer.again(id_of(o=1))
    assert tombstones(heard) == []
    assert heard.seqs() == [2]
    heard.pipe.leave()
    assert (await heard.again(id_of(o=5))).seqs() == []  # by now nobody can be there


# -- removal


async def test_a_deleted_topic_is_told_at_once_with_its_head(rig: TopicsRig) -> None:
    await rig.write("a", *range(12))
    await rig.write("b", 1)
    viewer = await watch(rig, "a", "b")
    await rig.call("DELETE", "/topics/a")
    assert viewer.frames[-1] == Frame(
        "topic-deleted", {"topic": "a", "head_seq": 12, "reason": "deleted"}, {"a": 12, "b": 1}
    )
    await rig.write("b", 2)
    await rig.write("a", 1)
    await settle()
    assert viewer.frames[-1].place == {"a": 12, "b": 2}
    assert viewer.seqs("a") == [*range(1, 13)]  # for this connection the topic is over
    assert not viewer.pipe.ended
    await rig.call("DELETE", "/topics/b")
    await settle()
    assert viewer.frames[-1].event == "topic-deleted"
    assert viewer.pipe.ended
    again = await viewer.again()
    assert tombstones(again) == [("a", "recreated", 1, 0, 1, 1)]
    assert Frame("topic-deleted", {"topic": "b", "head_seq": 2, "reason": "deleted"}) in [
        frame._replace(place=None) for frame in again.frames
    ]
    assert again.seqs("a") == [1]


@pytest.mark.parametrize("others", [(), ("p",)])
async def test_an_empty_topic_is_deleted_at_no_head_wherever_reading_began(
    rig: TopicsRig, others: tuple[str, ...]
) -> None:
    for name in ("o", *others):
        await rig.call("PUT", f"/topics/{name}", {})
    viewer = await watch(rig, *others, starts={"o": {"from_seq": 7}})
    assert tombstones(viewer) == [("o", "recreated", 1, 0, 1, 0)]
    await rig.call("DELETE", "/topics/o")
    await settle()
    (gone,) = [frame for frame in viewer.frames if frame.event == "topic-deleted"]
    assert gone == Frame(
        "topic-deleted", {"topic": "o", "head_seq": 0, "reason": "deleted"}, dict.fromkeys(["o", *others], 0)
    )


# -- consistency


@pytest.mark.parametrize("others", [(), ("p",)])
async def test_a_strong_reader_gets_only_what_is_durable(rig: TopicsRig, others: tuple[str, ...]) -> None:
    for name in ("o", *others):
        await rig.write(name, 0)  # of class disk: visible first, durable a moment later
    strong = await watch(rig, "o", *others, consistency="strong")
    eventual = await watch(rig, "o", *others)
    seen: list[tuple[bool, list[int], list[int]]] = []

    def hear(news: Sequence[News]) -> None:
        seen.extend((one.synced, eventual.seqs("o"), strong.seqs("o")) for one in news)

    stop = rig.log.wakeup.subscribe(hear)
    await rig.write("o", 1)
    await settle()
    stop()
    assert seen == [(False, [1, 2], [1]), (True, [1, 2], [1, 2])]
    assert strong.frames[-1].body == {"topic": "o", "head_seq": 2}


# -- resuming


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": 4, "b": 9, "z": 1}, {"a": 4, "b": 7}),
        ({"a": 10, "b": 7}, {"a": 10, "b": 7}),
        ({"a": 0}, {"a": 0, "b": 7}),
        ({"b": 3}, {"a": 10, "b": 3}),
        ({}, {"a": 10, "b": 7}),
    ],
)
async def test_an_id_only_takes_the_session_back(
    rig: TopicsRig, given: dict[str, int], expected: dict[str, int]
) -> None:
    await rig.write("a", *range(10))
    await rig.write("b", *range(7))
    viewer = await watch(rig, "a", "b")
    viewer.pipe.leave()
    again = await viewer.again(id_of(**given))
    assert again.seqs("a") == [*range(expected["a"] + 1, 11)]
    assert again.seqs("b") == [*range(expected["b"] + 1, 8)]
    assert again.frames[-1].place == {"a": 10, "b": 7}


@pytest.mark.parametrize("junk", [b"", b"x", b"ckpt_x", b"\xff\xfe", b"e30", id_of(o=-1), id_of(other=1), b"1@abc"])
async def test_what_is_no_id_changes_nothing(rig: TopicsRig, junk: bytes) -> None:
    await rig.write("o", 1, 2)
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    assert (await viewer.again(junk)).seqs() == []


async def test_a_rewind_stays(rig: TopicsRig) -> None:
    await rig.write("o", *range(5))
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    again = Viewer(rig, viewer.wid)
    again.pipe = TapPipe(high=0)
    again.pipe.stalled = True  # nothing is delivered on this connection
    await again.open(id_of(o=2))
    assert again.session.seqs[0] == 2
    again.pipe.leave()
    assert (await viewer.again()).seqs() == [3, 4, 5]


async def test_a_rewind_below_the_floor_says_what_is_lost(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/o", {"cap_records": 2})
    await rig.write("o", *range(5))
    viewer = await watch(rig, "o")
    viewer.pipe.leave()
    again = await viewer.again(id_of(o=1))
    assert tombstones(again) == [("o", "from_seq_too_old", 2, 3, 4, 5)]


async def test_every_id_is_a_place_to_resume_from(rig: TopicsRig) -> None:
    for name in "ab":
        await rig.write(name, *range(6))
    viewer = await watch(rig, "a", "b", limit=2)
    viewer.pipe.leave()
    seen: dict[str, int] = {"a": 0, "b": 0}
    for frame in viewer.frames:
        if frame.event == "record":
            seen[frame.body["topic"]] = frame.body["records"][-1]["$seq"]
        assert frame.place == seen
        again = await viewer.again(id_of(**frame.place))
        assert {name: 6 - len(again.seqs(name)) for name in "ab"} == frame.place
        again.pipe.leave()


async def test_the_newest_connection_has_the_session(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    old = await watch(rig, "o")
    new = await old.again()
    assert old.pipe.ended
    assert old.frames[-1].body["error"] == "replaced"
    assert new.seqs() == []  # it goes on where the older one was
    await rig.write("o", 2)
    await settle()
    assert (old.seqs(), new.seqs()) == ([1], [2])
    assert rig.surface.slots.open == 1
    new.pipe.leave()
    assert rig.surface.slots.open == 0


# -- many topics


async def test_many_topics_have_a_token_for_an_id(rig: TopicsRig) -> None:
    names = [f"topic-{n:03}" for n in range(LEGS_PER_SESSION_MAX)]
    for name in names:
        await rig.write(name, 1, 2)
    viewer = await watch(rig, *names)
    await settle(600)
    assert len(viewer.seqs()) == 2 * len(names)
    assert kinds(viewer.frames).count("caught-up") == len(names)
    tokens = [frame.place for frame in viewer.frames]
    assert all(token.startswith("ckpt_") for token in tokens)
    viewer.pipe.leave()
    done = [frame.body["topic"] for frame in viewer.frames[: len(tokens) // 2] if frame.event == "record"]
    again = await viewer.again(tokens[len(tokens) // 2 - 1].encode())
    await settle(600)
    assert {frame.body["topic"] for frame in again.frames if frame.event == "record"} == set(names) - set(done)


async def test_few_topics_have_them_all_in_the_id(rig: TopicsRig) -> None:
    names = [f"topic-{n:03}" for n in range(WATCH_INLINE_TOPICS_MAX)]
    for name in names:
        await rig.write(name, 1)
    viewer = await watch(rig, *names)
    await settle(200)
    assert viewer.frames[-1].place == dict.fromkeys(names, 1)


# -- bounds, silence and ends


async def test_open_streams_are_bounded(rig: TopicsRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.surface.slots, "_most", 2)
    await rig.write("o", 1)
    first = await watch(rig, "o")
    second = await watch(rig, "o")
    with pytest.raises(Busy) as refused:
        await watch(rig, "o")
    assert refused.value.fields["limit"] == "max_sse_connections"
    third = await second.again()  # a newer connection of a session needs no more room
    first.pipe.abort()
    await watch(rig, "o")
    third.pipe.leave()
    assert rig.surface.slots.open == 1


async def test_heartbeats_fill_silence_and_carry_no_id(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o", heartbeat_ms=5_000)
    for _ in range(4):
        await pass_time(rig, 3)
        await rig.write("o", 1)
    assert b": hb" not in viewer.raw
    await pass_time(rig, 6)
    assert viewer.raw.endswith(b": hb\n\n")


async def test_a_slow_reader_catches_up_and_a_stuck_one_is_let_go(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o")
    viewer.pipe.stalled = True
    for _ in range(20):
        await rig.write("o", "x" * 4_000)
    await settle()
    assert viewer.pipe.buffered < PIPE_HIGH_WATER_BYTES + 10_000
    viewer.pipe.drain()
    await settle()
    assert viewer.seqs() == [*range(1, 22)]
    viewer.pipe.stalled = True
    await rig.write("o", "x" * 40_000)
    await pass_time(rig, STALL_SECONDS_MAX + 1, step=1)
    assert viewer.session.stream is None
    assert rig.surface.slots.open == 0
    viewer.pipe.abort()
    assert (await viewer.again(id_of(o=21))).seqs() == [22]  # what it never took comes again


async def test_stopping_tells_every_reader_when_to_come_back(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o", node="me")
    await rig.write("o", 2, node="me")  # which it passes in silence
    await rig.assembly.drain()
    assert viewer.frames[-1].event == "error"
    assert viewer.frames[-1].place == {"o": 2}
    assert viewer.frames[-1].body["code"] == 503
    assert viewer.frames[-1].body["retry_after_ms"] == 2_000
    assert viewer.pipe.ended
    with pytest.raises(ShuttingDown):
        await viewer.again()


async def test_reading_counts_as_reading(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    assert (await rig.state("o"))["last_read_ts"] is None
    await watch(rig, "o")
    assert (await rig.state("o"))["last_read_ts"] is not None


@pytest.mark.slow
async def test_a_watcher_of_many_topics_is_small(rig: TopicsRig) -> None:
    names = [f"topic-{n:03}" for n in range(LEGS_PER_SESSION_MAX)]
    for name in names:
        await rig.write(name, *range(300))
    first = await watch(rig, *names)  # what the topics themselves cost is there from now on
    await settle(2_000)
    for name in names:
        await rig.write(name, 0)
    gc.collect()
    tracemalloc.start()
    viewers = []
    for _ in range(5):
        viewers.append(await watch(rig, starts={name: {"tail": True} for name in names}))
        await settle(300)
        viewers[-1].pipe.taken.clear()
        viewers[-1].pipe.blocks.clear()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for viewer in (first, *viewers):
        assert viewer.session.stream is not None
        assert all(leg.group is not None for leg in viewer.session.stream.legs)
    assert used / len(viewers) < 64 * KIB
