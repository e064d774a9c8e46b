"""Python, clock and open files."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from seamark import limits
from seamark.cli.checks import host
from seamark.cli.checks.host import check_clock, check_open_files, check_python, judge_open_files
from seamark.clock import NS_PER_SECOND, ManualClock, SystemClock

WANTED = limits.CONNECTIONS_MAX + host.FILES_BESIDE_CONNECTIONS


class Ticking(ManualClock):
    """Each look at elapsed time takes a while, in which the wall clock may move by something else."""

    def __init__(self, now_ns: int, skew_seconds: float = 0.0) -> None:
        super().__init__(now_ns)
        self.skew_seconds = skew_seconds

    def monotonic(self) -> float:
        self.advance(0.02)
        self.step(self.skew_seconds)
        return super().monotonic()


NOW_NS = 1_800_000_000 * NS_PER_SECOND


@pytest.fixture(autouse=True)
def _nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_synchronised", lambda: None)


def test_this_python_has_what_a_server_needs() -> None:
    assert {outcome.check: outcome.level for outcome in check_python()} == {
        "python": "ok",
        "uvloop": "ok",
        "libraries": "ok",
    }


def test_the_libraries_of_the_server_are_looked_for_and_no_others() -> None:
    """They are those of the extra, as it was when Seamark was installed."""
    found = set(host.libraries())
    assert {"httpx", "lmdb", "numpy", "pyjwt", "structlog", "uvicorn"} <= found
    assert not found & {"uvloop", "click", "pytest", "nats-py", "pyspark"}


def test_a_missing_library_fails_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "libraries", lambda: ["lmdb", "no-such-library"])
    outcome = check_python()[-1]
    assert outcome.level == "fail"
    assert "no-such-library" in outcome.found
    assert "pip install 'seamark[server]'" in outcome.remedy


def test_an_even_clock_is_believed(tmp_path: Path) -> None:
    assert check_clock(Ticking(NOW_NS), tmp_path)[0].level == "ok"
    assert check_clock(SystemClock(), tmp_path / "absent")[0].level == "ok"


def test_a_clock_that_was_never_set_fails(tmp_path: Path) -> None:
    assert check_clock(Ticking(1_000_000 * NS_PER_SECOND), tmp_path)[0].level == "fail"


def test_a_clock_that_jumps_is_said(tmp_path: Path) -> None:
    for skew in (0.05, -0.05):
        outcome = check_clock(Ticking(NOW_NS, skew), tmp_path)[0]
        assert outcome.level == "warn"
        assert "moved" in outcome.found


def test_data_from_the_future_is_said(tmp_path: Path) -> None:
    file = tmp_path / "data.mdb"
    file.write_text("x")
    os.utime(file, (NOW_NS / NS_PER_SECOND + 3600,) * 2)
    outcome = check_clock(Ticking(NOW_NS), tmp_path)[0]
    assert outcome.level == "warn"
    assert "went back" in outcome.found


def test_an_unsynchronised_clock_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_synchronised", lambda: False)
    assert check_clock(Ticking(NOW_NS), tmp_path)[0].level == "warn"
    monkeypatch.setattr(host, "_synchronised", lambda: True)
    assert check_clock(Ticking(NOW_NS), tmp_path)[0].level == "ok"


def test_open_files_are_compared_with_connections() -> None:
    assert judge_open_files(WANTED, WANTED).level == "ok"
    assert judge_open_files(resource.RLIM_INFINITY, resource.RLIM_INFINITY).level == "ok"
    raisable = judge_open_files(1024, WANTED)
    assert raisable.level == "warn"
    assert f"ulimit -n {WANTED}" in raisable.remedy
    fixed = judge_open_files(1024, 4096)
    assert fixed.level == "warn"
    assert "ulimit -n" not in fixed.remedy
    assert f"LimitNOFILE={WANTED}" in fixed.remedy
    assert check_open_files()[0].check == "open files"
