"""`GET /api/v1/events`: who is refused, in which order, and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from seamark.flags.subscribe import Part
from seamark.flags.watch import Start
from seamark.limits import EVENT_STREAMS_PER_TOKEN_MAX
from seamark.testing.engines import MemoryRig
from tests.flags.manifests import flag, manifest
from tests.flags.stage import AUTHOR, Listener, Stage

TOO_LONG = "ns=" + "x" * 8_190


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    rig = MemoryRig()
    await rig.open()
    stage = await Stage.opened(rig, "billing", "growth")
    await stage.found("billing", tenant="other")
    yield stage
    stage.close()
    await rig.close()


def keys(count: int) -> str:
    return ",".join(f"f{number}" for number in range(count))


def namespaces(count: int) -> str:
    return "&".join(f"ns=n{number}:*" for number in range(count))


# -- each row of the table, by a request with which everything after it is wrong as well


async def test_1_the_length_of_the_query_comes_first(stage: Stage) -> None:
    for token in ("", "nonsense", stage.reader):
        answer = (await stage.ask(TOO_LONG, token=token)).answer
        assert answer is not None
        assert (answer.status, answer.body) == (414, b"")


async def test_1_a_query_of_8192_bytes_is_read(stage: Stage) -> None:
    query = "ns=billing:*&x="
    listener = await stage.watch(query + "y" * (8_192 - len(query)))
    assert listener.raw == b""
    answer = (await stage.ask(query + "y" * (8_193 - len(query)))).answer
    assert answer is not None
    assert answer.status == 414


@pytest.mark.parametrize("query", ["", "ns=", "ns=nonsense", "ns=unknown:*", "ns=billing:*"])
@pytest.mark.parametrize("token", ["", "nonsense", "exd_read_" + "0" * 38])
async def test_2_then_the_token(stage: Stage, query: str, token: str) -> None:
    request = await stage.ask(query, token=token)
    assert request.answer is not None
    assert request.answer.error == (401, "unauthorized", None)
    assert request.answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("query", ["", "ns=", "ns=nonsense", "ns=unknown:*", "ns=billing:*"])
async def test_3_then_whether_it_reads_manifests_at_all(stage: Stage, query: str) -> None:
    token = await stage.mint("namespace-client", namespace="billing", environment="production")
    assert await stage.refused(query, token=token) == (403, "forbidden", None)


@pytest.mark.parametrize("query", ["", "x=1", "since=billing:1", "Ns=billing:*"])
async def test_4_then_whether_anything_is_asked_for(stage: Stage, query: str) -> None:
    assert await stage.refused(query) == (400, "invalid_request", None)


@pytest.mark.parametrize(
    ("query", "details"),
    [
        ("ns=", {"reason": "malformed"}),
        ("ns=growth:", {"reason": "malformed"}),
        ("ns=billing:*&ns=growth", {"reason": "malformed"}),
        ("ns=acme/billing:*", {"reason": "malformed"}),
        ("ns=growth:*&ns=growth:a", {"reason": "duplicate_namespace", "namespace": "growth"}),
        (namespaces(33), {"reason": "too_many_namespaces"}),
        (f"ns=growth:{keys(65)}", {"reason": "too_many_flags", "namespace": "growth"}),
    ],
)
async def test_5_then_how_it_is_asked_for(stage: Stage, query: str, details: dict[str, str]) -> None:
    """Also of namespaces that the caller may not see, or that are not there."""
    assert await stage.refused(query) == (400, "invalid_subscription", details)


@pytest.mark.parametrize(
    ("query", "details"),
    [
        ("ns=billing:*", {"reason": "tenant_required", "namespace": "billing"}),
        ("ns=acme/billing:*&ns=other/billing:*", {"reason": "multiple_tenants"}),
        ("ns=acme/unknown:*&ns=nobody/unknown:*", {"reason": "multiple_tenants"}),
        ("ns=acme/billing", {"reason": "malformed"}),
    ],
)
async def test_5_likewise_for_a_superadmin(stage: Stage, query: str, details: dict[str, str]) -> None:
    token = await stage.mint("superadmin")
    assert await stage.refused(query, token=token) == (400, "invalid_subscription", details)


async def test_6_then_whether_the_caller_may_see_it(stage: Stage) -> None:
    """In the same words whether it exists or not, and one of them is enough."""
    told = set()
    for query in ("ns=growth:*", "ns=unknown:*", "ns=billing:*&ns=unknown:*", f"ns=unknown:{keys(64)}"):
        answer = (await stage.ask(query)).answer
        assert answer is not None
        assert answer.error == (403, "forbidden", None)
        told.add(answer.body)
    assert len(told) == 1


async def test_7_then_whether_it_is_there(stage: Stage) -> None:
    for kind, prefix in (("tenant-admin", ""), ("superadmin", "acme/")):
        token = await stage.mint(kind)
        query = f"ns={prefix}billing:*&ns={prefix}unknown:*"
        details = {"reason": "unknown_namespace", "namespace": "unknown"}
        assert await stage.refused(query, token=token) == (400, "invalid_subscription", details)
    token = await stage.mint("superadmin")
    details = {"reason": "unknown_namespace", "namespace": "billing"}
    assert await stage.refused("ns=nobody/billing:*", token=token) == (400, "invalid_subscription", details)


async def test_8_then_how_many_streams_the_token_has(stage: Stage) -> None:
    token = await stage.mint("tenant-admin")
    listeners = [await stage.watch(token=token) for _ in range(EVENT_STREAMS_PER_TOKEN_MAX)]
    assert (await stage.refused("ns=unknown:*", token=token))[0] == 400
    request = await stage.ask("ns=billing:*", token=token)
    assert request.answer is not None
    assert request.answer.error[:2] == (429, "rate_limit_exceeded")
    assert int(request.answer.headers["retry-after"]) >= 1
    assert await stage.watch(), "another token has room of its own"
    listeners[0].pipe.leave()
    again = await stage.watch(token=token)
    assert not again.ended
    assert (await stage.refused("ns=billing:*", token=token))[0] == 429


async def test_a_stream_that_is_being_prepared_counts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, go_on = stage.streaming.streams.prepare, asyncio.Event()

    async def slow(parts: Sequence[Part]) -> list[Start]:
        await go_on.wait()
        return await prepare(parts)

    monkeypatch.setattr(stage.streaming.streams, "prepare", slow)
    asked = [asyncio.create_task(stage.ask("ns=billing:*")) for _ in range(EVENT_STREAMS_PER_TOKEN_MAX + 1)]
    done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result().answer.error[0] for task in done] == [429]  # type: ignore[union-attr]
    go_on.set()
    assert [(await task).answer is None for task in asked].count(True) == EVENT_STREAMS_PER_TOKEN_MAX


# -- who is served


@pytest.mark.parametrize(
    ("kind", "more", "query"),
    [
        ("namespace-read", {"namespace": "billing"}, "ns=billing:*"),
        ("namespace-write", {"namespace": "billing"}, "ns=billing:a,b"),
        ("tenant-admin", {}, "ns=billing:*&ns=growth:*"),
        ("superadmin", {}, "ns=acme/billing:*&ns=acme/growth:*"),
        ("superadmin", {}, "ns=other/billing:*"),
    ],
)
async def test_who_may_read_manifests_is_served(stage: Stage, kind: str, more: dict[str, str], query: str) -> None:
    tenant = "other" if "other" in query else "acme"
    await stage.commit(manifest({"a": flag()}), tenant=tenant)
    listener = await stage.watch(query, token=await stage.mint(kind, **more))
    assert listener.last.id == "billing:1"
    assert listener.last.body["namespace"] == "billing"
    assert f"/tenants/{tenant}/namespaces/billing/closure?" in listener.last.body["snapshot_url"]
    await listener.mirrors()


async def test_a_namespace_of_the_same_name_is_another_one(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}), tenant="other")
    listener = await stage.watch()
    assert listener.raw == b""
    await stage.commit(manifest({"a": flag(note="2")}), tenant="other")
    assert listener.raw == b""


async def test_the_headers_of_a_stream(stage: Stage) -> None:
    request = await stage.ask("ns=billing:*", origin="https://shop.example")
    assert request.stream_headers == (
        (b"Content-Type", b"text/event-stream"),
        (b"Cache-Control", b"no-store"),
        (b"X-Accel-Buffering", b"no"),
    )


async def test_what_else_is_asked_is_passed_over(stage: Stage) -> None:
    assert (await stage.watch("ns=billing:*&protocol=v1&ns2=x&since=%FF")).raw == b""


async def test_the_most_that_may_be_asked_for(stage: Stage) -> None:
    token = await stage.mint("tenant-admin")
    for number in range(32):
        await stage.found(f"n{number}")
        await stage.commit(manifest({"f1": flag()}), f"n{number}")
    query = "&".join(f"ns=n{number}:{keys(40)}" for number in range(31)) + f"&ns=n31:{keys(64)}"
    listener = await stage.watch(query, token=token)
    assert len(listener.frames) == 32
    for number in (0, 31):
        await stage.commit(manifest({"f1": flag(note="2")}), f"n{number}")
    assert [frame.id for frame in listener.frames[32:]] == ["n0:2", "n31:2"]


async def test_namespaces_do_not_wait_for_one_another(stage: Stage) -> None:
    token = await stage.mint("tenant-admin")
    listener: Listener = await stage.watch("ns=billing:*&ns=growth:*", token=token)
    for number in range(3):
        await stage.commit(manifest({"a": flag(note=f"g{number}")}), "growth")
    await stage.commit(manifest({"a": flag()}), "billing")
    assert [frame.id for frame in listener.frames] == ["growth:1", "growth:2", "growth:3", "billing:1"]
    assert set(await listener.mirrors()) == {"billing", "growth"}


async def test_one_of_the_tokens_of_a_tenant_is_revoked(stage: Stage) -> None:
    token = await stage.mint("tenant-admin")
    listener = await stage.watch("ns=billing:*&ns=growth:*", token=token)
    holder = stage.directory.find(token)
    assert holder is not None
    await stage.directory.revoke(holder.name, AUTHOR)
    assert listener.ended
