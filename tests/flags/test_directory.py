"""What the directory keeps: over restarts, with its record in the same commit, and shut when it is damaged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from seamark.access.tokens import TokenHolder
from seamark.errors import Corrupt, NotReady, QuotaExceeded, TenantExists, WriteFailed
from seamark.flags import audit
from seamark.flags.audit import Author
from seamark.flags.directory import Directory, Grant
from seamark.flags.tenancy import Namespace, Tenant
from seamark.log.protocol import Append, Log, News, Shelf
from seamark.testing.rig import LogRig

ME = Author("tests", "R")


def tenant(slug: str = "acme") -> Tenant:
    return Tenant(slug=slug, login_mode="sso", sso_provider="okta", created_at=1)


def namespace(slug: str = "billing", owner: str = "acme") -> Namespace:
    return Namespace(tenant=owner, slug=slug, created_at=1, description="d")


async def loaded(rig: LogRig) -> Directory:
    directory = Directory(rig.log, rig.clock)
    await directory.load()
    return directory


async def test_everything_is_there_again(rig: LogRig) -> None:
    directory = await loaded(rig)
    for slug in ("b", "acme"):
        await directory.create_tenant(tenant(slug), ME)
    await directory.create_namespace(namespace(), ME)
    grant = Grant(
        type="namespace-client",
        name="n",
        tenant="acme",
        namespace="billing",
        environment="e",
        expires_at=10**19,
        allowed_origins=("https://x",),
    )
    kept, secret = await directory.mint(grant, ME)
    gone, lost = await directory.mint(Grant(type="superadmin"), ME)
    gone = await directory.revoke(gone.id, ME)
    if rig.survives_crash:
        await rig.crash()
    again = await loaded(rig)
    assert again.tenants("", 9) == ([tenant("acme"), tenant("b")], False)
    assert again.namespaces(("", ""), 9) == ([namespace()], False)
    assert [again.namespace_count(slug) for slug in ("acme", "b")] == [1, 0]
    assert again.tokens("", 9, lambda _: True) == ([kept, gone], False)
    found = again.find(secret)
    assert found is not None
    assert found.token == kept
    assert again.find(lost) is None
    dead = again.known(lost)
    assert dead is not None
    assert dead.token == gone


async def test_a_change_and_its_record_are_one_commit(rig: LogRig) -> None:
    directory = await loaded(rig)
    await directory.create_tenant(tenant(), ME)
    trail = await audit.read(rig.log, 0, 9)
    assert [(one["action"], one["actor"], one["request_id"]) for one in trail.entries] == [
        ("tenant.create", "tests", "R")
    ]


async def test_what_is_not_stored_did_not_happen(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = await loaded(rig)
    await directory.create_tenant(tenant(), ME)
    _, secret = await directory.mint(Grant(type="superadmin"), ME)
    holder = directory.find(secret)
    assert holder is not None

    async def refuse(append: Append) -> None:
        raise WriteFailed("the disk is full")

    monkeypatch.setattr(rig.log, "append", refuse)
    for change in (
        directory.create_tenant(tenant("b"), ME),
        directory.create_namespace(namespace(), ME),
        directory.mint(Grant(type="superadmin"), ME),
        directory.revoke(holder.name, ME),
    ):
        with pytest.raises(WriteFailed):
            await change
    assert len(directory.tenants("", 9)[0]) == 1
    assert directory.namespaces(("", ""), 9) == ([], False)
    assert directory.live_superadmins() == [holder.token]
    assert holder.live(rig.clock.now_ns())


async def test_of_two_at_the_same_time_one_is_first(rig: LogRig) -> None:
    directory = await loaded(rig)
    done = await asyncio.gather(*(directory.create_tenant(tenant(), ME) for _ in range(5)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["Tenant", *["TenantExists"] * 4]
    assert any(isinstance(one, TenantExists) for one in done)
    assert len((await audit.read(rig.log, 0, 9)).entries) == 1


async def test_a_change_comes_to_its_end_without_whoever_asked(rig: LogRig) -> None:
    directory = await loaded(rig)
    asked = asyncio.ensure_future(directory.create_tenant(tenant(), ME))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asked.cancel()
    while directory.tenant("acme") is None:
        await asyncio.sleep(0)
    assert len((await audit.read(rig.log, 0, 9)).entries) == 1


async def test_streams_learn_at_once_that_their_token_is_gone(rig: LogRig) -> None:
    directory = await loaded(rig)
    token, secret = await directory.mint(Grant(type="superadmin"), ME)
    holder = directory.find(secret)
    assert holder is not None
    told: list[tuple[TokenHolder, bool]] = []
    directory.on_revoke(lambda one: told.append((one, one.live(rig.clock.now_ns()))))
    await directory.revoke(token.id, ME)
    assert told == [(holder, False)]


async def test_before_it_is_loaded_nothing_is_told(rig: LogRig) -> None:
    directory = Directory(rig.log, rig.clock)
    assert directory.loading
    for ask in (lambda: directory.find("x"), lambda: directory.tenant("x"), lambda: directory.tenants("", 1)):
        with pytest.raises(NotReady):
            ask()
    with pytest.raises(NotReady):
        await directory.create_tenant(tenant(), ME)


async def test_what_is_damaged_opens_nothing(rig: LogRig) -> None:
    first = await loaded(rig)
    _, secret = await first.mint(Grant(type="superadmin"), ME)
    directory = Directory(cast("Log", _Damaged(rig.log)), rig.clock)
    await directory.load()
    assert not directory.loading
    with pytest.raises(Corrupt):
        directory.find(secret)


async def test_there_is_a_bound(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = await loaded(rig)
    for name in ("TENANTS_MAX", "NAMESPACES_MAX", "TOKENS_MAX"):
        monkeypatch.setattr(f"seamark.limits.{name}", 1)
    await directory.create_tenant(tenant(), ME)
    await directory.create_namespace(namespace(), ME)
    await directory.mint(Grant(type="superadmin"), ME)
    for change in (
        directory.create_tenant(tenant("b"), ME),
        directory.create_namespace(namespace("c"), ME),
        directory.mint(Grant(type="superadmin"), ME),
    ):
        with pytest.raises(QuotaExceeded):
            await change


async def test_a_tenant_has_a_bound_of_its_own(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever rules one cannot take what there is for others. What was revoked counts: it is kept."""
    for name in ("NAMESPACES_PER_TENANT_MAX", "TOKENS_PER_TENANT_MAX"):
        monkeypatch.setattr(f"seamark.limits.{name}", 2)
    directory = await loaded(rig)
    for slug in ("acme", "other"):
        await directory.create_tenant(tenant(slug), ME)
    grant = Grant(type="tenant-admin", name="n", tenant="acme")
    for slug in "ab":
        await directory.create_namespace(namespace(slug), ME)
        token, _ = await directory.mint(grant, ME)
        await directory.revoke(token.id, ME)
    for seen in (directory, await loaded(rig)):
        with pytest.raises(QuotaExceeded):
            await seen.create_namespace(namespace("c"), ME)
        with pytest.raises(QuotaExceeded):
            await seen.mint(grant, ME)
        await seen.mint(Grant(type="tenant-admin", name="n", tenant="other"), ME)
        await seen.mint(Grant(type="superadmin", name="n"), ME)


