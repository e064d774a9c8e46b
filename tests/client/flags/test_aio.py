"""`AsyncFlagsClient` beside a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import uvloop

from seamark.client.flags.aio import AsyncFlagsClient
from seamark.client.flags.status import Change, State, Status
from tests.client.flags.conftest import QUICK
from tests.client.flags.test_client import FLAG, PATIENCE, STAFF
from tests.client.test_http import Reader, Writer, pair, serving
from tests.flags.manifests import flag, manifest
from tests.flags.test_watch_http import Office
from tests.manifest import vectors


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def follower(office: Office, token: str | None = None) -> AsyncFlagsClient:
    return AsyncFlagsClient(office.server.base_url, token or office.reader, "billing", pace=QUICK)


async def test_what_is_pushed_is_answered(office: Office) -> None:
    await asyncio.to_thread(office.push, vectors.A)
    told: list[Change] = []
    async with follower(office) as client:
        client.on_change(told.append)
        assert await client.wait_ready(PATIENCE), client.last_refresh_error()
        assert client.get_bool(FLAG, False, STAFF) is True
        await asyncio.to_thread(office.push, vectors.B)
        await eventually(lambda: client.get_bool(FLAG, True, STAFF) is False)
        await eventually(lambda: [change.version for change in told] == [1, 2])
    assert client.status().state is State.CLOSED
    assert client.get_bool(FLAG, True) is False


async def test_it_waits_no_longer_than_it_is_told(office: Office) -> None:
    async with follower(office) as client:  # nobody has pushed a manifest yet
        assert await client.wait_ready(0.05) is False
        assert client.details(FLAG, 5).error_code == "PROVIDER_NOT_READY"
        await asyncio.to_thread(office.push, vectors.A)
        assert await client.wait_ready(PATIENCE)


async def test_a_revoked_token_leaves_what_is_held_and_says_so(office: Office) -> None:
    await asyncio.to_thread(office.push, vectors.A)
    told: list[Status] = []
    async with follower(office) as client:
        client.on_status(told.append)
        assert await client.wait_ready(PATIENCE)
        await asyncio.to_thread(office.call, "DELETE", f"/api/v1/tokens/{office.reader_id}")
        await eventually(lambda: (error := client.last_refresh_error()) is not None and error.kind == "refused")
        assert client.details(FLAG, False, STAFF).stale
    assert [(status.ready, status.stale) for status in told][:2] == [(True, False), (True, True)]


async def test_starting_and_closing_twice_is_no_error(office: Office) -> None:
    await asyncio.to_thread(office.push, vectors.A)
    client = follower(office)
    await client.close()
    client.start()
    client.start()
    assert await client.wait_ready(PATIENCE)
    await client.close()
    await client.close()
    before = asyncio.all_tasks()
    assert before == {asyncio.current_task()}


async def test_the_loop_goes_on_while_a_large_manifest_is_linted(office: Office) -> None:
    """Counted in turns of the loop, not in time."""
    files = manifest({f"f{number}": flag() for number in range(2_000)})
    await asyncio.to_thread(office.push, files)
    async with follower(office) as client:
        turns = 0
        while client.status().state is not State.AWAIT_BASELINE:
            await asyncio.sleep(0)
        while not client.status().ready:
            turns += 1
            await asyncio.sleep(0.001)
        assert turns > 10
        assert client.status().flags == 2_000


async def test_without_a_server() -> None:
    async with AsyncFlagsClient.from_files(vectors.A) as flags:
        assert await flags.wait_ready()
        assert flags.get_bool(FLAG, False, STAFF) is True
        assert flags.status().namespace == "billing"


async def test_behind_a_proxy_that_speaks_tls_and_that_the_server_knows_nothing_of(
    office: Office, tmp_path: Path
) -> None:
    """So the addresses of snapshots are those of plain HTTP, and not taken: closures are asked for where the stream is."""
    theirs, trusting = pair(tmp_path)
    targets: list[bytes] = []

    async def pump(reader: Reader, writer: Writer) -> None:
        while piece := await reader.read(65_536):
            writer.write(piece)
        writer.close()

    async def forward(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        targets.append(head.split(b" ")[1])
        far_reader, far_writer = await asyncio.open_connection(*office.server.address)
        far_writer.write(head)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)
        far_writer.close()
        await far_writer.wait_closed()

    await asyncio.to_thread(office.push, vectors.A)
    async with serving(forward, theirs) as port:
        url = f"https://127.0.0.1:{port}"
        async with AsyncFlagsClient(url, office.reader, "billing", tls=trusting, pace=QUICK) as client:
            assert await client.wait_ready(PATIENCE), client.last_refresh_error()
            assert client.get_bool(FLAG, False, STAFF) is True
        events, closure = targets
        assert events.startswith(b"/api/v1/events?")
        assert b"/closure?version=1&subscription=Kg" in closure
        assert b"token" not in closure


def test_another_kind_of_loop(office: Office) -> None:
    """The one that most servers in Python run in."""

    async def whole_life() -> None:
        async with follower(office) as client:
            assert await client.wait_ready(PATIENCE), client.last_refresh_error()
            assert client.get_bool(FLAG, False, STAFF) is True
            await asyncio.to_thread(office.push, vectors.B)
            await eventually(lambda: client.get_bool(FLAG, True, STAFF) is False)
            await asyncio.to_thread(office.call, "DELETE", f"/api/v1/tokens/{office.reader_id}")
            await eventually(lambda: (error := client.last_refresh_error()) is not None and error.kind == "refused")

    office.push(vectors.A)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole_life())
