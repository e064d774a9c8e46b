"""What watches and replays are given: filters, starts and ends, losses, and the switch from history to live."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from seamark.limits import PIPE_HIGH_WATER_BYTES
from tests.notify.rig import SEVEN, NotifyRig, Said, options, running

SQUARE = "(0,0,0,4,4,4,4,0,0,0)"
INSIDE, EDGE, OUTSIDE = "2,2", "0,2", "9,9"
FIELDS = {
    "n": {"type": "IntHandler", "required": False},
    "polygon": {"type": "PolygonHandler", "required": False},
}


def kept(**policy: object) -> dict[str, Any]:
    """A schema of one event type, with this storage policy."""
    return {"thing": {"topic": {"base": "thing", "key_order": ["n"]}, "identifier": FIELDS, "storage_policy": policy}}


def seqs(said: Said, name: str | None = None) -> list[int]:
    """Sequences of the notifications, all or those of one event name."""
    found = []
    for event, data in said.frames:
        match = re.search(r'"sequence":([0-9]+),"source"', data)
        if match and name in (None, event):
            found.append(int(match[1]))
    return found


# -- filters


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ({"class": "od"}, [1, 2, 3]),
        ({"class": "od", "step": 3}, [3]),
        ({"class": "od", "step": {"gte": 2}}, [2, 3]),
        ({"class": "od", "step": {"between": [1, 2]}}, [1, 2]),
        ({"class": "od", "level": {"lt": 2.5}}, [1, 2]),
        ({"class": "od", "level": 2.0}, [2]),
        ({"class": "od", "region": {"in": ["SOUTH"]}}, [2]),
        ({"class": "od", "region": "North", "step": {"in": [1, 2]}}, [1]),
        ({"class": "od", "expver": "0001", "misspelt": 1}, [1, 2, 3]),
        ({"class": "rd"}, []),
    ],
)
async def test_fields_and_constraints(rig: NotifyRig, identifier: Any, expected: list[int]) -> None:
    async with rig.watch("mars", identifier=identifier) as watching:
        await watching.until("heartbeat")
        for n, region in ((1, "north"), (2, "south"), (3, "north")):
            await rig.notify("mars", payload=n, **{**SEVEN, "step": n, "level": float(n), "region": region})
        assert seqs(await rig.replay("mars", identifier=identifier, from_id="1")) == expected
        if expected:
            await watching.until("live-notification", 1 + len(expected))
            assert seqs(watching) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"polygon": "(1,1,1,2,2,2,1,1)"}, [1]),
        ({"polygon": "(4,4,4,5,5,5,4,4)"}, [1]),  # one shared corner
        ({"polygon": [[8.5, 8.5], [8.5, 9], [9, 9], [8.5, 8.5]]}, [2]),
        ({"polygon": "(-9,-9,-9,20,20,20,20,-9,-9,-9)"}, [1, 2]),
        ({"point": INSIDE}, [1]),
        ({"point": [2, 2]}, [1]),
        ({"point": EDGE}, []),
        ({"point": f"({OUTSIDE})"}, [2]),
        ({}, [1, 2]),
    ],
)
async def test_places(place: Any, expected: list[int]) -> None:
    async with running(options(kept())) as rig, rig.watch("thing", identifier=place) as watching:
        await watching.until("heartbeat")
        await rig.notify("thing", n=1, polygon=SQUARE)
        await rig.notify("thing", n=2, polygon="(8,8,8,10,10,10,10,8,8,8)")
        assert seqs(await rig.replay("thing", identifier=place, from_id="0")) == expected
        if expected:
            await watching.until("live-notification", 1 + len(expected))
            assert seqs(watching) == expected


async def test_two_watches_of_the_same_get_the_same(rig: NotifyRig) -> None:
    async with rig.watch() as first, rig.watch() as second:
        await first.until("heartbeat")
        await second.until("heartbeat")
        await rig.notify()
        await first.until("test_polygon@1")
        await second.until("test_polygon@1")
    assert first.text == second.text


# -- starts and ends


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"from_id": "0"}, [1, 2, 3, 4, 5]),
        ({"from_id": "+004"}, [4, 5]),
        ({"from_id": "6"}, []),
        ({"from_id": "18446744073709551615"}, []),
        ({"from_date": "1700000002"}, [3, 4, 5]),
        ({"from_date": "1700000001001"}, [3, 4, 5]),
        ({"from_date": "0001-01-01T00:00:00+23:00"}, [1, 2, 3, 4, 5]),
        ({"from_date": "9223372036854"}, []),
        ({"from_date": "2023-11-14 22:13:22.5"}, [4, 5]),
        ({"from_id": "2", "to_id": "3"}, [2, 3]),
        ({"from_id": "2", "to_id": "2"}, [2]),
        ({"from_id": "2", "to_id": "18446744073709551615"}, [2, 3, 4, 5]),
        ({"from_id": "0", "to_id": "0"}, []),
        ({"from_id": "2", "to_date": "1700000002"}, [2, 3]),
        ({"from_id": "2", "to_date": "1700000002999"}, [2, 3]),
        ({"from_id": "1", "to_date": "1600000000"}, []),
        ({"from_date": "1700000001", "to_date": "1700000001"}, [2]),
        ({"from_date": "1700000001", "to_id": "3"}, [2, 3]),
        ({"from_id": "5", "to_date": "9999-12-31T00:00:00Z"}, [5]),
        ({"from_id": "4", "to_date": "1700000000"}, []),
    ],
)
async def test_starts_and_ends_are_inclusive(rig: NotifyRig, more: Any, expected: list[int]) -> None:
    for _ in range(5):
        await rig.notify()
        rig.clock.advance(1)
    said = await rig.replay(**more)
    assert seqs(said) == expected
    assert said.names[-2:] == ["replay-control", "connection-closing"]
    assert "replay_completed" in said.frames[-2][1]


async def test_an_end_before_everything_is_told_as_the_seq_before_the_first() -> None:
    async with running(options(kept(max_messages=2))) as rig:
        for n in range(5):
            await rig.notify("thing", n=n, polygon=SQUARE)
        said = await rig.replay("thing", identifier={}, from_id="1", to_id="2")
        assert '"end_sequence":3,' in said.frames[0][1]
        assert seqs(said) == []


async def test_a_number_above_the_end_waits_for_nothing(rig: NotifyRig) -> None:
    async with rig.watch(from_id="50") as watching:
        await watching.until("replay_completed")
        await rig.notify()
        await watching.until("test_polygon@1")
    assert seqs(watching, "live-notification") == [1]


async def test_the_cap_of_an_event_type_is_its_own() -> None:
    schema = kept()
    schema["thing"]["max_historical_notifications"] = 1
    async with running(options(schema, history_max=5)) as rig:
        for n in range(3):
            await rig.notify("thing", n=n, polygon=SQUARE)
        said = await rig.replay("thing", identifier={}, from_id="1")
        assert seqs(said) == [1]
        assert '"max_allowed":1,' in said.text
        assert "replay_completed" not in said.text


# -- losses


async def test_age_is_told_where_it_may_matter() -> None:
    async with running(options(kept(retention_time="1m"))) as rig:
        await rig.notify("thing", n=1, polygon=SQUARE)
        rig.clock.advance(90)
        await rig.notify("thing", n=2, polygon=SQUARE)
        by_id = await rig.replay("thing", identifier={}, from_id="1")
        assert '"first_sequence":1,"last_sequence":1,' in by_id.text
        assert '"reason":"ttl"' in by_id.text
        assert seqs(by_id) == [2]
        assert "history_gap" in (await rig.replay("thing", identifier={}, from_date="1700000000")).text
        recent = await rig.replay("thing", identifier={}, from_date="1700000060")
        assert "history_gap" not in recent.text  # what was lost is older than that
        assert seqs(recent) == [2]


async def test_what_a_newer_one_replaced_is_no_loss() -> None:
    async with running(options(kept(allow_duplicates=False))) as rig:
        for n in (1, 2, 1):
            await rig.notify("thing", n=n, polygon=SQUARE)
        said = await rig.replay("thing", identifier={}, from_id="1")
        assert seqs(said) == [2, 3]
        assert "history_gap" not in said.text


# -- from history to live


async def test_the_switch_under_load(rig: NotifyRig) -> None:
    """Readers come while notifications do: each is said once, in order, as what it was when its reader came."""
    stop = False

    async def publish() -> None:
        while not stop:
            await asyncio.gather(*(rig.notify() for _ in range(8)))

    async def read(start: int) -> Said:
        async with rig.watch(from_id=str(start)) as watching:
            return await watching.until("live-notification", 40)

    publisher = asyncio.create_task(publish())
    try:
        readers = []
        for _ in range(12):
            await rig.notify()
            readers.append(asyncio.create_task(read(1)))
        for said in await asyncio.gather(*readers):
            found = seqs(said)
            assert found == list(range(1, len(found) + 1))
            history, live = seqs(said, "replay"), seqs(said, "live-notification")
            assert found == history + live
            completed = said.names.index("replay-control", 1)
            assert seqs(_until(said, completed)) == history
    finally:
        stop = True
        await publisher


def _until(said: Said, place: int) -> Said:
    blocks = said.raw.split(b"\n\n")
    return Said(said.request_id, b"\n\n".join(blocks[:place]) + b"\n\n")


async def test_a_slow_reader_of_live_gets_everything_as_live(rig: NotifyRig) -> None:
    big = "x" * (4 * PIPE_HIGH_WATER_BYTES)
    async with rig.watch() as watching:
        await watching.until("heartbeat")
        (session,) = rig.assembly.hub.sessions
        for _ in range(200):
            await rig.notify(payload=big)
            if session.paused:
                break
        assert session.paused
        last = (await rig.log.state("notify:polygon")).marks.head
        await watching.until(f"test_polygon@{last}")
    assert seqs(watching) == list(range(1, last + 1))
    assert "event: replay" not in watching.text


async def test_pauses_between_batches_are_kept_where_they_are_set() -> None:
    async with running(options(batch_size=2, batch_pause_seconds=0.02)) as rig:
        for _ in range(5):
            await rig.notify()
        assert seqs(await rig.replay(from_id="1")) == [1, 2, 3, 4, 5]
        batches = (await rig.client.get("/metrics")).text
        assert 'aviso_backend_operations_total{backend="embedded",operation="get_batch",outcome="ok"} 3.0' in batches


# -- across processes


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(data=tmp_path) as rig:
        for payload in range(3):
            await rig.notify(payload=payload)
        before = await rig.replay(from_id="1")
        await rig.client.request("DELETE", "/api/v1/admin/notification/test_polygon@2")
    async with running(data=tmp_path) as rig:
        after = await rig.replay(from_id="1")
        assert seqs(after) == [1, 3]
        assert [frame for frame in after.frames if frame in before.frames] == after.frames
        await rig.notify()
        assert seqs(await rig.replay(from_id="4")) == [4]
