"""Waiting for news, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from seamark.errors import Busy
from seamark.log.news import Bell
from seamark.log.protocol import News
from seamark.log.watermarks import Watermarks
from seamark.topics import waiting
from seamark.topics.waiting import Waiting

LONG = 20.0


def news(stream: str, *, visible: bool = True, dropped: bool = False) -> Sequence[News]:
    return [News(stream, "i", Watermarks(head=1), (), synced=True, visible=visible, dropped=dropped)]


def deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_what_was_heard_before_the_wait_counts_once() -> None:
    bell = Bell()
    with Waiting(bell).add("a") as waiter:
        bell.ring(news("a"))
        bell.ring(news("a"))
        assert await waiter.wait(deadline(LONG)) is True
        assert await waiter.wait(deadline(0.01)) is False


async def test_only_what_can_be_seen_of_the_own_stream_wakes() -> None:
    bell = Bell()
    with Waiting(bell).add("a") as waiter:
        bell.ring(news("b"))
        bell.ring(news("a", visible=False))
        assert await waiter.wait(deadline(0.01)) is False
        asyncio.get_running_loop().call_soon(bell.ring, news("a", visible=False, dropped=True))
        assert await waiter.wait(deadline(LONG)) is True


async def test_all_that_wait_are_woken_and_forgotten_when_they_leave() -> None:
    bell = Bell()
    everybody = Waiting(bell)
    first, second = everybody.add("a"), everybody.add("a")
    assert len(everybody) == 2
    waits = [asyncio.ensure_future(one.wait(deadline(LONG))) for one in (first, second)]
    await asyncio.sleep(0)
    bell.ring(news("a"))
    assert await asyncio.gather(*waits) == [True, True]
    for one in (first, second, second):
        everybody.remove(one)
    assert len(everybody) == 0


async def test_the_end_lets_everybody_go() -> None:
    everybody = Waiting(Bell())
    with everybody.add("a") as waiter:
        wait = asyncio.ensure_future(waiter.wait(deadline(LONG)))
        await asyncio.sleep(0)
        everybody.close()
        assert await wait is False
        assert await waiter.wait(deadline(LONG)) is False


async def test_so_many_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONG_POLLS_MAX", 1)
    everybody = Waiting(Bell())
    with everybody.add("a"), pytest.raises(Busy) as caught:
        everybody.add("b")
    assert caught.value.fields == {"limit": "max_long_polls", "max": 1}
    with everybody.add("b"):
        pass
