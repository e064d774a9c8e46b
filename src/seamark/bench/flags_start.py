"""The cold start of a client of flags: from nothing to the first evaluation, in a process of its own each time."""

from __future__ import annotations

import subprocess
import sys
import time

import msgspec

from seamark.bench import machine, process, wire
from seamark.bench.bench import Bench
from seamark.bench.flags_watch import FlagAudience
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median

SCENARIO = "start a client of flags"
REFERENCE = "a process that only parses the same files"
FLAGS = 1_000
FLAGS_QUICK = 50
RUNS = 15
RUNS_QUICK = 2
AIM_MS = 300.0
WAIT_SECONDS = 30.0

_CLIENT = """
import sys, time
began = time.perf_counter()
from seamark import FlagsClient
url, token, name, tenant, cache = sys.argv[1:]
imported = time.perf_counter()
flags = FlagsClient(url, token, name, tenant=tenant, cache_dir=cache or None)
if not cache:
    assert flags.wait_ready(30), flags.last_refresh_error()
answer = flags.details("common", True, {"user.email": "a@example.com"}, kind="boolean")
assert answer.error_code is None, answer
now = time.perf_counter()
print(f'{{"imported_ms":{(imported - began) * 1e3},"answered_ms":{(now - imported) * 1e3},"cpu_ms":{time.process_time() * 1e3}}}', flush=True)
flags.wait_ready(30)
flags.close()
"""
_PARSER = """
import pathlib, sys, time, tomllib
for path in pathlib.Path(sys.argv[1]).iterdir():
    tomllib.loads(path.read_text())
print(f'{{"imported_ms":0,"answered_ms":0,"cpu_ms":{time.process_time() * 1e3}}}', flush=True)
"""


class Start(msgspec.Struct, frozen=True):
    """What one process said of itself, and how long we waited for it."""

    imported_ms: float
    answered_ms: float
    cpu_ms: float
    ms: float = 0.0


def run(bench: Bench) -> list[Row]:
    """From a server, and from what the disk keeps of an earlier life."""
    flags, runs = (FLAGS_QUICK, RUNS_QUICK) if bench.quick else (FLAGS, RUNS)
    secret_file, files, cache = (bench.fresh(name) for name in ("superadmin", "files", "cache"))
    with process.seamark(bench, None, "--superadmin-token-file", str(secret_file)) as real:
        secret = secret_file.read_text().strip()
        body = {"slug": "acme", "login_mode": "email_domain", "email_domain": "bench.example"}
        wire.ask(real.host, real.port, "POST", "/api/v1/tenants", body, token=secret)
        audience = FlagAudience(real, secret, name="start", flags=flags - 1)
        audience.close()
        audience.lay(files)
        asked = [f"http://{real.host}:{real.port}", secret, "start", "acme"]
        _start(bench, _CLIENT, *asked, str(cache), waits=True)  # fills the cache
        theirs, ours, kept = [], [], []
        for _ in range(runs):  # in turn, so that whatever disturbs one disturbs all
            theirs.append(_start(bench, _PARSER, str(files)))
            ours.append(_start(bench, _CLIENT, *asked, ""))
            kept.append(_start(bench, _CLIENT, *asked, str(cache)))
    served = _rows(ours, theirs, flags, "server")
    aim(served[0], f"<= {AIM_MS:g} ms", served[0].value is not None and served[0].value <= AIM_MS)
    return served + _rows(kept, theirs, flags, "disk cache")


def _rows(ours: list[Start], theirs: list[Start], flags: int, source: str) -> list[Row]:
    cell: dict[str, Value] = {"flags": flags, "from": source}
    whole = Row(scenario=SCENARIO, parameters=cell, value=median([one.ms for one in ours]), unit="ms to first answer")
    whole.notes = (
        f"of which importing {median([one.imported_ms for one in ours]):.0f} ms, "
        f"and from there to the answer {median([one.answered_ms for one in ours]):.0f} ms"
    )
    cpu = Row(scenario=SCENARIO, parameters=cell, value=median([one.cpu_ms for one in ours]), unit="CPU ms")
    return [
        against(whole, REFERENCE, median([one.ms for one in theirs])),
        against(cpu, REFERENCE, median([one.cpu_ms for one in theirs])),
    ]


def _start(bench: Bench, program: str, *arguments: str, waits: bool = False) -> Start:
    """Start a process, and wait for its answer; with `waits` an empty cache is no failure."""
    text = program.replace("if not cache:", "if True:") if waits else program
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, cwd=bench.where)
    machine.pin(child.pid, machine.CLIENT_CORE, bench.cores)
    assert child.stdout is not None
    line = child.stdout.readline()
    took = (time.perf_counter() - began) * 1e3
    child.stdout.close()
    if child.wait(WAIT_SECONDS) or not line:
        raise RuntimeError(f"a client did not start: it ended with {child.returncode}")
    return msgspec.structs.replace(msgspec.json.decode(line, type=Start), ms=took)
