from __future__ import annotations

from collections.abc import Sequence

from seamark.log.news import Bell
from seamark.log.protocol import News
from seamark.log.watermarks import Watermarks

NEWS = [News("t", "i", Watermarks())]


def test_a_listener_that_raises_keeps_nobody_from_hearing() -> None:
    bell = Bell()
    heard: list[Sequence[News]] = []

    def broken(news: Sequence[News]) -> None:
        raise RuntimeError("mine")

    bell.subscribe(broken)
    bell.subscribe(heard.append)
    bell.ring(NEWS)
    assert heard == [NEWS]


def test_stopping_is_safe_while_ringing_and_twice() -> None:
    bell = Bell()
    heard: list[str] = []

    def first(news: Sequence[News]) -> None:
        heard.append("first")
        stop()
        stop()

    stop = bell.subscribe(first)
    bell.subscribe(lambda news: heard.append("second"))
    bell.ring(NEWS)
    bell.ring(NEWS)
    assert heard == ["first", "second", "second"]


def test_no_news_is_not_rung() -> None:
    bell = Bell()
    heard: list[Sequence[News]] = []
    bell.subscribe(heard.append)
    bell.ring([])
    assert heard == []