async def test_origins_of_a_namespace(rig: LogRig) -> None:
    directory = await loaded(rig)
    await directory.create_tenant(tenant(), ME)
    await directory.create_namespace(namespace(), ME)
    grant = Grant(
        type="namespace-client", tenant="acme", namespace="billing", environment="e", allowed_origins=("https://x",)
    )
    token, _ = await directory.mint(grant, ME)
    assert directory.origin_allowed("acme", "billing", "https://x")
    assert not directory.origin_allowed("acme", "billing", "https://y")
    assert not directory.origin_allowed("acme", "growth", "https://x")
    await directory.revoke(token.id, ME)
    assert not directory.origin_allowed("acme", "billing", "https://x")


async def settled(rig: LogRig, *directories: Directory) -> None:
    """Until all of them know every change."""
    head = await audit.head(rig.log)
    for directory in directories:
        while directory._seen < head:
            await asyncio.sleep(0)


class _Elsewhere:
    """A log whose writer is another process: news says that there is something, and not what."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.wakeup = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def fetch(self, space: str, key: bytes) -> bytes | None:
        return cast("Shelf", self._log).fetch(space, key)

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return cast("Shelf", self._log).scan(space, prefix)

    def subscribe(self, listener: Callable[[Sequence[News]], None]) -> Callable[[], None]:
        return self._log.wakeup.subscribe(
            lambda news: listener([msgspec.structs.replace(one, records=None) for one in news])
        )


@pytest.fixture(params=["here", "elsewhere"])
async def two(rig: LogRig, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Directory, Directory]]:
    """Two processes on one log; the second is told of records, or only that there are some."""
    first = await loaded(rig)
    log = rig.log if request.param == "here" else cast("Log", _Elsewhere(rig.log))
    second = Directory(log, rig.clock)
    await second.load()
    yield first, second
    await first.close()
    await second.close()


async def test_what_another_process_changes_is_known_here(rig: LogRig, two: tuple[Directory, Directory]) -> None:
    first, second = two
    await first.create_tenant(tenant(), ME)
    await first.create_namespace(namespace(), ME)
    token, secret = await first.mint(Grant(type="tenant-admin", tenant="acme"), ME)
    await settled(rig, first, second)
    assert (second.tenant("acme"), second.namespace("acme", "billing")) == (tenant(), namespace())
    holder = second.find(secret)
    assert holder is not None
    ended: list[str] = []
    second.on_revoke(lambda one: ended.append(one.name))
    await first.revoke(token.id, ME)
    await settled(rig, second)
    assert second.find(secret) is None
    assert not holder.live(rig.clock.now_ns())
    assert ended == [token.id]


async def test_two_processes_agree_on_who_was_first(rig: LogRig, two: tuple[Directory, Directory]) -> None:
    first, second = two
    slugs = [f"t{number}" for number in range(8)]
    wishes = [one.create_tenant(tenant(slug), ME) for slug in slugs for one in (first, second)]
    done = await asyncio.gather(*wishes, return_exceptions=True)
    assert sum(isinstance(one, Tenant) for one in done) == len(slugs)
    assert sum(isinstance(one, TenantExists) for one in done) == len(slugs)
    await settled(rig, first, second)
    for directory in two:
        assert [one.slug for one in directory.tenants("", 99)[0]] == slugs
    assert len((await audit.read(rig.log, 0, 99)).entries) == len(slugs)


async def test_lines_of_others_in_the_audit_log_are_in_nobodys_way(rig: LogRig) -> None:
    directory = await loaded(rig)
    debts = audit.Debts(rig.log)
    line = ME.entry("manifest.push", "acme/billing@1", tenant="acme", namespace="billing")
    await asyncio.gather(
        *(debts.pay(audit.owed(f"{number}", line)) for number in range(5)),
        *(directory.create_tenant(tenant(f"t{number}"), ME) for number in range(5)),
    )
    assert len(directory.tenants("", 99)[0]) == 5
    assert len((await audit.read(rig.log, 0, 99)).entries) == 10


async def test_a_closed_directory_hears_nothing(rig: LogRig) -> None:
    first, second = await loaded(rig), await loaded(rig)
    await second.close()
    await second.close()
    await first.create_tenant(tenant(), ME)
    assert second.tenant("acme") is None


class _Damaged(_Elsewhere):
    """A log whose shelf cannot be read."""

    def fetch(self, space: str, key: bytes) -> bytes | None:
        raise Corrupt("damaged", stream="", seq=0, where="shelf")

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        raise Corrupt("damaged", stream="", seq=0, where="shelf")
