"""The ASGI pipe behaves as the transport's does: pauses, resumes, ends exactly once."""

from __future__ import annotations

import asyncio

from seamark.stream.pipe import Block
from seamark.stream.sink import BufferPipe


class Owner:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def gone(self) -> None:
        self.heard.append("gone")


def make() -> tuple[BufferPipe, Owner]:
    pipe, owner = BufferPipe(high=100, low=20), Owner()
    pipe.owner = owner
    return pipe, owner


async def test_what_is_written_comes_out_unframed_and_joined() -> None:
    pipe, _ = make()
    pipe.write(Block(b"a"))
    pipe.write(Block(b"b"))
    assert await pipe.next() == b"ab"


async def test_a_waiting_reader_is_woken() -> None:
    pipe, _ = make()
    reading = asyncio.create_task(pipe.next())
    await asyncio.sleep(0)
    pipe.write(Block(b"a"))
    assert await reading == b"a"


async def test_pauses_once_inside_write_and_resumes_when_the_bytes_are_taken() -> None:
    pipe, owner = make()
    pipe.write(Block(b"x" * 100))
    assert owner.heard == []
    pipe.write(Block(b"x"))
    pipe.write(Block(b"x"))
    assert owner.heard == ["pause"]
    assert pipe.buffered == 102
    assert await pipe.next() == b"x" * 102
    assert pipe.buffered == 102  # being sent, not yet taken
    assert owner.heard == ["pause"]
    reading = asyncio.create_task(pipe.next())
    await asyncio.sleep(0)
    assert owner.heard == ["pause", "resume"]
    assert pipe.buffered == 0
    pipe.close()
    assert await reading is None


async def test_close_sends_the_last_words_then_ends_once() -> None:
    pipe, owner = make()
    pipe.write(Block(b"a"))
    pipe.close(Block(b"bye"))
    pipe.close(Block(b"again"))
    pipe.write(Block(b"late"))
    assert pipe.closing
    assert [chunk async for chunk in pipe] == [b"abye"]
    assert await pipe.next() is None
    assert owner.heard == ["gone"]


async def test_abort_drops_what_waits() -> None:
    pipe, owner = make()
    reading = asyncio.create_task(pipe.next())
    await asyncio.sleep(0)
    pipe.write(Block(b"a"))
    pipe.abort()
    pipe.abort()
    assert await reading is None
    assert pipe.buffered == 0
    assert owner.heard == ["gone"]


async def test_a_closed_pipe_neither_pauses_nor_resumes() -> None:
    pipe, owner = make()
    pipe.write(Block(b"x" * 200))
    pipe.close(Block(b"bye"))
    assert await pipe.next() == b"x" * 200 + b"bye"
    assert await pipe.next() is None
    assert owner.heard == ["pause", "gone"]
