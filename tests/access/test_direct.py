"""Asking auth-o-tron: over real connections to a process that stands in for it."""

from __future__ import annotations

import asyncio
import base64
import gc
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from seamark import limits
from seamark.access.bearer import BASIC, BEARER, Presented, presented
from seamark.access.direct import AuthOTron
from seamark.access.jwt import INVALID, Tokens
from seamark.access.trusted_proxy import TrustedProxy
from seamark.clock import SystemClock
from seamark.errors import Busy, Forbidden, Unauthenticated, Unreachable
from seamark.kinds import Secret
from tests.access.auth_o_tron import auth_o_tron, token_of
from tests.access.tokens import SECRET

pytestmark = pytest.mark.slow  # servers, and patience that has to end


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with auth_o_tron(tmp_path_factory.mktemp("auth")) as url:
        yield url


@pytest.fixture
async def service(url: str) -> AsyncIterator[AuthOTron]:
    service = asking(url)
    yield service
    await service.close()


def asking(url: str, *, timeout_seconds: float = 20.0) -> AuthOTron:
    return AuthOTron(url, Tokens(Secret(SECRET), SystemClock()), timeout_seconds=timeout_seconds)


def shown(value: str) -> Presented:
    found = presented([(b"authorization", value.encode())], (BEARER, BASIC))
    assert found is not None
    return found


def basic(name: str, password: str = "secret") -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.mark.parametrize("form", ["", ".both", ".token", ".jwt", ".access_token", ".string", ".raw"])
async def test_the_token_is_found_wherever_it_may_be(service: AuthOTron, form: str) -> None:
    user = await service.user(shown(f"Bearer alice{form}"))
    assert (user.name, user.realm, user.roles) == ("alice", "ocean", frozenset({"reader"}))


@pytest.mark.parametrize("form", ["garbage", "list", "empty", "huge", "binary"])
async def test_an_answer_without_a_token_is_a_fault_of_the_service(service: AuthOTron, form: str) -> None:
    with pytest.raises(Unreachable):
        await service.user(shown(f"Bearer alice.{form}"))


@pytest.mark.parametrize("form", ["expired", "forged"])
async def test_what_it_says_is_believed_only_if_it_is_signed(service: AuthOTron, form: str) -> None:
    with pytest.raises(Unauthenticated, match=INVALID):
        await service.user(shown(f"Bearer alice.{form}"))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Unauthenticated),
        (403, Forbidden),
        (404, Unreachable),
        (500, Unreachable),
        (302, Unreachable),
        (204, Unreachable),
    ],
)
async def test_what_its_refusals_mean(service: AuthOTron, status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        await service.user(shown(f"Bearer {status}"))


async def test_what_is_shown_is_passed_on_as_it_is_over_connections_that_are_kept(tmp_path: Path) -> None:
    with auth_o_tron(tmp_path) as url:
        service = asking(url + "/")
        values = ["bearer bob", basic("alice"), "BASIC x", basic("alice", "wrong")]
        for value in values:
            try:
                await service.user(shown(value))
            except Unauthenticated:
                assert value in values[2:]
        seen = httpx.get(f"{url}/seen", trust_env=False).json()
        await service.close()
    assert seen == {"shown": values, "connections": 1}


async def test_nothing_that_was_said_is_kept(tmp_path: Path) -> None:
    with auth_o_tron(tmp_path) as url:
        service = asking(url)
        await service.user(shown("Bearer alice"))
        await service.user(shown("Bearer alice"))
        assert len(httpx.get(f"{url}/seen", trust_env=False).json()["shown"]) == 2
    with pytest.raises(Unreachable):  # the process is gone, and with it alice
        await service.user(shown("Bearer alice"))
    await service.close()


async def test_a_slow_service_is_waited_for_only_so_long(url: str) -> None:
    service = asking(url, timeout_seconds=0.05)
    with pytest.raises(Unreachable) as caught:
        await service.user(shown("Bearer alice.slow"))
    assert caught.value.fields == {"service": "auth-o-tron", "cause": "TimeoutError"}
    await service.close()


async def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", "http://no such host", "nonsense"):
        service = asking(url)
        with pytest.raises(Unreachable):
            await service.user(shown("Bearer alice"))
        await service.close()


async def test_many_at_once_share_a_few_connections_and_too_many_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with auth_o_tron(tmp_path) as url:
        service = asking(url)
        users = await asyncio.gather(*(service.user(shown("Bearer alice")) for _ in range(200)))
        assert {user.name for user in users} == {"alice"}
        assert httpx.get(f"{url}/seen", trust_env=False).json()["connections"] <= limits.AUTH_CONNECTIONS_MAX
        monkeypatch.setattr(limits, "AUTH_ASKING_MAX", 1)
        slow = asyncio.ensure_future(service.user(shown("Bearer alice.slow")))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await service.user(shown("Bearer alice"))
        slow.cancel()  # the client left: its place is free again
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await service.user(shown("Bearer alice"))).name == "alice"
        await service.close()
    gc.collect()


async def test_behind_a_proxy_nobody_is_asked() -> None:
    service = TrustedProxy(Tokens(Secret(SECRET), SystemClock()))
    assert (await service.user(shown(f"Bearer {token_of('dave')}"))).name == "dave"
    with pytest.raises(Unauthenticated):
        await service.user(shown("Bearer dave"))
    await service.close()
