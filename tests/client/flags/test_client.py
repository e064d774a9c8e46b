"""`FlagsClient` beside a real server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

import seamark
from seamark.client.flags.client import FlagsClient
from seamark.client.flags.status import Change, State
from seamark.clock import SystemClock
from seamark.errors import BadField
from tests.client.flags.conftest import QUICK
from tests.flags.manifests import flag, manifest, segment
from tests.flags.test_watch_http import Office, started
from tests.manifest import vectors

pytestmark = pytest.mark.slow  # clients and servers that wait for one another

PATIENCE = 20.0
STAFF = {"user.email": "a@example.com"}
FLAG = "checkout-redesign"


def eventually(true: Callable[[], bool]) -> None:
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.monotonic() + PATIENCE
    while not true():
        assert clock.monotonic() < deadline, "it did not happen"
        pause.wait(0.01)


@contextlib.contextmanager
def following(office: Office, namespaces: Any = "billing", **more: Any) -> Iterator[FlagsClient]:
    token = more.pop("token", office.reader)
    with FlagsClient(office.server.base_url, token, namespaces, pace=QUICK, **more) as client:
        yield client


def test_what_is_pushed_is_answered(office: Office) -> None:
    office.push(vectors.A)
    with following(office) as client:
        assert client.wait_ready(PATIENCE), client.last_refresh_error()
        assert client.get_bool(FLAG, False, STAFF) is True
        assert client.get_bool(FLAG, True) is False
        office.push(vectors.B)
        eventually(lambda: not client.get_bool(FLAG, True, STAFF))
        status = client.status()
        assert (status.version, status.flags, status.state, status.stale) == (2, 1, State.LIVE, False)
        assert client.last_refresh_error() is None
    assert client.status().state is State.CLOSED
    assert client.get_bool(FLAG, True) is False  # what is held can still be asked


def test_a_narrow_subscription_holds_what_it_asked_for(office: Office) -> None:
    office.push(manifest({"a": flag(segment="s"), "b": flag()}, {"s": segment(), "lone": segment()}))
    with following(office, {"billing": ["a", "later"]}) as client:
        assert client.wait_ready(PATIENCE)
        assert set(client.eval_all()) == {"a"}
        assert client.details("b", 1).error_code == "FLAG_NOT_FOUND"
        office.push(manifest({"a": flag(), "later": flag()}))
        eventually(lambda: set(client.eval_all()) == {"a", "later"})


def test_listeners_are_told_which_flags_changed(office: Office) -> None:
    office.push(manifest({"a": flag(), "b": flag(segment="s")}, {"s": segment()}))
    told: Queue[Change] = Queue()

    def faulty(change: Change) -> None:
        raise ValueError("nobody else suffers")

    with following(office) as client:
        client.wait_ready(PATIENCE)
        client.on_change(faulty)
        stop = client.on_change(told.put)
        office.push(manifest({"a": flag(), "b": flag(segment="s")}, {"s": segment(note="other")}))
        assert told.get(timeout=PATIENCE) == Change("billing", 2, frozenset({"b"}))
        stop()
        stop()
        office.push(vectors.A)
        eventually(lambda: client.status().version == 3)
        with pytest.raises(Empty):
            told.get_nowait()


def test_many_namespaces_share_one_connection(office: Office) -> None:
    """And one without a manifest keeps the others from nothing."""
    slugs = [f"n{number}" for number in range(4)]
    for slug in slugs:
        office.call("POST", f"/api/v1/tenants/{office.tenant}/namespaces", {"slug": slug})
    body = {"type": "tenant-admin", "name": "all", "tenant": office.tenant}
    token = office.call("POST", "/api/v1/tokens", body)["secret"]
    other = Office.__new__(Office)
    for number, slug in enumerate(slugs[:3]):
        other.__dict__.update(office.__dict__, base=f"/api/v1/tenants/{office.tenant}/namespaces/{slug}")
        other.push(manifest({f"f{number}": flag()}))
    with following(office, slugs, token=token) as client:
        eventually(lambda: [client.status(slug).version for slug in slugs] == [1, 1, 1, None])
        assert not client.wait_ready(0)
        assert len(client._thread._driver.client.descriptors()) == 1
        assert set(client.eval_all(namespace="n1")) == {"f1"}
        assert client.details("f1", 0).error_code == "UNKNOWN_NAMESPACE"
        assert client.details("f1", 0, namespace="n3").error_code == "PROVIDER_NOT_READY"
        other.__dict__["base"] = f"/api/v1/tenants/{office.tenant}/namespaces/n3"
        other.push(manifest({"late": flag()}))
        assert client.wait_ready(PATIENCE)
        assert client.get_bool("late", True, namespace="n3") is False


def test_more_namespaces_than_one_connection_carries(office: Office) -> None:
    slugs = [f"many{number}" for number in range(33)]
    for slug in slugs:
        office.call("POST", f"/api/v1/tenants/{office.tenant}/namespaces", {"slug": slug})
    with following(office, slugs, token=office.root, tenant=office.tenant) as client:
        eventually(lambda: all(status.state is State.AWAIT_BASELINE for status in client.statuses().values()))
        assert len(client._thread._driver.client.descriptors()) == 2


def test_a_superadmin_says_whose_namespace_it_is(office: Office) -> None:
    office.push(vectors.A)
    with pytest.raises(BadField):
        FlagsClient(office.server.base_url, office.root, "billing")
    with following(office, token=office.root, tenant=office.tenant) as client:
        assert client.wait_ready(PATIENCE)
        assert client.get_bool(FLAG, False, STAFF) is True


def test_a_revoked_token_leaves_what_is_held_and_says_so(office: Office) -> None:
    office.push(vectors.A)
    with following(office) as client:
        assert client.wait_ready(PATIENCE)
        office.call("DELETE", f"/api/v1/tokens/{office.reader_id}")
        eventually(lambda: (error := client.last_refresh_error()) is not None and error.kind == "refused")
        assert "401" in str(client.last_refresh_error())
        details = client.details(FLAG, False, STAFF)
        assert (details.value, details.stale, details.error_code) == (True, True, None)
        assert client.status().state is State.BACKOFF


def test_a_token_that_is_none_answers_defaults(office: Office) -> None:
    with following(office, token="exd_read_nobody") as client:
        eventually(lambda: client.last_refresh_error() is not None)
        assert not client.wait_ready(0)
        details = client.details(FLAG, 7)
        assert (details.value, details.error_code, details.reason) == (7, "PROVIDER_NOT_READY", "sdk_default")
        assert "401" in (details.error_message or "")


def test_a_server_that_is_killed_comes_back(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        office = Office(server, tmp_path)
        office.push(vectors.A)
        address = server.base_url
        server.stop()
    port = address.rpartition(":")[2]
    with started(tmp_path, "--port", port) as server:
        office.server = server
        with FlagsClient(address, office.reader, "billing", pace=QUICK) as client:
            assert client.wait_ready(PATIENCE), client.last_refresh_error()
            server.kill()
            eventually(lambda: client.status().stale)
            assert client.details(FLAG, False, STAFF).value is True
            server.start()
            eventually(lambda: not client.status().stale)
            office.push(vectors.B)
            eventually(lambda: client.get_bool(FLAG, True, STAFF) is False)


def test_a_cache_answers_where_there_is_no_server(office: Office, tmp_path: Path) -> None:
    office.push(vectors.A)
    with following(office, cache_dir=tmp_path) as client:
        assert client.wait_ready(PATIENCE)
        eventually(lambda: bool(list(tmp_path.iterdir())))
    with following(office, cache_dir=tmp_path, token="exd_read_nobody") as again:
        details = again.details(FLAG, False, STAFF)
        assert (details.value, details.stale, details.version) == (True, True, 1)
        assert not again.wait_ready(0)
    with following(office, cache_dir=tmp_path) as third:
        assert third.wait_ready(PATIENCE)
        assert not third.details(FLAG, False, STAFF).stale


@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # of newer Pythons: there are threads, and that is the point
def test_the_child_of_a_fork_goes_on_by_itself(office: Office) -> None:
    office.push(vectors.A)
    with following(office) as client:
        assert client.wait_ready(PATIENCE)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert client.get_bool(FLAG, False, STAFF) is True
                eventually(lambda: client.get_bool(FLAG, True, STAFF) is False and not client.status().stale)
                client.close()
                status = 0
            finally:
                os._exit(status)
        office.push(vectors.B)
        eventually(lambda: client.get_bool(FLAG, True, STAFF) is False)
        assert os.waitpid(child, 0)[1] == 0
        office.push(vectors.A)  # and the parent's stream is untouched
        eventually(lambda: client.get_bool(FLAG, False, STAFF) is True)
        assert client.last_refresh_error() is None


def test_closing_is_the_end_of_it_from_anywhere(office: Office) -> None:
    office.push(vectors.A)
    client = FlagsClient(office.server.base_url, office.reader, "billing", pace=QUICK)
    assert client.wait_ready(PATIENCE)
    client.on_change(lambda _: client.close())
    office.push(vectors.B)
    thread = client._thread._thread
    thread.join(PATIENCE)
    assert not thread.is_alive()
    client.close()
    assert client.status().state is State.CLOSED


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://h"},
        {"url": "http://user:secret@h"},
        {"url": "http://h/?x=1"},
        {"token": ""},
        {"token": "a b"},
        {"namespaces": []},
        {"namespaces": "Billing"},
        {"tenant": "A"},
        {"namespace": "other"},
    ],
)
def test_what_cannot_be_is_said_at_once(wrong: dict[str, Any]) -> None:
    given = {"url": "http://h", "token": "t", "namespaces": "billing", **wrong}
    with pytest.raises(BadField):
        FlagsClient(given.pop("url"), given.pop("token"), given.pop("namespaces"), **given)


def test_the_door_opens_on_clients_only_when_they_are_wanted() -> None:
    assert seamark.FlagsClient is FlagsClient
    assert seamark.AsyncFlagsClient.__name__ == "AsyncFlagsClient"
    with pytest.raises(AttributeError):
        _ = seamark.NoClient


def test_the_door_needs_nothing_that_only_servers_have() -> None:
    code = "import sys, seamark; seamark.FlagsClient; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "h11" in loaded
    assert not loaded & {
        "click",
        "httpx",
        "lmdb",
        "numpy",
        "openfeature",
        "pathspec",
        "rich",
        "starlette",
        "structlog",
        "yaml",
    }
    code = "import sys, seamark; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"asyncio", "h11", "msgspec", "ssl", "seamark.client"}
