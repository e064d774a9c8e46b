"""The data directory: what each file system means, and that looking leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.cli.checks.disk import Mount, check_disk, judge_file_system, judge_syncs, mount_of, time_syncs
from seamark.clock import ManualClock, SystemClock

MOUNTINFO = r"""
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt/data rw,relatime shared:2 master:1 - nfs4 server:/export rw
31 22 0:27 / /mnt/data/fast rw - xfs /dev/vdb rw
32 22 0:28 / /mnt/two\040words rw - tmpfs tmpfs rw
33 22 0:29 / /cover rw - ext4 /dev/vdc rw
34 22 0:30 / /cover rw - overlay overlay rw
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/", Mount("/", "ext4")),
        ("/var/lib", Mount("/", "ext4")),
        ("/mnt/data", Mount("/mnt/data", "nfs4")),
        ("/mnt/database", Mount("/", "ext4")),
        ("/mnt/data/fast/x", Mount("/mnt/data/fast", "xfs")),
        ("/mnt/two words/x", Mount("/mnt/two words", "tmpfs")),
        ("/cover/x", Mount("/cover", "overlay")),
    ],
)
def test_the_mount_of_a_path_is_the_deepest_and_the_last(path: str, mount: Mount) -> None:
    assert mount_of(path, MOUNTINFO) == mount


@given(st.text())
def test_any_mount_table_is_survived(text: str) -> None:
    found = mount_of("/x", text)
    assert found is None or isinstance(found, Mount)


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", "ok"), ("xfs", "ok"), ("nfs", "fail"), ("nfs4", "fail"), ("cifs", "fail"), ("9p", "warn"),
     ("fuse.sshfs", "fail"), ("tmpfs", "warn"), ("overlay", "warn")],
)  # fmt: skip
def test_network_file_systems_are_refused(kind: str, level: str) -> None:
    outcome = judge_file_system(Mount("/m", kind))
    assert outcome.level == level
    assert bool(outcome.remedy) == (level != "ok")


def test_a_good_directory_is_measured_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    outcomes = {outcome.check: outcome for outcome in check_disk(tmp_path, SystemClock())}
    assert outcomes["data directory"].level == "ok"
    assert "ms" in outcomes["fsync latency"].found
    assert "free" in outcomes["disk space"].found
    assert "file system" in outcomes
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_directories_made_for_looking_are_removed_again(tmp_path: Path) -> None:
    outcomes = check_disk(tmp_path / "a" / "b", SystemClock())
    assert all(outcome.level != "fail" for outcome in outcomes)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_a_directory_fails_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (outcome,) = check_disk(tmp_path / "file" / "data", SystemClock())
    assert outcome.level == "fail"
    assert "SEAMARK_DATA" in outcome.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_fails(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        outcomes = {outcome.check: outcome for outcome in check_disk(tmp_path, SystemClock())}
    finally:
        tmp_path.chmod(0o700)
    assert outcomes["data directory"].level == "fail"
    assert "write access" in outcomes["data directory"].remedy


def test_syncs_are_bounded_in_number_and_time(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        assert len(time_syncs(file.fileno(), ManualClock())) == 64

        class Slow(ManualClock):
            def monotonic(self) -> float:
                self.advance(1.5)
                return super().monotonic()

        assert len(time_syncs(file.fileno(), Slow())) == 1


@pytest.mark.parametrize(("seconds", "level"), [(0.000001, "warn"), (0.0005, "ok"), (0.05, "warn")])
def test_syncs_that_are_too_quick_or_too_slow_are_said(seconds: float, level: str) -> None:
    assert judge_syncs([seconds] * 9).level == level
