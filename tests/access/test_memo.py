"""Answers that are believed for a while, and asked for once."""

from __future__ import annotations

import asyncio

import pytest

from seamark import limits
from seamark.access.memo import Memo
from seamark.clock import ManualClock
from seamark.errors import Busy


class Oracle:
    """Answers when told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = asyncio.Event()
        self.error: Exception | None = None

    async def answer(self) -> str:
        self.asked += 1
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return f"answer {self.asked}"


async def test_one_question_however_many_want_to_know() -> None:
    memo, oracle = Memo[str](ManualClock(), seconds=300, most=10), Oracle()
    waiting = [asyncio.ensure_future(memo.ask("a", oracle.answer)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # the one who asked leaves; the others still hear
    oracle.open.set()
    assert await asyncio.gather(*waiting[1:]) == ["answer 1"] * 4
    assert (oracle.asked, memo.known("a"), memo.known("b"), len(memo)) == (1, "answer 1", None, 1)


async def test_an_answer_is_believed_only_so_long() -> None:
    clock = ManualClock()
    memo, oracle = Memo[str](clock, seconds=300, most=10), Oracle()
    oracle.open.set()
    await memo.ask("a", oracle.answer)
    clock.advance(299.9)
    assert memo.known("a") == "answer 1"
    clock.advance(0.1)
    assert memo.known("a") is None
    assert await memo.ask("a", oracle.answer) == "answer 2"
    assert memo.known("a") == "answer 2"


async def test_failures_are_told_to_all_who_wait_and_not_kept() -> None:
    memo, oracle = Memo[str](ManualClock(), seconds=300, most=10), Oracle()
    oracle.error = ValueError("no")
    oracle.open.set()
    assert [type(error) for error in await asyncio.gather(
        memo.ask("a", oracle.answer), memo.ask("a", oracle.answer), return_exceptions=True
    )] == [ValueError, ValueError]  # fmt: skip
    oracle.error = None
    assert await memo.ask("a", oracle.answer) == "answer 2"


async def test_the_one_used_longest_ago_is_forgotten() -> None:
    memo, oracle = Memo[str](ManualClock(), seconds=300, most=2), Oracle()
    oracle.open.set()
    await memo.ask("a", oracle.answer)
    await memo.ask("b", oracle.answer)
    memo.known("a")
    await memo.ask("c", oracle.answer)
    assert [name for name in "abc" if memo.known(name)] == ["a", "c"]


async def test_questions_are_bounded_and_end_with_the_memo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUTH_ASKING_MAX", 1)
    memo, oracle = Memo[str](ManualClock(), seconds=300, most=2), Oracle()
    waiting = asyncio.ensure_future(memo.ask("a", oracle.answer))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await memo.ask("b", oracle.answer)
    await memo.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert memo.known("a") is None
