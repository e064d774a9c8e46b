"""The fault injectors do the harm they promise, and only that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from seamark.testing.faults import FaultyProxy, Weather, cut_file, file_size_limit, flip_byte, flip_random_byte

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        pass
    finally:
        await hang_up((reader, writer))


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[FaultyProxy]:
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        await _echo(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with FaultyProxy("127.0.0.1", server.sockets[0].getsockname()[1], seed=7) as proxy:
        yield proxy
    server.close()
    await server.wait_closed()
    await asyncio.gather(*(task for task in serving if task is not None))


async def connect(proxy: FaultyProxy) -> Wire:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def hang_up(wire: Wire) -> None:
    wire[1].close()
    with contextlib.suppress(OSError):
        await wire[1].wait_closed()


async def exchange(wire: Wire, data: bytes) -> bytes:
    wire[1].write(data)
    return await asyncio.wait_for(wire[0].readexactly(len(data)), 20)


async def test_in_fair_weather_bytes_pass_and_an_end_is_an_end(proxy: FaultyProxy) -> None:
    wire = await connect(proxy)
    data = random.Random(1).randbytes(300_000)
    sending = asyncio.ensure_future(exchange(wire, data))
    assert await sending == data
    assert proxy.forwarded == {"up": len(data), "down": len(data)}
    assert proxy.connections == 1
    wire[1].write_eof()
    assert await asyncio.wait_for(wire[0].read(), 20) == b""
    await hang_up(wire)


async def test_new_connections_go_where_it_is_aimed(proxy: FaultyProxy) -> None:
    old = await connect(proxy)
    await exchange(old, b"to the echo")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"elsewhere")
        await hang_up((reader, writer))

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as other:
        proxy.aim("127.0.0.1", other.sockets[0].getsockname()[1])
        new = await connect(proxy)
        assert await asyncio.wait_for(new[0].read(), 20) == b"elsewhere"
        assert await exchange(old, b"still to the echo") == b"still to the echo"
        await hang_up(old)
        await hang_up(new)


async def test_a_cut_resets_every_connection_and_new_ones_work(proxy: FaultyProxy) -> None:
    wires = [await connect(proxy) for _ in range(3)]
    for wire in wires:
        await exchange(wire, b"hello")
    assert proxy.cut() == 3
    for reader, writer in wires:
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(1), 20)
        await hang_up((reader, writer))
    again = await connect(proxy)
    assert await exchange(again, b"again") == b"again"
    assert proxy.accepted == 4
    await hang_up(again)


async def test_delay_and_throttle_slow_down(proxy: FaultyProxy) -> None:
    loop, wire = asyncio.get_running_loop(), await connect(proxy)
    proxy.change(Weather(delay_seconds=0.05))
    began = loop.time()
    await exchange(wire, b"x")
    assert loop.time() - began >= 0.1, "both directions are delayed"
    proxy.change(Weather(bytes_per_second=20_000))
    began = loop.time()
    await exchange(wire, b"x" * 6_000)
    assert loop.time() - began >= 0.2
    await hang_up(wire)


async def test_half_open_says_nothing_and_loses_nothing(proxy: FaultyProxy) -> None:
    wire = await connect(proxy)
    await exchange(wire, b"before")
    proxy.change(Weather(silent=frozenset({"down"})))
    wire[1].write(b"during")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wire[0].read(1), 0.1)
    assert proxy.connections == 1
    proxy.change(Weather())
    assert await asyncio.wait_for(wire[0].readexactly(6), 20) == b"during"
    await hang_up(wire)


async def test_refusing_turns_new_connections_away(proxy: FaultyProxy) -> None:
    wire = await connect(proxy)
    await exchange(wire, b"early")
    proxy.change(Weather(refusing=True))
    reader, writer = await connect(proxy)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), 20)
    await hang_up((reader, writer))
    assert await exchange(wire, b"still") == b"still"
    await hang_up(wire)


async def test_corruption_changes_bits_but_not_lengths(proxy: FaultyProxy) -> None:
    wire = await connect(proxy)
    proxy.change(Weather(corrupt_every_bytes=500))
    data = bytes(20_000)
    got = await exchange(wire, data)
    changed = sum(byte != 0 for byte in got)
    assert 10 < changed < 200
    assert all(bin(byte).count("1") <= 2 for byte in got)
    await hang_up(wire)


async def test_an_absent_server_resets(proxy: FaultyProxy) -> None:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with FaultyProxy("127.0.0.1", port) as lonely:
        reader, writer = await connect(lonely)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 20)
        await hang_up((reader, writer))


def test_a_file_cannot_outgrow_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb", buffering=0) as file:
        with file_size_limit(1_000):
            assert file.write(b"x" * 800) == 800
            assert os.write(file.fileno(), b"x" * 800) == 200, "the kernel writes what fits"
            with pytest.raises(OSError, match="File too large"):
                file.write(b"x")
        assert file.write(b"y" * 800) == 800
    assert path.stat().st_size == 1_800


def test_flips_change_one_byte_and_can_be_undone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    flip = flip_byte(path, 7, 0x81)
    assert path.read_bytes() == bytes(7) + b"\x81" + bytes(92)
    assert (flip.before, flip.after) == (0, 0x81)
    flip.undo()
    assert path.read_bytes() == bytes(100)
    source = random.Random(3)
    for _ in range(50):
        flip = flip_random_byte(path, source, start=10, stop=20)
        data = path.read_bytes()
        assert len(data) == 100
        assert [at for at, byte in enumerate(data) if byte] == [flip.offset]
        assert 10 <= flip.offset < 20
        flip.undo()


def test_cutting_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    assert cut_file(path, 30) == 70
    assert path.read_bytes() == bytes(range(30))
