"""A client behind a network that cuts, delays, corrupts, goes silent, repeats what was said and tampers with tokens: it never evaluates
anything but a closure that somebody committed, and ends with the one that the server has."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter

import pytest

from seamark.client.flags.aio import AsyncFlagsClient
from seamark.client.flags.mirror import Held
from seamark.client.flags.retry import Pace
from seamark.client.flags.status import Change
from seamark.manifest.closure import closure_hash, closure_of, index_of
from seamark.manifest.lint import lint
from seamark.manifest.model import Manifest
from seamark.manifest.subscription import FlagList, parse_flag_list
from seamark.testing.faults import FaultyProxy, Weather
from tests.client.flags.test_aio import eventually
from tests.flags.manifests import flag, manifest, segment
from tests.flags.test_watch_http import Office

PACE = Pace(first=0.01, most=0.05, slow=0.05, connect=1.0, silence=2.0, snapshot=1.0)
PUSHES = 40
_EVENT = re.compile(rb"[0-9a-fA-F]+\r\nevent: .*\n\n\r\n", re.DOTALL)

STORMS = {
    "corrupting": Weather(corrupt_every_bytes=4_000),
    "corrupting much": Weather(corrupt_every_bytes=300),
    "delaying": Weather(delay_seconds=0.03),
    "throttling": Weather(bytes_per_second=20_000),
    "silent": Weather(silent=frozenset({"down"})),
    "refusing": Weather(refusing=True),
    "well": Weather(),
}


class Gossip(FaultyProxy):
    """Also says again what was said before, whole events of it, and changes letters of tokens."""

    def __init__(self, host: str, port: int, *, chance: random.Random) -> None:
        super().__init__(host, port, seed=chance.randrange(2**32))
        self.chance = chance
        self.is_malicious = True
        self.did: Counter[str] = Counter()
        self._said: list[bytes] = []

    def _corrupt(self, piece: bytes) -> bytes:
        if self.is_malicious:
            if b"token=" in piece and piece.startswith(b"GET ") and self.chance.random() < 0.5:
                self.did["tampered"] += 1
                piece = re.sub(rb"token=.", b"token=!", piece)
            elif _EVENT.fullmatch(piece) is not None:
                self._said.append(piece)
                if self.chance.random() < 0.5:
                    self.did["repeated"] += 1
                    piece += self.chance.choice(self._said[-5:])
        return super()._corrupt(piece)


class Ledger:
    """All closures that were ever committed, for one subscription."""

    def __init__(self, wanted: FlagList) -> None:
        self.wanted = wanted
        self.committed: dict[str, Manifest] = {}
        self.last = ""

    def note(self, files: dict[str, bytes]) -> None:
        """Before it is pushed: a client may have it before we know that it was accepted."""
        whole = lint(files, slug="billing").manifest
        assert whole is not None
        index = closure_of(whole, index_of(files), self.wanted)
        found = lint({path: files[path] for path in index}, slug="billing").manifest
        assert found is not None
        self.last = closure_hash(index)
        self.committed[self.last] = found

    def check(self, held: Held | None) -> None:
        if held is not None:
            assert self.committed[held.hash] == held.manifest


def some_files(chance: random.Random) -> dict[str, bytes]:
    segments = {name: segment(note=str(chance.randrange(4))) for name in "stu" if chance.random() < 0.8}
    flags = {
        f"f{number}": flag(segment=chance.choice([None, *segments]), note="x" * chance.choice([1, 50, 3_000, 90_000]))
        for number in chance.sample(range(8), chance.randrange(1, 8))
    }
    return manifest(flags, segments)


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["*", "f1,f2,f3,later"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_only_what_was_committed_is_ever_evaluated(office: Office, seed: int, flags: str) -> None:
    chance = random.Random(seed)
    ledger = Ledger(parse_flag_list(flags))
    seen: set[str] = set()

    async def push() -> None:
        files = some_files(chance)
        ledger.note(files)
        await asyncio.to_thread(office.push, files)

    proxy = Gossip(*office.server.address, chance=chance)
    async with proxy:
        await push()
        url = f"http://127.0.0.1:{proxy.port}"
        async with AsyncFlagsClient(url, office.reader, {"billing": flags}, pace=PACE) as client:
            track = client._tracks["billing"]

            def look(change: Change | None = None) -> None:
                ledger.check(track.held)
                truth = track.mirror.truth
                assert truth.hash is None or truth.hash == closure_hash(index_of(truth.files))
                if track.held is not None:
                    seen.add(track.held.hash)

            client.on_change(look)
            assert await client.wait_ready(10.0), client.last_refresh_error()
            for _ in range(PUSHES):
                proxy.change(STORMS[chance.choice(list(STORMS))])
                if chance.random() < 0.3:
                    proxy.cut()
                await push()
                await asyncio.sleep(chance.random() * 0.1)
                look()
            # A connection whose framing was damaged may take long to show it. It does not outlive the storm.
            proxy.is_malicious = False
            proxy.change(Weather())
            proxy.cut()
            await push()
            await eventually(lambda: track.held is not None and track.held.hash == ledger.last)
            look()
            await eventually(lambda: client.last_refresh_error() is None)
        assert len(seen) > 5
        assert proxy.did.total() > 0
