"""Random lives of a directory beside a naive one: made, minted, revoked, expired, reloaded; and what every secret opens."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from seamark.access.tokens import TYPES, Reach
from seamark.clock import NS_PER_SECOND
from seamark.errors import SeamarkError
from seamark.flags import audit
from seamark.flags.audit import Author
from seamark.flags.directory import Directory, Grant
from seamark.flags.tenancy import Namespace, Tenant
from seamark.testing.rig import LogRig

LIVES = 12
STEPS = 40
SLUGS = ("a", "b", "c")
ME = Author("tests")
PERMISSIONS = sorted(frozenset[str]().union(*(row.permissions for row in TYPES.values())))


@dataclass
class Naive:
    """What should be true, in the plainest words."""

    tenants: set[str] = field(default_factory=set)
    namespaces: set[tuple[str, str]] = field(default_factory=set)
    grants: dict[str, Grant] = field(default_factory=dict)  # by secret
    revoked: set[str] = field(default_factory=set)
    changes: int = 0

    def opens(self, secret: str, now: int) -> bool:
        expires = self.grants[secret].expires_at
        return secret not in self.revoked and (expires is None or now < expires)

    def permits(self, secret: str, permission: str, tenant: str, namespace: str) -> bool:
        grant = self.grants[secret]
        if permission not in TYPES[grant.type].permissions:
            return False
        reach = TYPES[grant.type].reach
        if reach is Reach.INSTALLATION:
            return True
        return tenant == grant.tenant != "" and (reach is Reach.TENANT or namespace == grant.namespace != "")

    def takes(self, grant: Grant, now: int) -> bool:
        wanted = {Reach.INSTALLATION: (False, False, False), Reach.TENANT: (True, False, False)}
        wanted |= {Reach.NAMESPACE: (True, True, False), Reach.ENVIRONMENT: (True, True, True)}
        given = (bool(grant.tenant), bool(grant.namespace), bool(grant.environment))
        there = not grant.tenant or grant.tenant in self.tenants
        there = there and (not grant.namespace or (grant.tenant, grant.namespace) in self.namespaces)
        timely = grant.expires_at is None or grant.expires_at > now
        return given == wanted[TYPES[grant.type].reach] and there and timely


async def happens(change: object) -> bool:
    try:
        await change  # type: ignore[misc]
    except SeamarkError:
        return False
    return True


async def step(directory: Directory, naive: Naive, chance: random.Random, rig: LogRig) -> None:
    what, tenant, slug = chance.random(), chance.choice(SLUGS), chance.choice(SLUGS)
    now = rig.clock.now_ns()
    if what < 0.15:
        done = await happens(directory.create_tenant(Tenant(slug=tenant, login_mode="sso", created_at=now), ME))
        assert done is (tenant not in naive.tenants)
        naive.tenants.add(tenant)
    elif what < 0.35:
        made = directory.create_namespace(Namespace(tenant=tenant, slug=slug, created_at=now), ME)
        done = await happens(made)
        assert done is (tenant in naive.tenants and (tenant, slug) not in naive.namespaces)
        if done:
            naive.namespaces.add((tenant, slug))
    elif what < 0.75:
        grant = Grant(
            type=chance.choice([*TYPES]),
            tenant=chance.choice([tenant, tenant, ""]),
            namespace=chance.choice([slug, slug, ""]),
            environment=chance.choice(["e", ""]),
            expires_at=chance.choice([None, None, now, now + 3 * NS_PER_SECOND]),
        )
        takes = naive.takes(grant, now)
        try:
            _, secret = await directory.mint(grant, ME)
            naive.grants[secret] = grant
            done = True
        except SeamarkError:
            done = False
        assert done is takes, grant
    elif what < 0.9 and naive.grants:
        secret = chance.choice([*naive.grants])
        holder = directory.known(secret)
        assert holder is not None
        await directory.revoke(holder.name, ME)
        done = secret not in naive.revoked
        naive.revoked.add(secret)
    else:
        rig.clock.advance(1)
        done = False
    naive.changes += done


def agree(directory: Directory, naive: Naive, rig: LogRig) -> None:
    now = rig.clock.now_ns()
    assert {one.slug for one in directory.tenants("", 99)[0]} == naive.tenants
    assert {(one.tenant, one.slug) for one in directory.namespaces(("", ""), 99)[0]} == naive.namespaces
    for slug in SLUGS:
        assert directory.namespace_count(slug) == sum(tenant == slug for tenant, _ in naive.namespaces)
    for secret in naive.grants:
        holder = directory.find(secret)
        assert (holder is not None) is naive.opens(secret, now)
        if holder is not None:
            for permission in PERMISSIONS:
                for tenant, namespace in (("", ""), ("a", ""), ("a", "b"), ("b", "b"), ("", "b")):
                    expected = naive.permits(secret, permission, tenant, namespace)
                    assert holder.permits(permission, tenant, namespace) is expected


@pytest.mark.parametrize("seed", range(LIVES))
async def test_a_life(rig: LogRig, seed: int) -> None:
    chance = random.Random(seed)
    naive = Naive()
    directory = Directory(rig.log, rig.clock)
    await directory.load()
    for _ in range(STEPS):
        await step(directory, naive, chance, rig)
        if chance.random() < 0.1:
            if rig.survives_crash:
                await rig.crash()
            directory = Directory(rig.log, rig.clock)
            await directory.load()
        agree(directory, naive, rig)
    trail = await audit.read(rig.log, 0, 1_000)
    assert len(trail.entries) == naive.changes
    holders = [holder for secret in naive.grants if (holder := directory.known(secret)) is not None]
    ordered = sorted((holder.token for holder in holders), key=lambda token: token.id)
    assert directory.tokens("", 999, lambda _: True) == (ordered, False)
    assert len(ordered) == len(naive.grants)
