"""News that is late, doubled, foreign, partial or missing: what a channel makes of it, told piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from seamark.log.protocol import News
from seamark.log.settings import Durability
from seamark.log.watermarks import Cursor
from seamark.stream.leg import LegSpec
from tests.stream.conftest import TapPipe, World, build, seqs


class Deaf:
    """A hub that hears only what it is told, over a log where things happen. One record, and two readers, are there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.eventual = TapPipe()
        self.strong = TapPipe()

    async def start(self) -> None:
        await self.world.append("s", "1")
        self.world.watch("s", pipe=self.eventual)
        self.world.watch(LegSpec(stream="s", synced=True), pipe=self.strong)
        await self.world.settle()
        self.world.hub._unsubscribe()

    async def write(self, *payloads: str) -> None:
        """Without a word."""
        await self.world.append("s", *payloads)

    async def tell(self, *told: int, head: int, silent: bool = False, **more: object) -> None:
        state = await self.world.inner.state("s")
        records = (await self.world.inner.read("s", Cursor())).records
        chosen = None if silent else [record for record in records if record.seq in told]
        marks = msgspec.structs.replace(state.marks, head=head, synced=head)
        news = News("s", state.instance, marks, chosen, synced=True)
        self.world.hub._hear([msgspec.structs.replace(news, **more)])

    async def heard(self) -> tuple[list[int], list[int]]:
        await self.world.settle()
        return seqs(self.eventual.frames), seqs(self.strong.frames)


@pytest.fixture(params=["now", "waiting"])
async def deaf(request: pytest.FixtureRequest) -> AsyncIterator[Deaf]:
    world = build(request.param)
    deaf = Deaf(world)
    await deaf.start()
    yield deaf
    world.hub.close()
    await world.inner.close()


async def test_records_that_follow_are_handed_on_as_they_are(deaf: Deaf) -> None:
    await deaf.write("2", "3")
    await deaf.tell(2, 3, head=3)
    assert seqs(deaf.eventual.frames) == seqs(deaf.strong.frames) == [1, 2, 3]


async def test_news_told_twice_or_in_part_before_is_handed_on_once(deaf: Deaf) -> None:
    await deaf.write("2", "3", "4")
    await deaf.tell(2, head=2)
    await deaf.tell(2, head=2)
    await deaf.tell(1, 2, 3, head=3)
    await deaf.tell(2, 3, head=3)
    await deaf.tell(3, 4, head=4)
    assert await deaf.heard() == ([1, 2, 3, 4], [1, 2, 3, 4])


@pytest.mark.parametrize("told", [(4,), (3, 4), (2, 4), (1,), ()])
async def test_a_hole_is_read_from_the_log(deaf: Deaf, told: tuple[int, ...]) -> None:
    await deaf.write("2", "3", "4")
    await deaf.tell(*told, head=4)
    assert await deaf.heard() == ([1, 2, 3, 4], [1, 2, 3, 4])


async def test_news_that_comes_while_the_log_is_read_is_left_to_the_reading(deaf: Deaf) -> None:
    await deaf.write("2", "3", "4")
    await deaf.tell(head=3, silent=True)
    await asyncio.sleep(0)  # where reads wait, one is under way from behind the first record
    await deaf.tell(2, head=2)
    assert await deaf.heard() == ([1, 2, 3, 4], [1, 2, 3, 4])


async def test_late_news_does_not_make_it_forget_how_far_the_log_reaches(deaf: Deaf) -> None:
    await deaf.tell(head=4, silent=True)  # of what cannot be read yet
    await deaf.tell(head=1, silent=True)
    await deaf.tell(head=3, silent=True)
    await deaf.write("2", "3", "4")
    await deaf.tell(4, head=4)
    assert await deaf.heard() == ([1, 2, 3, 4], [1, 2, 3, 4])


async def test_strong_readers_hear_of_the_durable_and_the_others_of_the_visible(deaf: Deaf) -> None:
    await deaf.write("2", "3")
    state = await deaf.world.inner.state("s")
    half = msgspec.structs.replace(state.marks, synced=2)
    await deaf.tell(2, 3, head=3, marks=half, synced=False)
    assert (seqs(deaf.eventual.frames), seqs(deaf.strong.frames)) == ([1, 2, 3], [1])
    await deaf.tell(2, 3, head=3, visible=False)
    assert await deaf.heard() == ([1, 2, 3], [1, 2, 3])


async def test_news_of_an_earlier_instance_is_nothing(deaf: Deaf) -> None:
    await deaf.write("2")
    (two,) = (await deaf.world.inner.read("s", Cursor(1))).records
    await deaf.tell(2, head=2)
    foreign = [msgspec.structs.replace(two, seq=3)]
    await deaf.tell(head=3, instance="earlier", records=foreign)
    await deaf.tell(head=9, instance="earlier", dropped=True)
    assert await deaf.heard() == ([1, 2], [1, 2])
    await deaf.write("3")
    await deaf.tell(3, head=3)
    assert await deaf.heard() == ([1, 2, 3], [1, 2, 3])
    assert not deaf.eventual.ended


@pytest.mark.parametrize("durability", [Durability.FSYNC, Durability.DISK])
async def test_an_end_that_was_missed_is_learned_from_what_came_after_it(deaf: Deaf, durability: Durability) -> None:
    await deaf.world.inner.drop("s")
    await deaf.world.append("s", "new", "er", durability=durability)
    await deaf.tell(1, 2, head=2)
    await deaf.world.settle()
    for pipe in (deaf.eventual, deaf.strong):
        assert pipe.frames[-2:] == [["dropped", "s", 1], ["close", "dropped"]]
        assert seqs(pipe.frames) == [1]


async def test_two_ends_of_which_the_first_was_missed(deaf: Deaf) -> None:
    marks = (await deaf.world.inner.state("s")).marks
    await deaf.world.inner.drop("s")
    deaf.world.hub._hear([News("s", "later", marks, (), synced=True, dropped=True)])
    await deaf.world.settle()
    for pipe in (deaf.eventual, deaf.strong):
        assert pipe.frames[-2:] == [["dropped", "s", 1], ["close", "dropped"]]
