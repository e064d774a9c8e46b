"""A change of class keeps records, keys and marks where they were."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from seamark.clock import ManualClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.local import LocalLog
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics


@pytest.mark.parametrize(("before", "then"), list(permutations(Durability, 2)))
async def test_every_change_of_class(log: LocalLog, before: Durability, then: Durability) -> None:
    await log.configure("t", StreamSettings(durability=before, latest_per_subject=1))
    drafts = [Draft(b"%d" % n, subject=(f"s{n % 4}",)) for n in range(10)]
    await log.append(Append(stream="t", drafts=drafts, key="k"))
    records = (await log.read("t", Cursor())).records
    state = (await log.configure("t", StreamSettings(durability=then, latest_per_subject=1))).state
    assert (await log.read("t", Cursor())).records == records
    assert (state.count, state.marks.head) == (4, 10)
    assert (await log.append(Append(stream="t", drafts=drafts, key="k"))).deduped
    await log.append(Append(stream="t", drafts=drafts[:1]))
    assert [record.seq for record in (await log.read("t", Cursor())).records] == [7, 8, 10, 11]
    assert (await log.state("t")).count == 4


async def test_what_moved_to_disk_is_there_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path, clock, Metrics())
    await log.configure("t", StreamSettings(durability=Durability.EPHEMERAL))
    await log.append(Append(stream="t", drafts=[Draft(b"%d" % n) for n in range(600)], key="k"))
    await log.configure("t", StreamSettings(cap_records=500))
    await log.close()
    assert not verify(tmp_path).findings
    log = open_embedded(tmp_path, clock, Metrics())
    page = await log.read("t", Cursor(100), records_max=1_000)
    assert (page.gap, [record.payload for record in page.records]) == (None, [b"%d" % n for n in range(100, 600)])
    assert (await log.append(Append(stream="t", drafts=[Draft(b"")], key="k"))).deduped
    await log.configure("t", StreamSettings(durability=Durability.EPHEMERAL))
    assert (await log.state("t")).count == 500
    await log.close()
    report = verify(tmp_path)
    assert (report.findings, report.chunks) == ([], 0)
