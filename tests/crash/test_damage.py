"""A disk that forgets: whatever byte changes and wherever the file ends, a reader gets the right bytes or an error, and
`verify` says what is wrong. Every run prints its seed; SEAMARK_CRASH_SEED repeats one."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import lmdb
import pytest

from seamark.clock import SystemClock
from seamark.errors import Corrupt
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log, Put, Selector, TagMatch
from seamark.log.record import Draft, Record
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import ID, Space
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics
from seamark.testing.autopsy import AFTER_THE_DAMAGE, Morgue, Verdict
from seamark.testing.faults import cut_file, flip_byte, flip_random_byte
from seamark.testing.reading import read_all

pytestmark = pytest.mark.crash

FLIPS = int(os.environ.get("SEAMARK_CRASH_FLIPS", "100"))
CUTS = int(os.environ.get("SEAMARK_CRASH_CUTS", "30"))
DATA = "data.mdb"
PAGE, INNER = 4_096, 1  # of LMDB: the size of its pages, and the flag of those that only lead to others
SIGNPOST = re.compile(rb"\x0c\x00(\x00\x00\x00[\x01-\x05].{8})", re.DOTALL)  # the key of a chunk, behind its length
Truth = dict[str, dict[int, Record]]


@pytest.fixture(scope="module")
def source() -> random.Random:
    seed = int(os.environ.get("SEAMARK_CRASH_SEED", random.SystemRandom().randrange(2**31)))
    print(f"SEAMARK_CRASH_SEED={seed}")  # noqa: T201  (shown with a failure: it repeats the run)
    return random.Random(seed)


async def fill(log: Log) -> None:
    """A little of everything that a store can hold."""
    filler = random.Random(1)
    for n in range(60):
        batch = [Draft(filler.randbytes(filler.randrange(200)), tag=f"t{i % 3}", meta=b"{}") for i in range(n % 9 + 1)]
        await log.append(Append(stream="plain", drafts=batch, create=StreamSettings(), key=f"k{n}"))
        await log.append(Append(stream="capped", drafts=batch, create=StreamSettings(cap_records=40)))
        latest = [Draft(b"%d" % n, subject=(f"s{n % 11}",))]
        await log.append(Append(stream="latest", drafts=latest, create=StreamSettings(latest_per_subject=2)))
        disk = StreamSettings(durability=Durability.DISK, sparse=True)
        await log.append(Append(stream="disk", drafts=batch[:2], create=disk, puts=[Put("p", b"%d" % n, b"v" * n)]))
    big = [Draft(filler.randbytes(30_000)) for _ in range(12)]
    await log.append(Append(stream="big", drafts=big, create=StreamSettings()))
    await log.delete("plain", Selector(tag=TagMatch("t1")))
    await log.append(Append(stream="gone", drafts=big[:3], create=StreamSettings()))
    await log.drop("gone")


async def truth_of(log: Log) -> Truth:
    return {s.name: {r.seq: r for r in (await read_all(log, s.name)).records} for s in await log.streams()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """An undamaged, closed store, and what is in it."""
    path = tmp_path_factory.mktemp("whole") / "store"

    async def make() -> Truth:
        log = open_embedded(path, SystemClock(), Metrics())
        await fill(log)
        truth = await truth_of(log)
        await log.close()
        return truth

    truth = asyncio.run(make())
    assert not verify(path).findings
    return path, truth


@pytest.fixture(scope="module")
def morgue() -> Iterator[Morgue]:
    with Morgue() as morgue:
        yield morgue


@pytest.fixture
def copies(whole: tuple[Path, Truth], tmp_path: Path) -> Iterator[Path]:
    """Fresh copies of the whole store, one at a time."""

    def copy() -> Iterator[Path]:
        while True:
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            yield Path(shutil.copytree(whole[0], tmp_path / "copy"))

    return copy()


def wrong(truth: Truth, found: dict[str, list[Record]]) -> list[tuple[str, int]]:
    """Records that were read and are not what was written."""
    return [(s, r.seq) for s, records in found.items() for r in records if truth.get(s, {}).get(r.seq) != r]


def missing(truth: Truth, found: dict[str, list[Record]]) -> int:
    return sum(len(records) - len(found.get(stream, ())) for stream, records in truth.items())


def check(truth: Truth, verdict: Verdict, context: str) -> str:
    """No wrong byte, no silence, nothing unforeseen. Returns what kind of end it was."""
    assert not verdict.unforeseen, f"{context}: {verdict.unforeseen}"
    assert verdict.findings is not None, f"{context} ends `verify` with signal {verdict.ended_by}"
    if verdict.remains is None:
        assert verdict.ended_by != signal.SIGALRM, f"{context}: reading hangs"
        assert verdict.findings, f"{context} ends a reader, and verify does not say so"
        return "ended the reader"
    remains = verdict.remains
    read = {s: [r for r in records if r.payload != AFTER_THE_DAMAGE] for s, records in remains.records.items()}
    assert wrong(truth, read) == [], f"{context}: wrong bytes were served"
    if remains.errors or missing(truth, read):
        assert verdict.findings, f"{context} costs records ({remains.errors}), and verify does not say so"
        assert remains.errors, f"{context} costs records silently"
        return "refused"
    return "found by verify alone" if verdict.findings else "dead space"


def test_an_undamaged_store_is_found_whole(whole: tuple[Path, Truth], morgue: Morgue, copies: Iterator[Path]) -> None:
    verdict = morgue.examine(next(copies), whole[1], write=True)
    assert verdict.findings == []
    assert verdict.remains is not None
    assert verdict.remains.errors == set()
    assert check(whole[1], verdict, "nothing") == "dead space"
    assert {name for name in whole[1] if not whole[1][name]} == set()


def test_flipped_bytes_are_never_served(
    whole: tuple[Path, Truth], morgue: Morgue, copies: Iterator[Path], source: random.Random
) -> None:
    tally = Counter[str]()
    for _ in range(FLIPS):
        path = next(copies)
        flip = flip_random_byte(path / DATA, source)
        tally[check(whole[1], morgue.examine(path, whole[1]), f"{flip}")] += 1
    print(dict(tally))  # noqa: T201  (how the flips were spread; shown with -s)
    assert tally["refused"] > FLIPS // 10
    assert tally["ended the reader"] <= FLIPS // 4


def test_a_damaged_value_hides_only_itself(whole: tuple[Path, Truth], tmp_path: Path) -> None:
    """One payload byte of one record of "big" changes: that value is refused, everything else is read."""
    path = Path(shutil.copytree(whole[0], tmp_path / "copy"))
    payload = whole[1]["big"][6].payload
    data = (path / DATA).read_bytes()
    at = data.rindex(payload)
    assert data.count(payload) == 1
    (path / DATA).write_bytes(data[: at + 100] + bytes([data[at + 100] ^ 1]) + data[at + 101 :])
    report = verify(path)
    assert {finding.stream for finding in report.findings} == {"big"}

    async def examine() -> None:
        log = open_embedded(path, SystemClock(), Metrics())
        with pytest.raises(Corrupt) as caught:
            await read_all(log, "big", Cursor(5))
        assert caught.value.fields["stream"] == "big"
        after = await truth_of_all_but(log, "big")
        assert after == {name: records for name, records in whole[1].items() if name != "big"}
        receipt = await log.append(Append(stream="big", drafts=[Draft(b"more")]))
        assert (await log.read("big", Cursor(receipt.first - 1))).records[0].payload == b"more"
        await log.close()

    asyncio.run(examine())


async def truth_of_all_but(log: Log, name: str) -> Truth:
    names = [state.name for state in await log.streams() if state.name != name]
    return {each: {r.seq: r for r in (await read_all(log, each)).records} for each in names}


def keys_of(path: Path, space: Space, prefix: bytes) -> list[bytes]:
    with lmdb.open(str(path), readonly=True, lock=False, max_dbs=len(Space)) as env, env.begin() as txn:
        cursor = txn.cursor(db=env.open_db(space.name.lower().encode(), txn=txn, create=False))
        return [key for key in cursor.iternext(values=False) if key.startswith(prefix)]


def change_key(path: Path, key: bytes, at: int, mask: int) -> str:
    """In the file, wherever it stands. Returns what was done."""
    bad = key[:at] + bytes([key[at] ^ mask]) + key[at + 1 :]
    (path / DATA).write_bytes((path / DATA).read_bytes().replace(key, bad))
    return f"{key!r} is now {bad!r}"


@pytest.mark.parametrize("stream_id", [1, 2, 3])
def test_a_damaged_key_hides_nothing_silently(
    whole: tuple[Path, Truth], morgue: Morgue, copies: Iterator[Path], stream_id: int
) -> None:
    """A key that became another one leads searches astray, and where records were removed a hole looks like nothing."""
    keys = keys_of(whole[0], Space.RECORDS, ID.pack(stream_id))
    for key in (keys[1], keys[len(keys) // 2], keys[-1]):
        for at, mask in product((0, 1, 3, 4, 10, 11), (0x01, 0x5D)):
            path = next(copies)
            done = change_key(path, key, at, mask)
            assert check(whole[1], morgue.examine(path, whole[1]), done) in {"refused", "found by verify alone"}


def test_a_damaged_key_hides_no_small_value(whole: tuple[Path, Truth], copies: Iterator[Path]) -> None:
    """What is not found on the shelf may be there all the same, behind a key that leads astray."""
    names = [b"%d" % n for n in range(60)]
    keys = keys_of(whole[0], Space.SHELF, b"p\0")
    assert len(keys) == len(names)

    async def examine(path: Path, done: str) -> None:
        log = open_embedded(path, SystemClock(), Metrics())
        refused = 0
        for name in names:
            try:
                assert log.fetch("p", name) == b"v" * int(name), done
            except Corrupt:
                refused += 1
        try:
            assert [key for key, _ in log.scan("p")] == sorted(names), done
        except Corrupt:
            refused += 1
        assert refused, done
        await log.close()

    for key in (keys[0], keys[len(keys) // 2], keys[-1]):
        for at, mask in product(range(len(key)), (0x01, 0x5D)):
            path = next(copies)
            asyncio.run(examine(path, change_key(path, key, at, mask)))


def test_a_signpost_that_points_elsewhere_is_found(
    whole: tuple[Path, Truth], morgue: Morgue, copies: Iterator[Path]
) -> None:
    """The inner pages of a tree say which keys are where. A walk from leaf to leaf never asks them, a search does."""
    data = (whole[0] / DATA).read_bytes()
    tally = Counter[str]()
    for page in range(0, len(data), PAGE):
        if int.from_bytes(data[page + 10 : page + 12], "little") != INNER:
            continue
        places = [found.start(1) for found in SIGNPOST.finditer(data, page, page + PAGE)]
        for place in places[:: max(1, len(places) // 3)]:
            path = next(copies)
            flip = flip_byte(path / DATA, place + 4, 0xED)
            tally[check(whole[1], morgue.examine(path, whole[1]), f"{flip}")] += 1
    assert tally["refused"] + tally["found by verify alone"] >= 3, dict(tally)


def test_a_file_that_ends_early_ends_no_process(
    whole: tuple[Path, Truth], morgue: Morgue, copies: Iterator[Path], source: random.Random
) -> None:
    tally = Counter[str]()
    size = (whole[0] / DATA).stat().st_size
    sizes = [0, 1, 4_095, 4_096, 8_191, 8_192, 12_288, size - 4_096, size - 1]
    for length in sizes + [source.randrange(size) for _ in range(CUTS)]:
        path = next(copies)
        cut_file(path / DATA, length)
        verdict = morgue.examine(path, whole[1], write=True)
        assert not verdict.ended_by, f"cut to {length} of {size} bytes: ended by signal {verdict.ended_by}"
        assert verdict.findings, f"cut to {length} of {size} bytes: verify does not miss the end of the file"
        tally[check(whole[1], verdict, f"cut to {length} of {size} bytes")] += 1
    print(dict(tally))  # noqa: T201  (how the cuts were spread; shown with -s)
    assert tally["refused"] >= CUTS // 2
