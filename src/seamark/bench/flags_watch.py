"""Flags to many clients: one commit at a time, how long it takes to reach everybody, and what that costs the server."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from seamark.bench import process, wire
from seamark.bench.audience import DRAIN_SECONDS_MAX, OPEN_SECONDS_MAX, Audience
from seamark.bench.bench import Bench
from seamark.bench.calls import WAITED_SHARE_QUIET
from seamark.bench.hearer import Hearer
from seamark.bench.process import Process, Usage
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import Sample
from seamark.bench.swarm import Caller, Swarm
from seamark.limits import EVENT_STREAMS_PER_TOKEN_MAX
from seamark.manifest.archive import pack
from seamark.manifest.paths import flag_path

SCENARIO = "watch flags"
REFERENCE = "bare uvloop loop, one event to as many"
CELLS = ((1_000, 100), (10_000, 1), (10_000, 100), (10_000, 1_000))  # clients, distinct subscriptions
CELLS_QUICK = ((60, 3),)
AIMED = (10_000, 100)
P99_AIM_MS = 250.0
FLAGS = 1_000
FLAGS_MANY = 10_000
FLAGS_QUICK = 50
DELTA_AIM_BYTES = 2_048
COMMITS = 8
COMMITS_QUICK = 2
COMMON = "common"  # every subscription holds this flag, so that every commit concerns everybody
TENANT, NAMESPACE = "acme", "bench"
_BOUNDARY = "seamark-bench"


class Told(msgspec.Struct, frozen=True):
    """What some commits came to, each sent when everybody had the one before."""

    p50_ms: float
    p99_ms: float
    seconds: float
    server: Usage | None
    lost: int


class FlagAudience:
    """A namespace of its own, and clients of it that have had their first event."""

    def __init__(self, server: Process, secret: str, *, name: str, flags: int) -> None:
        self._server = server
        self._secret = secret
        self._base = f"/api/v1/tenants/{TENANT}/namespaces"
        self._name = name
        self._files = {flag_path(f"flag-{number:05}"): _flag(0) for number in range(flags)}
        self._commits = 0
        self._owed = 0
        self.packed_bytes = 0
        self._ask("POST", self._base, {"slug": name})
        self.swarm = Swarm(server.host, server.port)
        self.sent_at = 0
        self.latency = Sample()
        self._publisher = Caller(self.swarm, Sample())
        self.commit()

    def open(self, clients: int, subscriptions: int) -> None:
        """Let so many clients in, whose subscriptions are taken in turn."""
        keys = sorted(path.removeprefix("flags/").removesuffix(".toml") for path in self._files if COMMON not in path)
        token = ""
        for number in range(clients):
            if number % EVENT_STREAMS_PER_TOKEN_MAX == 0:
                wanted = {"type": "namespace-read", "name": "b", "tenant": TENANT, "namespace": self._name}
                token = str(self._ask("POST", "/api/v1/tokens", wanted)["secret"])
            own = keys[number % subscriptions % len(keys)]
            self.listen(f"{COMMON},{own}" if subscriptions > 1 else COMMON, token)
            self.swarm.turn(0)
        tally = self.swarm.tally
        if not self.swarm.until(lambda: tally.opened == clients, OPEN_SECONDS_MAX):
            raise TimeoutError(f"{tally.opened} of {clients} streams opened in {OPEN_SECONDS_MAX:.0f} s")

    def listen(self, flags: str, token: str = "") -> _Client:
        target = f"/api/v1/events?ns={self._name}:{flags}"
        if not token:
            target = f"/api/v1/events?ns={TENANT}/{self._name}:{flags}"
        return _Client(self, wire.request("GET", target, token=token or self._secret))

    def run(self, commits: int) -> Told:
        self.commit()  # the first finds nothing prepared
        self._settle()
        self.latency.clear()
        usage, began, lost = self._server.usage(), time.perf_counter(), 0
        for _ in range(commits):
            self.commit()
            lost += self._settle()
        seconds = time.perf_counter() - began
        p50, p99 = self.latency.milliseconds(0.5, 0.99)
        return Told(p50, p99, seconds, self._server.used(usage), lost)

    def commit(self) -> None:
        """One flag changes; latency counts from before the manifest is sent."""
        self._commits += 1
        self._files[flag_path(COMMON)] = _flag(self._commits)
        archive = pack(self._files)
        self.packed_bytes = len(archive)
        media = f"multipart/form-data; boundary={_BOUNDARY}"
        request = wire.request(
            "PUT", f"{self._base}/{self._name}/manifest", _multipart(archive), token=self._secret, media=media
        )
        self._owed = self.swarm.tally.delivered
        self.sent_at = time.perf_counter_ns()
        self._publisher.call(request)
        self.swarm.until(lambda: not self._publisher.busy, DRAIN_SECONDS_MAX)

    def lay(self, folder: Path) -> None:
        """The files on disk, side by side, for whoever reads them there."""
        folder.mkdir()
        for path, content in self._files.items():
            (folder / path.replace("/", "-")).write_bytes(content)

    def close(self) -> None:
        self.swarm.close()

    def _settle(self) -> int:
        """Wait until everybody has heard of the commit; how many never did."""
        tally = self.swarm.tally
        due = self._owed + tally.opened
        self.swarm.until(lambda: tally.delivered >= due, DRAIN_SECONDS_MAX)
        return due - tally.delivered

    def _ask(self, method: str, path: str, body: object) -> dict[str, dict[str, object]]:
        found = wire.ask(self._server.host, self._server.port, method, path, body, token=self._secret)
        return msgspec.convert(found, dict)


class _Client(Hearer):
    """Notes when the news of a commit came, and how many bytes there were."""

    __slots__ = ("_audience", "bytes")

    def __init__(self, audience: FlagAudience, request: bytes) -> None:
        self._audience = audience
        self.bytes = 0
        super().__init__(audience.swarm, request, opening=1)

    def take(self, buffer: bytearray, count: int) -> None:
        self.bytes += count
        super().take(buffer, count)

    def _counted(self, found: int) -> None:
        if self.open:
            self._audience.latency.add(time.perf_counter_ns() - self._audience.sent_at)
        super()._counted(found)


def run(bench: Bench) -> list[Row]:
    """The server holds one namespace for each cell; the bare loop has as many watchers at the same time of the run."""
    file = bench.fresh("superadmin")
    rows: list[Row] = []
    with process.seamark(bench, None, "--superadmin-token-file", str(file)) as real, process.bare(bench) as bare:
        secret = file.read_text().strip()
        wire.ask(
            real.host,
            real.port,
            "POST",
            "/api/v1/tenants",
            {"slug": TENANT, "login_mode": "email_domain", "email_domain": "bench.example"},
            token=secret,
        )
        for number, (clients, subscriptions) in enumerate(CELLS_QUICK if bench.quick else CELLS):
            flags = FLAGS_QUICK if bench.quick else FLAGS
            audience = FlagAudience(real, secret, name=f"{NAMESPACE}-{number}", flags=flags)
            rows += _told(audience, bare, clients, subscriptions, quick=bench.quick)
        many = FLAGS_QUICK if bench.quick else FLAGS_MANY
        rows.append(_delta(FlagAudience(real, secret, name="many", flags=many - 1), many))
    return rows


def _told(audience: FlagAudience, bare: Process, clients: int, subscriptions: int, *, quick: bool) -> list[Row]:
    audience.open(clients, subscriptions)
    told = audience.run(COMMITS_QUICK if quick else COMMITS)
    audience.close()
    beside = Audience(bare, clients)
    theirs = beside.window(1, 0.3 if quick else 2.0)
    beside.close()
    commits = COMMITS_QUICK if quick else COMMITS
    cell: dict[str, Value] = {"clients": clients, "subscriptions": subscriptions}
    cpu = None if told.server is None else told.server.ran * 1e3 / commits
    events = theirs.deliveries / clients
    their_cpu = None if theirs.server is None else theirs.server.ran * 1e3 / events
    figures = (
        ("p50 ms", told.p50_ms, theirs.p50_ms),
        ("p99 ms", told.p99_ms, theirs.p99_ms),
        ("server CPU ms per commit", cpu, their_cpu),
    )
    rows = [
        against(Row(scenario=SCENARIO, parameters=cell, value=value, unit=unit), REFERENCE, reference)
        for unit, value, reference in figures
    ]
    rows[0].notes = f"lost {told.lost}"
    if told.server is not None and told.server.waited / told.seconds > WAITED_SHARE_QUIET:
        rows[
            0
        ].notes += f"; disturbed: the server waited {told.server.waited / told.seconds:.0%} of the time for its core"
    if (clients, subscriptions) == AIMED:
        aim(rows[1], f"<= {P99_AIM_MS:g} ms", told.p99_ms <= P99_AIM_MS and not told.lost)
    return rows


def _delta(audience: FlagAudience, flags: int) -> Row:
    """What one changed flag is on the wire to a client that wants all of them."""
    client = audience.listen("*")
    audience.swarm.until(lambda: client.open, OPEN_SECONDS_MAX)
    before, delivered = client.bytes, audience.swarm.tally.delivered
    audience.commit()
    audience.swarm.until(lambda: audience.swarm.tally.delivered > delivered, DRAIN_SECONDS_MAX)
    size = client.bytes - before
    audience.close()
    row = Row(scenario=SCENARIO, parameters={"flags": flags, "changed": 1}, value=size, unit="bytes on the wire")
    aim(row, f"<= {DELTA_AIM_BYTES:,}", 0 < size <= DELTA_AIM_BYTES)
    return against(row, "the whole manifest, packed", audience.packed_bytes)


def _flag(turn: int) -> bytes:
    return (
        f'schema_version = "0.1"\n\n[flag]\ntype = "boolean"\ndescription = "turn {turn}"\nowner = "bench"\n\n'
        '[flag.variants]\non = true\noff = false\n\n[flag.environments._]\nvariant = "off"\n\n'
        "[[flag.environments._.rules]]\n"
        'predicate = { attribute = "user.email", op = "ends_with", value = "@example.com" }\nvariant = "on"\n'
    ).encode()


def _multipart(archive: bytes) -> bytes:
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="archive"; filename="m.tar.gz"\r\n'
        "Content-Type: application/gzip\r\n\r\n"
    )
    return head.encode() + archive + f"\r\n--{_BOUNDARY}--\r\n".encode()
