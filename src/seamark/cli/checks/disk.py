"""The data directory: can it be written, on what file system, how much room, and how long a durable write takes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from seamark import limits
from seamark.cli.checks.outcome import Outcome, fail, ok, warn
from seamark.clock import Clock

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "beegfs",
                     "gpfs", "ocfs2", "gfs2", "webdav", "davfs", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs"})  # fmt: skip
SHARED = frozenset({"9p", "virtiofs", "vboxsf", "fuse"})
VOLATILE = frozenset({"tmpfs", "ramfs", "devtmpfs"})
FREE_BYTES_MIN = 64 * limits.MIB
FREE_BYTES_COMFORT = 2 * limits.GIB
SYNC_ROUNDS = 64
SYNC_SECONDS_MAX = 2.0
SYNC_MS_SLOW = 20.0
SYNC_MS_DOUBTFUL = 0.02
LOCAL = "set SEAMARK_DATA (or --data) to a directory on a local disk"


def check_disk(data: Path, clock: Clock) -> list[Outcome]:
    """Everything about the data directory. A directory that this had to create is removed again."""
    target = Path(os.path.abspath(data))
    created = _missing_directories(target)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return [fail("data directory", f"{target} cannot be made: {error.strerror}", LOCAL)]
    try:
        return [_file_system(target), *_room(target), *_writing(target, clock)]
    finally:
        for directory in created:
            with contextlib.suppress(OSError):
                directory.rmdir()


def _missing_directories(target: Path) -> list[Path]:
    """Those that do not exist yet, deepest first."""
    return [directory for directory in (target, *target.parents) if not directory.exists()]


class Mount(NamedTuple):
    point: str
    kind: str


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that `path` (absolute, without links) is on, from the text of /proc/self/mountinfo."""
    best: Mount | None = None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split()
        if not separator or len(fields) < 5 or not right.split():
            continue
        point = fields[4].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # A later line covers an earlier one on the same point.
        if inside and (best is None or len(point) >= len(best.point)):
            best = Mount(point, right.split()[0])
    return best


def judge_file_system(mount: Mount) -> Outcome:
    """What a file system means for the embedded engine."""
    found = f"{mount.kind} on {mount.point}"
    if mount.kind in NETWORK:
        return fail(
            "file system", f"{found}: a network file system; LMDB's locks and memory map do not hold there", LOCAL
        )
    if mount.kind in VOLATILE:
        return warn("file system", f"{found}: memory, so everything is lost when the machine stops", LOCAL)
    if mount.kind in SHARED:
        return warn("file system", f"{found}: shared by a host, which may keep neither locks nor syncs", LOCAL)
    if mount.kind == "overlay":
        return warn(
            "file system",
            f"{found}: a container's own layer, which goes with the container",
            "mount a volume for the data",
        )
    return ok("file system", found)


def _file_system(target: Path) -> Outcome:
    try:
        mount = mount_of(os.path.realpath(target), MOUNTS.read_text(errors="replace"))
    except OSError:
        mount = None
    if mount is None:
        return warn(
            "file system", "not known: this system has no mount table to read", "make sure that it is a local disk"
        )
    return judge_file_system(mount)


def _room(target: Path) -> list[Outcome]:
    free = shutil.disk_usage(target).free
    found = f"{free / limits.GIB:.1f} GiB free"
    if free < FREE_BYTES_MIN:
        return [fail("disk space", found, "make room: without it every append is refused (reads go on)")]
    if free < FREE_BYTES_COMFORT:
        return [warn("disk space", found, "make room, or bound what is kept: quota_bytes, and a cap or ttl per stream")]
    return [ok("disk space", found)]


def _writing(target: Path, clock: Clock) -> list[Outcome]:
    try:
        with tempfile.NamedTemporaryFile(dir=target, prefix=".doctor-") as file:
            durations = time_syncs(file.fileno(), clock)
    except OSError as error:
        remedy = f"give this user write access to {target}" if isinstance(error, PermissionError) else LOCAL
        return [fail("data directory", f"{target} cannot be written: {error.strerror}", remedy)]
    return [ok("data directory", f"{target} can be written"), judge_syncs(durations)]


def time_syncs(file: int, clock: Clock) -> list[float]:
    """Seconds of each durable 4 KiB write: as many as fit into a short while, at least one."""
    durations: list[float] = []
    block = b"\xa5" * 4096
    started = clock.monotonic()
    while len(durations) < SYNC_ROUNDS and (not durations or clock.monotonic() - started < SYNC_SECONDS_MAX):
        begun = clock.monotonic()
        os.write(file, block)
        os.fsync(file)
        durations.append(clock.monotonic() - begun)
    return durations


def judge_syncs(durations: list[float]) -> Outcome:
    """What the measured syncs mean for an append that waits for one."""
    ordered = sorted(1000 * seconds for seconds in durations)
    median, worst = ordered[len(ordered) // 2], ordered[-1]
    found = (
        f"median {median:.2f} ms, worst {worst:.2f} ms over {len(ordered)} writes; an fsync append waits for about two"
    )
    if median < SYNC_MS_DOUBTFUL:
        remedy = "this is faster than a disk can be: if power loss matters, check that write caches are honest"
        return warn("fsync latency", found, remedy)
    if median > SYNC_MS_SLOW:
        return warn(
            "fsync latency", found, "send batches or more writers at once, which share a sync; or use a faster disk"
        )
    return ok("fsync latency", found)
