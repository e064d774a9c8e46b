"""The machine that figures come from: what it is, which core does what, and how fast its disk really is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

from seamark.bench.row import Value
from seamark.bench.sample import median

SERVER_CORE = 0
CLIENT_CORE = 1
SYNC_PROBES = 64
DIRECTORY_VARIABLE = "BENCH_DIR"


def cores() -> list[int]:
    """The cores this process may use, where the system says."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(pid: int, place: int, available: list[int]) -> bool:
    """Keep a process on one core, so that server and load never share one. False where that cannot be had."""
    if len(available) < 2 or not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(pid, {available[place]})
    return True


def open_files(wanted: int) -> int:
    """Raise the open-file limit as far as needed and allowed; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def directory() -> Path:
    """Where stores are made: a real disk. `/tmp` is often memory, on which a sync costs nothing and proves nothing."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen)
    lasting = Path("/var/tmp")
    return lasting if lasting.is_dir() and os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())


def sync_microseconds(where: Path) -> float:
    """Median time to append 4 KiB to a file and make it durable."""
    sync = getattr(os, "fdatasync", os.fsync)
    page = b"\x5a" * 4096
    took = []
    with tempfile.TemporaryFile(dir=where) as file:
        for _ in range(SYNC_PROBES):
            began = time.perf_counter_ns()
            os.write(file.fileno(), page)
            sync(file.fileno())
            took.append((time.perf_counter_ns() - began) / 1e3)
    return median(took)


def describe(where: Path) -> dict[str, Value]:
    """What a reader needs to know before comparing figures."""
    return {
        "cpu": _cpu(),
        "cores": len(cores()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in ("seamark", "uvloop", "httptools", "lmdb")},
        "sync_us": round(sync_microseconds(where), 1),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
