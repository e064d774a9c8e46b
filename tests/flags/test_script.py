"""What one connection says, handed one thing after the other as the core does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from seamark.flags.links import Links
from seamark.flags.script import EventDialect, EventScript, Place
from seamark.flags.signing import Signer
from seamark.log.record import Record
from seamark.log.watermarks import Gap, Loss, Watermarks
from seamark.manifest.subscription import EVERY_FLAG
from seamark.stream.dialect import Alike, Close, Span
from seamark.stream.pipe import Block
from seamark.testing.engines import MemoryRig
from tests.flags.manifests import flag, manifest
from tests.flags.stage import Frame, Stage, frames_of

STREAM = "flags:acme/billing"
BURST = b"\n"
RECREATED = Gap(first=1, last=0, loss=Loss.RECREATED)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    rig = MemoryRig()
    await rig.open()
    stage = await Stage.opened(rig)
    for number in range(1, 6):
        await stage.commit(manifest({"a": flag(note=str(number))}))
    yield stage
    stage.close()
    await rig.close()


def script_of(stage: Stage) -> EventScript:
    links = Links(Signer(bytes(32), stage.clock), base="http://x", principal="tok_1")
    return EventScript(stage.streaming.voice, links, {STREAM: Place(EVERY_FLAG)})


def span(to: int, head: int | None = None, after: int = 0) -> Span:
    head = to if head is None else head
    return Span(STREAM, after, to, Watermarks(head=head, synced=head, evict_floor=1, earliest=1), False)


async def begun(stage: Stage, number: int) -> EventScript:
    script = script_of(stage)
    version = await stage.versions.at("acme", "billing", number)
    assert version is not None
    script.begin(version)
    assert [frame.id for frame in frames_of(script.opening())] == [f"billing:{number}"]
    assert script.opening() == b"", "said once"
    return script


def stamped(script: EventScript, *spans: Span) -> list[Frame]:
    return [frame for one in spans for frame in frames_of(script.stamp(BURST, one) or b"")]


def told(frames: list[Frame]) -> list[tuple[str, int | None, int, str]]:
    """Kind, previous version, version and delivery."""
    return [(frame.kind, frame.body["prev_version"], frame.body["version"], frame.body["delivery"]) for frame in frames]


async def test_each_version_from_the_one_before(stage: Stage) -> None:
    script = await begun(stage, 1)
    assert told(stamped(script, span(2), span(3))) == [("version", 1, 2, "inline"), ("version", 2, 3, "inline")]


async def test_what_was_said_is_counted(stage: Stage) -> None:
    def counts() -> list[float]:
        return [stage.count("seamark_flags_events_total", kind) for kind in ("inline", "snapshot", "resync")]

    script = await begun(stage, 1)
    assert counts() == [0, 1, 0]
    stamped(script, span(2), span(2))
    assert counts() == [1, 1, 0]
    script.gap(RECREATED, span(0, head=0), first_read=False)
    stamped(script, span(1))
    assert counts() == [1, 1, 1]


async def test_more_than_fits_is_a_snapshot_that_carries_on(stage: Stage) -> None:
    script = await begun(stage, 5)
    await stage.commit(manifest({f"f{number}": flag() for number in range(40)}))
    assert told(stamped(script, span(6))) == [("version", 5, 6, "snapshot")]
    await stage.commit(manifest({f"f{number}": flag() for number in range(39)}))
    assert told(stamped(script, span(7))) == [("version", 6, 7, "inline")]


async def test_several_versions_at_once_are_one_event(stage: Stage) -> None:
    script = await begun(stage, 1)
    assert told(stamped(script, span(5))) == [("version", 1, 5, "inline")]


async def test_a_page_of_history_is_told_with_the_newest_there_is(stage: Stage) -> None:
    """And what the pages after it hold was told by then."""
    script = await begun(stage, 1)
    assert told(stamped(script, span(2, head=5), span(4, head=5), span(5))) == [("version", 1, 5, "inline")]


async def test_live_it_says_the_same(stage: Stage) -> None:
    alone, alike = await begun(stage, 1), [await begun(stage, 1) for _ in range(2)]
    first, second = [script.live(Block(BURST), span(2), last=True) for script in alike]
    assert first is second
    assert first is not None
    assert alone.stamp(BURST, span(2)) == first.raw
    assert alike[0].live(Block(BURST), span(2), last=True) is None, "nothing is said twice"


async def test_the_core_takes_it_for_alike(stage: Stage) -> None:
    assert isinstance(script_of(stage), Alike)
    assert script_of(stage).personal


# -- another history


async def test_a_history_that_is_no_more_before_anything_inline(stage: Stage) -> None:
    """Snapshots stand for themselves, so a further one puts everything right."""
    script = await begun(stage, 5)
    assert script.gap(RECREATED, span(0, head=2), first_read=True) == b""
    frames = stamped(script, span(2))
    assert told(frames) == [("version", None, 2, "snapshot")]
    assert frames[0].body["prev_closure_hash"] is None
    assert told(stamped(script, span(3))) == [("version", 2, 3, "inline")]


async def test_a_history_that_is_no_more_after_something_inline(stage: Stage) -> None:
    script = await begun(stage, 4)
    stamped(script, span(5))
    assert script.gap(RECREATED, span(0, head=2), first_read=False) == b""
    (frame,) = stamped(script, span(1, head=2), span(2))
    url = frame.body.pop("snapshot_url")
    assert frame == Frame(
        "resync",
        "billing:2",
        {"protocol": "v2", "namespace": "billing", "current_version": 2, "reason": "unknown_since"},
    )
    assert url.startswith("http://x/api/v1/tenants/acme/namespaces/billing/closure?version=2&subscription=Kg&token=")
    (after,) = stamped(script, span(3))
    version = await stage.versions.at("acme", "billing", 2)
    assert version is not None
    assert after.body["prev_version"] == 2
    assert after.body["prev_closure_hash"] == version.closure(EVERY_FLAG).hash, "the chain goes on from there"


async def test_a_new_history_that_is_empty_is_told_when_it_begins(stage: Stage) -> None:
    script = await begun(stage, 4)
    stamped(script, span(5))
    script.gap(RECREATED, span(0, head=0), first_read=False)
    (frame,) = stamped(script, span(1))
    assert (frame.kind, frame.body["current_version"]) == ("resync", 1)


async def test_what_was_worked_out_for_the_old_history_is_forgotten(stage: Stage) -> None:
    script = await begun(stage, 1)
    stamped(script, span(2))
    assert len(stage.streaming.deltas) == 1
    script.gap(RECREATED, span(0, head=2), first_read=False)
    assert len(stage.streaming.deltas) == 0


@pytest.mark.parametrize("loss", [loss for loss in Loss if loss is not Loss.RECREATED])
async def test_any_other_gap_changes_nothing(stage: Stage, loss: Loss) -> None:
    """Versions are kept; and what became different is found without those in between."""
    script = await begun(stage, 1)
    assert script.gap(Gap(first=2, last=3, loss=loss), span(3, head=5), first_read=False) == b""
    assert told(stamped(script, span(5))) == [("version", 1, 5, "inline")]


async def test_a_version_that_cannot_be_found_is_passed_over(stage: Stage) -> None:
    script = await begun(stage, 5)
    assert stamped(script, span(6)) == []
    await stage.commit(manifest({"a": flag(note="6")}))
    assert told(stamped(script, span(6))) == [("version", 5, 6, "inline")]


# -- the rest


async def test_what_else_it_says(stage: Stage) -> None:
    script = await begun(stage, 1)
    assert script.heartbeat() == b":keepalive\n\n"
    assert script.caught_up(span(1)) == b""
    assert {script.closing(reason) for reason in Close} == {b""}
    ended: list[Close] = []
    script.end = ended.append
    assert script.dropped(STREAM, 5) == b""
    assert ended == [Close.DROPPED]


async def test_who_may_not_hear_it_any_more_is_told_nothing(stage: Stage) -> None:
    script = await begun(stage, 1)
    ended: list[Close] = []
    script.end, script.may = ended.append, lambda: False
    assert script.stamp(BURST, span(2)) == b""
    assert script.live(Block(BURST), span(2), last=True) is None
    assert script.heartbeat() == b""
    assert set(ended) == {Close.REVOKED}


def test_every_version_is_the_same_to_the_dialect() -> None:
    dialect = EventDialect()
    record = Record(seq=1, ts=1, payload=b"{}")
    assert dialect.assemble([dialect.fragment(record, True)] * 3, span(3)), (
        "the core says nothing where there is nothing"
    )
    assert dialect.projection == EventDialect().projection
