"""History that many readers ask for is encoded for a few of them, and the rest share it."""

from __future__ import annotations

from collections.abc import Hashable

from seamark.limits import READ_CACHE_ASKS_MIN
from seamark.log.watermarks import Cursor
from seamark.stream.leg import LegSpec
from tests.stream.conftest import Frame, LineDialect, LineScript, World, seqs


class FormedDialect(LineDialect):
    """Its fragments depend on less than its frames."""

    form: Hashable = "plain"


async def read(world: World, dialect: LineDialect, *, after: int = 0) -> list[Frame]:
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(after)), script=LineScript(dialect))
    await world.settle()
    return pipe.frames


async def test_history_is_encoded_once_for_readers_of_one_projection(world: World) -> None:
    await world.append("s", *"abcdefghij")
    first = [await read(world, LineDialect()) for _ in range(READ_CACHE_ASKS_MIN)]
    later = LineDialect()
    frames = [await read(world, later) for _ in range(3)]
    assert all(frame == first[0] for frame in (*first, *frames))
    assert later.encoded == 0
    assert seqs(await read(world, later, after=4)) == [5, 6, 7, 8, 9, 10]
    assert later.encoded == 0


async def test_another_projection_has_its_own_unless_it_says_that_its_form_is_the_same(world: World) -> None:
    await world.append("s", *"abcdefghij")
    for _ in range(READ_CACHE_ASKS_MIN):
        await read(world, FormedDialect("first"))
    same, other = FormedDialect("second"), LineDialect("third")
    await read(world, same)
    await read(world, other)
    assert (same.encoded, other.encoded) == (0, 10)
