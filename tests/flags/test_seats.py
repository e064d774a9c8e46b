"""Who sits when: few at a time, one of each owner, owners in turn."""

from __future__ import annotations

import asyncio
import random

from seamark.flags.seats import Seats


class Room:
    """Guests that stay until they are told to leave."""

    def __init__(self, count: int) -> None:
        self.seats = Seats(count)
        self.seated: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *guests: str) -> None:
        """`a1` is the first that `a` asks for."""
        for guest in guests:
            self._leave[guest] = asyncio.Event()
            self._tasks[guest] = asyncio.create_task(self._stay(guest))
        await self._settle()

    async def leave(self, guest: str) -> None:
        self._leave[guest].set()
        await self._tasks.pop(guest)
        await self._settle()

    async def give_up(self, guest: str) -> None:
        self._tasks.pop(guest).cancel()
        await self._settle()

    async def _stay(self, guest: str) -> None:
        async with self.seats.of(guest[0]):
            self.seated.append(guest)
            try:
                await self._leave[guest].wait()
            finally:
                self.seated.remove(guest)

    async def _settle(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)


async def test_one_of_each_and_a_few_of_all() -> None:
    room = Room(2)
    await room.come("a1", "a2", "a3", "b1", "c1")
    assert room.seated == ["a1", "b1"]
    await room.leave("a1")
    assert room.seated == ["b1", "c1"]  # `a` has had its turn
    await room.leave("c1")
    assert room.seated == ["b1", "a2"]
    await room.leave("b1")
    assert room.seated == ["a2"]  # the seat beside is for others
    await room.come("d1")
    assert room.seated == ["a2", "d1"]
    await room.leave("a2")
    assert room.seated == ["d1", "a3"]


async def test_whoever_gives_up_takes_no_seat() -> None:
    room = Room(1)
    await room.come("a1", "a2", "b1", "a3")
    await room.give_up("a2")
    await room.give_up("b1")
    await room.give_up("a1")
    assert room.seated == ["a3"]
    await room.leave("a3")
    await room.come("b2")
    assert room.seated == ["b2"]


async def test_whoever_is_called_and_gone_at_the_same_moment_takes_no_seat() -> None:
    seats = Seats(1)

    async def sit() -> None:
        async with seats.of("a"):
            await asyncio.sleep(0)

    async with seats.of("b"):
        waiting = asyncio.create_task(sit())
        await asyncio.sleep(0)
    waiting.cancel()  # its turn has come, and it has not run yet
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    async with asyncio.timeout(1), seats.of("a"):
        pass


async def test_random_guests() -> None:
    dice = random.Random(5)
    room, number, here = Room(3), 0, list[str]()
    for _ in range(2_000):
        if here and dice.random() < 0.5:
            guest = dice.choice(here)
            here.remove(guest)
            await (room.leave(guest) if guest in room.seated else room.give_up(guest))
        else:
            number += 1
            here.append(f"{dice.choice('abcde')}{number}")
            await room.come(here[-1])
        owners = {guest[0] for guest in here}
        assert len(room.seated) == len({guest[0] for guest in room.seated}) == min(3, len(owners))
    for guest in here:
        await room.give_up(guest)
