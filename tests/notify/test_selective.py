"""Replays and watches that want little of a long history do not read all of it: what is counted is the records that are decoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from seamark.limits import COLUMN_BLOCK_RECORDS
from seamark.log import reader, skim
from seamark.log.chunk import Chunk, records_of
from seamark.log.local import LocalLog
from seamark.log.protocol import Append
from seamark.log.record import Draft, Record
from seamark.notify.request import Request
from seamark.notify.validate import notification
from tests.notify.rig import NotifyRig, options, running
from tests.notify.test_watch import seqs

SCHEMA = {
    "long": {
        "topic": {"base": "long", "key_order": ["word", "step"]},
        "identifier": {
            "word": {"type": "StringHandler", "required": False},
            "step": {"type": "IntHandler", "required": False},
            "polygon": {"type": "PolygonHandler", "required": False},
        },
    }
}
BATCH = 256
BLOCKS = 2
TAIL = 2 * BATCH  # behind the last whole block, and so without columns
STORED = BLOCKS * COLUMN_BLOCK_RECORDS + TAIL
WANTED = [1_000, COLUMN_BLOCK_RECORDS, COLUMN_BLOCK_RECORDS + 1, STORED - 1]
RARE, LARGE = "rare", 1_000_000
HERE, ELSEWHERE = "(40,40,40,42,42,42,42,40,40,40)", "(-3,-3,-3,-1,-1,-1,-1,-3,-3,-3)"
WISHES: dict[str, dict[str, Any]] = {
    "a value": {"word": RARE},
    "a condition": {"step": {"gte": LARGE}},
    "a narrow condition": {"step": {"eq": LARGE}},
    "some numbers": {"step": {"in": [LARGE, LARGE + 1]}},
    "a polygon": {"polygon": "(41,41,41,50,50,50,41,41)"},
    "a point": {"point": "41,41"},
    "all of it": {"word": RARE, "step": {"between": [LARGE, LARGE]}, "polygon": HERE},
}


class Reading:
    """How many records were decoded."""

    def __init__(self) -> None:
        self.records = 0

    def records_of(self, stream: str, chunk: Chunk) -> list[Record]:
        self.records += chunk.count
        return records_of(stream, chunk)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NotifyRig]:
    """A server with a history of some blocks."""
    async with running(options(SCHEMA), data=tmp_path_factory.mktemp("long")) as rig:
        event = options(SCHEMA).schema.get("long")
        assert event is not None

        def draft(number: int) -> Draft:
            wanted = number in WANTED
            values = {"word": RARE, "step": LARGE} if wanted else {"word": f"w{number % 9}", "step": number}
            return notification(event, Request("long", {**values, "polygon": HERE if wanted else ELSEWHERE}))

        for first in range(1, STORED, BATCH):
            await rig.log.append(Append(stream=event.stream, drafts=[draft(first + place) for place in range(BATCH)]))
        assert isinstance(rig.log, LocalLog)
        rig.log.sweep()
        yield rig


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    counted = Reading()
    for module in (reader, skim):
        monkeypatch.setattr(module, "records_of", counted.records_of)
    return counted


def little(found: Iterable[int]) -> int:
    """At the most a chunk for each that was found, and what has no columns."""
    return BATCH * len(list(found)) + TAIL


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_selective_replay_reads_little(long: NotifyRig, reading: Reading, wish: dict[str, Any]) -> None:
    said = await long.replay("long", identifier=wish, from_id="1")
    assert seqs(said) == WANTED
    assert 0 < reading.records <= little(WANTED)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_later_start_reads_less(long: NotifyRig, reading: Reading) -> None:
    said = await long.replay("long", identifier={"word": RARE}, from_id=str(COLUMN_BLOCK_RECORDS + 2))
    assert seqs(said) == WANTED[3:]
    assert 0 < reading.records <= TAIL


@pytest.mark.asyncio(loop_scope="module")
async def test_a_watch_with_history_reads_little(long: NotifyRig, reading: Reading) -> None:
    async with long.watch("long", identifier={"step": {"gt": STORED}}, from_id="1") as watching:
        await watching.until("replay_completed")
        assert seqs(watching) == WANTED
        assert 0 < reading.records <= little(WANTED)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_nobody_ever_said_is_not_looked_for(long: NotifyRig, reading: Reading) -> None:
    assert seqs(await long.replay("long", identifier={"word": "never"}, from_id="1")) == []
    assert reading.records <= TAIL


@pytest.mark.asyncio(loop_scope="module")
async def test_who_wants_everything_reads_everything(long: NotifyRig, reading: Reading) -> None:
    """So the counting counts."""
    replay = asyncio.create_task(long.replay("long", identifier={"step": {"gte": 0}}, from_id="1", to_id=str(STORED)))
    assert len(seqs(await replay)) == 10_000  # as many as one request is given
    assert reading.records >= 10_000
