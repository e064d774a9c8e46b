"""`verify` finds what is wrong, names the place, and is silent about what is right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seamark.clock import ManualClock
from seamark.errors import StoreLocked
from seamark.log import chunk as chunks
from seamark.log import meta as metas
from seamark.log.engines.embedded import LmdbStore, open_embedded
from seamark.log.keys import FirstReceipt, receipt_puts, subject_put
from seamark.log.meta import Meta
from seamark.log.protocol import Append, Put, Selector
from seamark.log.record import Draft, Record
from seamark.log.seal import seal
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import PLACE, Change, Space
from seamark.log.verify import Report, verify
from seamark.log.watermarks import Gap, Loss
from seamark.telemetry.metrics import Metrics

Edit = Callable[[Meta], Change]


@pytest.fixture
async def path(tmp_path: Path, clock: ManualClock) -> Path:
    """A store with a little of everything, in which nothing is wrong."""
    log = open_embedded(tmp_path / "store", clock, Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"12")] * 4, create=StreamSettings(), key="k"))
    await log.append(Append(stream="t", drafts=[Draft(b"12")] * 4, puts=[Put("s", b"k", b"v")]))
    await log.delete("t", Selector(seqs=(1, 2)))
    latest = StreamSettings(latest_per_subject=1)
    await log.append(Append(stream="u", drafts=[Draft(b"x", subject=("a",))] * 2, create=latest))
    await log.append(Append(stream="v", drafts=[Draft(b"x")], create=StreamSettings(durability=Durability.EPHEMERAL)))
    await log.close()
    return tmp_path / "store"


def meta_with(**fields: object) -> Edit:
    def edit(meta: Meta) -> Change:
        for name, value in fields.items():
            setattr(meta, name, value)
        return Space.STREAMS, b"t", metas.encode(b"t", meta)

    return edit


def chunk_with(first: int, records: list[Record], size: int) -> Edit:
    def edit(meta: Meta) -> Change:
        key = PLACE.pack(meta.id, first)
        return Space.RECORDS, key, chunks.encode(key, records, size)

    return edit


def record(seq: int, meta_ts: int = 1_700_000_000_000_000_000) -> Record:
    return Record(seq, meta_ts, b"12")


def change(path: Path, clock: ManualClock, edit: Edit) -> Report:
    store = LmdbStore(path, clock)
    with store.view() as view:
        value = view.get(Space.STREAMS, b"t")
        assert value is not None
        meta = metas.decode(b"t", bytes(value))
    store.write([edit(meta)])
    store.close()
    return verify(path)


def test_nothing_is_wrong_with_a_good_store(path: Path) -> None:
    report = verify(path)
    assert report == Report(findings=[], streams=3, chunks=3, records=7, bytes=13, at_rest=True)


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (meta_with(count=8), "counts 8"),
        (meta_with(bytes=15), "live bytes"),
        (meta_with(removed=0), "seqs since the floor"),
        (meta_with(earliest=1), "first live record"),
        (meta_with(earliest=5, cap_floor=4), "not removed"),
        (meta_with(cap_floor=3), "marks out of order"),
        (meta_with(head=7), "beyond the head"),
        (meta_with(lost=(Gap(first=5, last=6, loss=Loss.CRASH),)), "inside a lost range"),
        (meta_with(lost=(Gap(first=9, last=10, loss=Loss.CRASH),)), "out of place"),
        (meta_with(last_ts=1), "last time"),
        (meta_with(id=2), "used twice"),
        (meta_with(id=77), "never given out"),
        (chunk_with(5, [record(5), record(6), record(8)], 6), "live records"),
        (chunk_with(5, [record(5), record(6), record(7), record(8)], 9), "number of bytes"),
        (chunk_with(5, [record(4), record(6), record(7), record(8)], 8), "do not lie"),
        (chunk_with(3, [record(3)], 2), "overlaps"),
        (chunk_with(5, [record(5), record(7), record(6), record(8)], 8), "follows"),
        (chunk_with(5, [record(5, 9), record(6, 9), record(7, 9), record(8, 9)], 8), "older"),
        (lambda meta: (Space.RECORDS, PLACE.pack(meta.id, 5), None), "live records"),
        (lambda meta: (Space.RECORDS, PLACE.pack(99, 5), b"x" * 60), "does not exist"),
        (lambda meta: (Space.RECORDS, PLACE.pack(meta.id, 5), b"x" * 60), "damaged"),
        (lambda meta: (Space.STREAMS, b"t", b"x" * 60), "metadata is damaged"),
        (lambda meta: (Space.FACTS, b"next_id", b"x" * 12), "next stream id"),
        (lambda meta: (Space.SHELF, b"s\0k", b"x" * 12), "value of shelf"),
        (lambda meta: (Space.DROPPED, b"\0\0\0\x09", b"x" * 12), "dropped stream"),
        (lambda meta: (Space.KEYS, b"\0\0\0\1k", b"x" * 12), "idempotency key is damaged"),
        (lambda meta: receipt_puts(1, "k", FirstReceipt(0, 3, 30, 30, 0), 1)[0], "never given out"),
        (lambda meta: (Space.EXPIRY, b"x" * 20, b"x" * 12), "value of expiry"),
        (lambda meta: (Space.EXPIRY, b"x", seal(b"x", b"")), "expiry without a key"),
        (lambda meta: subject_put(2, ("b",), 2), "subject index"),
        (lambda meta: (Space.SUBJECTS, subject_put(2, ("a",), 2)[1], b"x" * 12), "index is damaged"),
    ],
)
def test_each_thing_that_can_be_wrong_is_found(path: Path, clock: ManualClock, edit: Edit, what: str) -> None:
    report = change(path, clock, edit)
    assert any(what in str(finding) for finding in report.findings), report.findings


def test_a_finding_names_its_place(path: Path, clock: ManualClock) -> None:
    (finding,) = change(path, clock, lambda meta: (Space.RECORDS, PLACE.pack(meta.id, 5), b"x" * 60)).findings
    assert (finding.stream, finding.seq) == ("t", 5)
    assert str(finding).startswith("t at 5: ")


@pytest.mark.parametrize("length", [0, 10, 5_000, 30_000])
def test_a_cut_file_is_found_out_without_being_mapped(path: Path, length: int) -> None:
    with (path / "data.mdb").open("rb+") as file:
        file.truncate(length)
    assert verify(path).findings


def test_a_header_that_went_back_in_time_is_found(path: Path) -> None:
    with (path / "data.mdb").open("rb+") as file:
        for page in (0, 4096):
            file.seek(page + 16 + 128)
            number = int.from_bytes(file.read(8), "little")
            if number % 2 == page // 4096:
                file.seek(page + 16 + 128)
                file.write((number + 4).to_bytes(8, "little"))
                break
    assert any("headers" in finding.what for finding in verify(path).findings)


async def test_a_store_in_use_is_read_beside_its_owner(path: Path, clock: ManualClock) -> None:
    log = open_embedded(path, clock, Metrics())
    code = f"from seamark.log.verify import verify; r = verify({str(path)!r}); assert not r.findings and not r.at_rest"
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    with pytest.raises(StoreLocked):
        verify(path)
    await log.close()


def test_progress_is_told(path: Path) -> None:
    told: list[tuple[int, int]] = []
    verify(path, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
