from __future__ import annotations

import asyncio

import pytest

from seamark.flags.once import Once


class Work:
    """Goes on until it is let go; says how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()
        self.once: Once[str, int] = Once()

    async def do(self) -> int:
        self.begun += 1
        await self.go_on.wait()
        return self.begun

    def ask(self, key: str = "a") -> asyncio.Task[int]:
        return asyncio.create_task(self.once.share(key, self.do))


async def test_all_who_ask_at_the_same_time_share() -> None:
    work = Work()
    asked = [work.ask() for _ in range(5)]
    await asyncio.sleep(0)
    work.go_on.set()
    assert await asyncio.gather(*asked) == [1] * 5
    assert await work.ask() == 2, "nothing is kept"


async def test_other_work_is_its_own() -> None:
    work = Work()
    asked = [work.ask("a"), work.ask("b")]
    work.go_on.set()
    await asyncio.gather(*asked)
    assert work.begun == 2


async def test_whoever_leaves_takes_nothing_from_the_others() -> None:
    work = Work()
    first, second = work.ask(), work.ask()
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    assert first.cancelled()
    work.go_on.set()
    assert await second == 1


async def test_a_failure_is_told_to_all_and_tried_again() -> None:
    once: Once[str, int] = Once()

    async def broken() -> int:
        raise OSError("disk")

    for outcome in await asyncio.gather(*(once.share("a", broken) for _ in range(3)), return_exceptions=True):
        assert isinstance(outcome, OSError)
    work = Work()
    work.go_on.set()
    assert await once.share("a", work.do) == 1


async def test_a_failure_that_nobody_waits_for_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    once: Once[str, int] = Once()
    go_on = asyncio.Event()

    async def broken() -> int:
        await go_on.wait()
        raise OSError("disk")

    left = asyncio.create_task(once.share("a", broken))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    go_on.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not caplog.records
