"""The driver beside servers that misbehave: what it asks for, whom it tells the secret, when it comes back, and when it gives up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest

from seamark import limits
from seamark.client.flags.aio import AsyncFlagsClient
from seamark.client.flags.retry import Chance, Pace
from seamark.client.flags.status import Change, State
from seamark.manifest.archive import pack
from seamark.manifest.closure import closure_hash, index_of
from tests.client.flags.puppet import PATH, Puppet, Reply, tagged
from tests.client.flags.test_aio import eventually
from tests.flags.manifests import flag, manifest

pytestmark = pytest.mark.slow  # clients and servers that wait for one another

T = TypeVar("T")
PACE = Pace(first=0.01, most=0.02, slow=0.02, connect=5.0, silence=10.0, snapshot=5.0)
ONE, TWO, THREE = (manifest({"a": flag(note=note), "b": flag()}) for note in "123")
SECRET = {"authorization": "Bearer secret"}


def hash_of(files: dict[str, bytes]) -> str:
    return closure_hash(index_of(files))


@pytest.fixture
async def puppet() -> AsyncIterator[Puppet]:
    async with Puppet() as made:
        yield made


@contextlib.asynccontextmanager
async def following(puppet: Puppet, **more: Any) -> AsyncIterator[AsyncFlagsClient]:
    given = {"namespaces": "ns", "pace": PACE, **more}
    async with AsyncFlagsClient(puppet.url, "secret", given.pop("namespaces"), **given) as client:
        yield client


@contextlib.asynccontextmanager
async def live(puppet: Puppet, **more: Any) -> AsyncIterator[AsyncFlagsClient]:
    """One that holds version 1."""
    async with following(puppet, **more) as client:
        await puppet.streaming(1)
        puppet.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1)
        assert await client.wait_ready(20)
        yield client


def holds(client: AsyncFlagsClient, files: dict[str, bytes]) -> bool:
    return client.status("ns").closure_hash == hash_of(files) and not client.status("ns").stale


def error_of(client: AsyncFlagsClient) -> str:
    error = client.last_refresh_error()
    return "" if error is None else error.kind


async def test_what_is_asked_and_with_what(puppet: Puppet) -> None:
    async with live(puppet):
        events, closure = puppet.asked
        assert events.target == "/api/v1/events?ns=ns:*"
        assert events.headers["accept"] == "text/event-stream"
        assert events.headers["authorization"] == "Bearer secret"
        assert events.headers["accept-encoding"] == "identity"
        assert closure.target == PATH.format(slug="ns", version=1) + "&token=t"
        assert closure.headers["authorization"] == "Bearer secret"


async def test_the_secret_is_not_told_to_another_origin(puppet: Puppet) -> None:
    async with Puppet() as other, following(puppet) as client:
        await puppet.streaming(1)
        other.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1, snapshot_url=other.url + PATH.format(slug="ns", version=1))
        assert await client.wait_ready(20)
        (asked,) = other.asked
        assert "authorization" not in asked.headers
        assert not puppet.fetches


async def test_a_redirect_is_not_followed(puppet: Puppet) -> None:
    async with Puppet() as other, following(puppet) as client:
        await puppet.streaming(1)
        puppet.replies = [Reply(302, b"", {"Location": other.url + "/x"})]
        puppet.snapshot(ONE, 1)
        await eventually(lambda: error_of(client) == "fetch")
        assert not other.asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"prev_closure_hash": hash_of(THREE)},
        {"closure_hash": hash_of(THREE)},
        {"files": [{"path": "x", "op": "leave"}]},
    ],
)
async def test_a_failed_check_is_mended_by_the_version_with_the_secret(puppet: Puppet, wrong: dict[str, Any]) -> None:
    """And when the promise itself was false, by a new stream."""
    async with live(puppet) as client:
        puppet.replies = [tagged(TWO, 2)]
        puppet.inline(ONE, TWO, 2, **wrong)
        if "closure_hash" in wrong:
            await puppet.streaming(2)
            assert len(puppet.fetches) == 1 + limits.CLIENT_SNAPSHOT_TRIES_MAX
            assert client.status().closure_hash == hash_of(ONE)
            puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))
        first = puppet.fetches[1]
        assert first.target == PATH.format(slug="ns", version=2)
        assert first.headers["authorization"] == "Bearer secret"


async def test_a_damaged_event_is_mended_by_its_version(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.replies = [tagged(TWO, 2)]
        puppet.inline(ONE, TWO, 2, delivery="pigeon")
        await eventually(lambda: holds(client, TWO))
        assert puppet.opened == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"event: version\nid: ns:2\ndata: {\n\n",
        b'event: version\nid: ns:3\ndata: {"protocol":"v2","namespace":"ns","version":2,"closure_hash":"x"}\n\n',
        b'event: version\nid: ns:2\ndata: {"protocol":"v2","namespace":"other","version":2,"closure_hash":"x"}\n\n',
        b"data: " + b"x" * (limits.CLIENT_EVENT_BYTES_MAX + 1) + b"\n\n",
    ],
)
async def test_what_cannot_be_understood_ends_the_connection(puppet: Puppet, raw: bytes) -> None:
    async with live(puppet) as client:
        puppet.write(raw)
        await puppet.streaming(2)
        assert puppet.asked[-1].target == "/api/v1/events?ns=ns:*&since=ns:1"
        puppet.snapshot(ONE, 1)
        await eventually(lambda: holds(client, ONE) and error_of(client) == "")
        assert len(puppet.fetches) == 1  # what is here already does not come again


async def test_an_event_whose_id_says_another_version_is_damaged(puppet: Puppet) -> None:
    """No hash covers the version: a client that believed a too high one would pass over all that follows."""
    async with live(puppet) as client:
        puppet.inline(ONE, TWO, 2, version=900)
        await puppet.streaming(2)
        assert client.status().version == 1


async def test_events_that_arrive_while_a_snapshot_is_fetched_wait_for_it(puppet: Puppet) -> None:
    async with following(puppet) as client:
        await puppet.streaming(1)
        puppet.hold.clear()
        puppet.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1)
        puppet.inline(ONE, TWO, 2)
        puppet.inline(ONE, TWO, 2)
        puppet.inline(TWO, THREE, 3)
        await eventually(lambda: len(puppet.fetches) == 1)
        puppet.hold.set()
        await eventually(lambda: holds(client, THREE))
        assert len(puppet.fetches) == 1


async def test_more_events_than_are_kept_are_one_fetch(puppet: Puppet) -> None:
    async with following(puppet) as client:
        await puppet.streaming(1)
        puppet.hold.clear()
        puppet.replies = [tagged(ONE, 1), tagged(TWO, 100)]
        puppet.snapshot(ONE, 1)
        await eventually(lambda: len(puppet.fetches) == 1)
        for version in range(2, 2 + limits.CLIENT_EVENTS_WAITING_MAX + 1):
            before, after = (ONE, TWO) if version % 2 == 0 else (TWO, ONE)
            puppet.inline(before, after, version)
        last = 2 + limits.CLIENT_EVENTS_WAITING_MAX
        assert after == TWO
        await asyncio.sleep(0.05)
        puppet.hold.set()
        await eventually(lambda: holds(client, TWO))
        assert puppet.fetches[1].target == PATH.format(slug="ns", version=last)
        assert client.status().version == last


async def test_what_was_begun_is_finished_and_told_before_the_next_connection(puppet: Puppet) -> None:
    """The connection is lost while a thread is still linting what came over it."""
    begun, gate = threading.Event(), threading.Event()
    async with following(puppet) as client:
        told: list[Change] = []
        client.on_change(told.append)
        board, jobs = client._board, 0
        work = board.work

        async def gated(job: Callable[[], T]) -> T:
            nonlocal jobs
            jobs += 1
            number = jobs

            def slowly() -> T:
                if number == 2:  # the first finds out that there is something to fetch
                    begun.set()
                    gate.wait(20)
                return job()

            return await work(slowly)

        board.work = gated  # type: ignore[method-assign]
        await puppet.streaming(1)
        puppet.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1)
        await asyncio.to_thread(begun.wait, 20)
        puppet.cut()
        await asyncio.sleep(0.1)
        assert (puppet.opened, told) == (1, [])
        gate.set()
        await puppet.streaming(2)
        assert [change.version for change in told] == [1]
        assert client.status().stale
        puppet.snapshot(ONE, 1)
        await eventually(lambda: holds(client, ONE))
        assert len(told) == 1


async def test_namespaces_do_not_wait_for_one_another(puppet: Puppet) -> None:
    async with following(puppet, namespaces=["ns", "other"]) as client:
        await puppet.streaming(1)
        puppet.hold.clear()
        puppet.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1)
        puppet.snapshot(ONE, 1, slug="other")
        await eventually(lambda: len(puppet.fetches) == 2)  # at the same time
        puppet.hold.set()
        assert await client.wait_ready(20)
        puppet.hold.clear()
        puppet.replies = [tagged(TWO, 2)]
        puppet.snapshot(TWO, 2, slug="other")
        puppet.inline(ONE, THREE, 2)
        await eventually(lambda: holds(client, THREE))
        assert client.status("other").version == 1
        puppet.hold.set()
        await eventually(lambda: client.status("other").version == 2)


@pytest.mark.parametrize(
    "body",
    [pack(TWO)[:-9], b"no archive", pack(THREE), b"", pack({**TWO, "flags/zz.toml": b""})],
)
async def test_a_snapshot_that_is_damaged_is_fetched_again(puppet: Puppet, body: bytes) -> None:
    async with live(puppet) as client:
        good = tagged(TWO, 2)
        puppet.replies = [good._replace(body=body), good]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))
        assert len(puppet.fetches) == 3
        assert puppet.opened == 1
        assert all("if-none-match" not in asked.headers for asked in puppet.fetches)


async def test_a_snapshot_without_an_end_is_cut_off(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.replies = [Reply(200, bytes(limits.ARCHIVE_BYTES_MAX + 1)), tagged(TWO, 2)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_an_address_that_is_refused_is_asked_for_anew(puppet: Puppet, status: int) -> None:
    async with live(puppet) as client:
        puppet.replies = [Reply(status, b'{"error":{"code":"closure_token_invalid"}}')]
        puppet.snapshot(TWO, 2)
        await puppet.streaming(2)
        assert str(status) in str(client.last_refresh_error())
        puppet.replies = [tagged(TWO, 2)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_trouble_of_the_server_is_waited_out(puppet: Puppet, status: int) -> None:
    async with live(puppet) as client:
        puppet.replies = [Reply(status), Reply(status), tagged(TWO, 2)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))
        assert puppet.opened == 1


async def test_a_server_may_ask_to_be_left_alone_with_a_snapshot_and_the_stream_goes_on(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.replies = [Reply(503, b"", {"Retry-After": "600"}), tagged(THREE, 3)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: error_of(client) == "fetch")
        await asyncio.sleep(0.1)
        assert (len(puppet.fetches), puppet.opened) == (2, 1)
        puppet.snapshot(THREE, 3)  # which is another one
        await eventually(lambda: holds(client, THREE))


async def test_a_namespace_that_cannot_be_served_is_tried_less_and_less_often(puppet: Puppet) -> None:
    """Although the other one on its connection is well each time."""
    told: list[int] = []

    class Noted(Pace):
        def delay(self, failures: int, chance: Chance, *, asked: float = 0.0) -> float:
            told.append(failures)
            return 0.0

    async with following(puppet, namespaces=["ns", "other"], pace=Noted()) as client:
        puppet.replies = [tagged(ONE, 1), Reply(404)]
        for stream in (1, 2, 3, 4):
            await puppet.streaming(stream)
            puppet.snapshot(ONE, 1)
            await eventually(lambda: holds(client, ONE))
            puppet.snapshot(TWO, 1, slug="other")
        await puppet.streaming(5)
    assert told == [1, 2, 3, 4]


async def test_a_resync_is_held_against_the_tag_of_its_answer(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.inline(ONE, TWO, 9)
        await eventually(lambda: holds(client, TWO))
        puppet.replies = [
            tagged(THREE, 4)._replace(headers={}),
            tagged(TWO, 4)._replace(body=pack(THREE)),
            tagged(THREE, 4),
        ]
        puppet.resync(4)
        puppet.inline(THREE, ONE, 5)
        await eventually(lambda: holds(client, ONE))
        assert client.status().version == 5
        assert puppet.opened == 1


async def test_a_newer_snapshot_ends_the_tries_for_an_older_one(puppet: Puppet) -> None:
    patient = Pace(first=600.0, most=600.0, slow=600.0)
    async with live(puppet, pace=patient) as client:
        puppet.replies = [tagged(ONE, 2)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: error_of(client) == "snapshot")
        puppet.replies = [tagged(THREE, 3)]
        puppet.snapshot(THREE, 3)
        await eventually(lambda: holds(client, THREE))


async def test_without_a_tenant_there_is_nothing_but_to_ask_anew(puppet: Puppet) -> None:
    async with following(puppet) as client:
        await puppet.streaming(1)
        puppet.inline(ONE, TWO, 2)
        await puppet.streaming(2)
        assert error_of(client) == "fetch"
        assert not puppet.fetches
        puppet.replies = [tagged(TWO, 2)]
        puppet.snapshot(TWO, 2)
        await eventually(lambda: holds(client, TWO))


@pytest.mark.parametrize("status", [400, 401, 403, 414, 429, 500, 503, 204])
async def test_a_stream_that_is_refused_is_asked_for_again(puppet: Puppet, status: int) -> None:
    puppet.refusals = [Reply(status, b'{"error":{}}', {"Retry-After": "0"}), Reply(status)]
    async with following(puppet) as client:
        await puppet.streaming(1)
        assert error_of(client) == "refused"
        assert str(status) in str(client.last_refresh_error())
        puppet.replies = [tagged(ONE, 1)]
        puppet.snapshot(ONE, 1)
        assert await client.wait_ready(20)


async def test_a_refusal_that_stands_is_not_asked_again_at_once(puppet: Puppet) -> None:
    puppet.refusals = [Reply(401)] * 9
    async with following(puppet, pace=Pace(first=0.001, most=0.001, slow=600.0)) as client:
        await eventually(lambda: error_of(client) == "refused")
        await asyncio.sleep(0.1)
        assert puppet.opened == 1
        assert client.status().state is State.BACKOFF


async def test_a_server_may_ask_to_be_left_alone(puppet: Puppet) -> None:
    puppet.refusals = [Reply(503, b"", {"Retry-After": "600"})] * 9
    async with following(puppet, pace=Pace(first=0.001, most=0.001)) as client:
        await eventually(lambda: error_of(client) == "refused")
        await asyncio.sleep(0.1)
        assert puppet.opened == 1


async def test_what_is_no_event_stream_is_a_refusal(puppet: Puppet) -> None:
    puppet.refusals = [Reply(200, b"<html>", {"Content-Type": "text/html"})]
    async with following(puppet) as client:
        await puppet.streaming(1)
        assert "<html>" in str(client.last_refresh_error())


async def test_another_protocol_is_the_end_only_when_it_is_said_again_and_again(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.snapshot(TWO, 2, protocol="v3")
        await puppet.streaming(2)
        puppet.snapshot(ONE, 1)
        await eventually(lambda: error_of(client) == "")
        puppet.cut()
        for stream in (3, 4, 5):
            await puppet.streaming(stream)
            puppet.snapshot(TWO, 2, protocol="v3")
        await eventually(lambda: client.status().state is State.STOPPED)
        assert (error_of(client), client.get_bool("a", True)) == ("protocol", False)
        await asyncio.sleep(0.1)
        assert puppet.opened == 5


async def test_silence_is_the_end_of_a_connection(puppet: Puppet) -> None:
    async with live(puppet, pace=Pace(first=0.01, most=0.02, silence=0.1)) as client:
        await puppet.streaming(2)
        assert "silent" in str(client.last_refresh_error())
        assert client.details("a", True).stale


async def test_keepalives_are_no_silence(puppet: Puppet) -> None:
    async with live(puppet, pace=Pace(first=0.01, most=0.02, silence=1.0)):
        for _ in range(30):
            puppet.write(b":keepalive\n\n")
            await asyncio.sleep(0.05)
        assert puppet.opened == 1


async def test_events_of_other_names_are_passed_over(puppet: Puppet) -> None:
    async with live(puppet) as client:
        puppet.say("news", {"protocol": "v9"}, "ns:77")
        puppet.inline(ONE, TWO, 2)
        await eventually(lambda: holds(client, TWO))
        assert puppet.opened == 1
