"""The machine and what is installed on it: Python, libraries, clock, open files."""

from __future__ import annotations

import platform
import re
import resource
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from seamark import limits
from seamark.cli.checks.outcome import Outcome, fail, ok, warn
from seamark.clock import NS_PER_SECOND, Clock

SERVER_EXTRA = "pip install 'seamark[server]'"
SERVER_LINE = re.compile(r"""([A-Za-z0-9._-]+).*;.*\bextra == ['"]server['"]""")
RELEASED_SECONDS = 1_735_689_600  # 2025: no version of Seamark is older
FILES_BESIDE_CONNECTIONS = 128
DRIFT_SECONDS_MAX = 0.05
WATCH_SECONDS = 0.1


def check_python() -> list[Outcome]:
    """The interpreter, uvloop, and the libraries that a server needs."""
    outcomes = [ok("python", f"{platform.python_implementation()} {platform.python_version()}")]
    uvloop = _version("uvloop")
    if uvloop is None:
        outcomes.append(warn("uvloop", "not installed: the server runs, at about half the speed", SERVER_EXTRA))
    else:
        outcomes.append(ok("uvloop", uvloop))
    missing = [name for name in libraries() if _version(name) is None]
    if missing:
        outcomes.append(fail("libraries", f"not installed: {', '.join(missing)}", SERVER_EXTRA))
    else:
        outcomes.append(ok("libraries", f"lmdb {_version('lmdb')}, uvicorn {_version('uvicorn')}"))
    return outcomes


def libraries() -> list[str]:
    """What the extra of that name brings, without uvloop, which a server can do without."""
    lines = metadata.requires("seamark") or ()
    names = {found[1].lower() for line in lines if (found := SERVER_LINE.match(line)) is not None}
    return sorted(names - {"uvloop"})


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_clock(clock: Clock, data: Path) -> list[Outcome]:
    """Whether the wall clock can be believed: it is set, it runs evenly, and it has not gone back."""
    remedy = "set the clock, and let NTP keep it (timedatectl set-ntp true)"
    now_seconds = clock.now_ns() / NS_PER_SECOND
    if now_seconds < RELEASED_SECONDS:
        return [fail("clock", "it stands before 2025, when no Seamark existed", remedy)]
    newest = max((file.stat().st_mtime for file in data.glob("*") if file.is_file()), default=0.0)
    if newest > now_seconds + 60:
        found = f"data was written {newest - now_seconds:.0f} s in the future: the clock went back since"
        return [warn("clock", found, f"{remedy}; until it has caught up, new records carry the last time seen")]
    drift = _drift(clock)
    if abs(drift) > DRIFT_SECONDS_MAX:
        return [warn("clock", f"it moved by {drift:+.2f} s within {WATCH_SECONDS} s", remedy)]
    synchronised = _synchronised()
    if synchronised is False:
        return [warn("clock", "not synchronised", remedy)]
    return [ok("clock", "set and running evenly" + (", synchronised" if synchronised else ""))]


def _drift(clock: Clock) -> float:
    """How far wall time and elapsed time part within a short while."""
    wall, started = clock.now_ns(), clock.monotonic()
    while (passed := clock.monotonic() - started) < WATCH_SECONDS:
        pass
    return (clock.now_ns() - wall) / NS_PER_SECOND - passed


def _synchronised() -> bool | None:
    """What systemd says; None where there is nobody to ask, as in most containers."""
    if shutil.which("timedatectl") is None:
        return None
    command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(answer)


def check_open_files() -> list[Outcome]:
    """Every connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [judge_open_files(soft, hard)]


def judge_open_files(soft: int, hard: int) -> Outcome:
    """Compare with CONNECTIONS_MAX, and say exactly how to raise what is too low."""
    wanted = limits.CONNECTIONS_MAX + FILES_BESIDE_CONNECTIONS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"limit {soft}")
    found = (
        f"limit {soft}: about {max(0, soft - FILES_BESIDE_CONNECTIONS)} connections instead of {limits.CONNECTIONS_MAX}"
    )
    service = f"LimitNOFILE={wanted} in a systemd unit, --ulimit nofile={wanted} for a container"
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return warn("open files", found, f"ulimit -n {wanted} in the shell that starts the server; {service}")
    return warn("open files", found, f"{service}; for a login: nofile {wanted} in /etc/security/limits.conf (as root)")
