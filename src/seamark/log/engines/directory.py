"""The data directory of an embedded store: who owns it, and whether the file in it is whole enough to be mapped."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Self

from lmdb.verify import VerifyError
from lmdb.verify import verify as verify_structure

from seamark.errors import Corrupt, StoreLocked

LOCK_NAME = "seamark.lock"
DATA_NAME = "data.mdb"
MARK_NAME = "seamark.format"
MARK = b"seamark embedded store, format 1\n"

_META_PAGES = 2
_PAGE_HEADER = 16
# magic, version, map address, map size, then two 48-byte trees (the first begins with the page size),
# the last used page and the transaction number
_META = struct.Struct("<IIQQI44x48xQQ")
_MAGIC = 0xBEEFC0DE


class DirectoryLock:
    """An advisory lock that the operating system drops with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            message = f"another process ({owner or 'unknown'}) has the data directory {path} open"
            raise StoreLocked(message, path=str(path), owner=owner) from error
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"pid {os.getpid()}\n".encode("ascii"), 0)
        except OSError:
            pass  # a full disk must not keep a store from being opened for reading; the lock itself is held

    def release(self) -> None:
        os.close(self._fd)


class Watch:
    """Whether a process owns the directory; while nobody does, nobody can begin to as long as we look."""

    def __init__(self, path: Path) -> None:
        self._path = path / LOCK_NAME
        self._fd = -1
        self.owned = False

    def __enter__(self) -> Self:
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self  # a copy, or a store that was never opened since
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            self.owned = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class Tail:
    """What the file's own meta pages say about its length and its last transactions."""

    def __init__(self, path: Path) -> None:
        self.size = path.stat().st_size
        metas = []
        with path.open("rb") as file:
            page_size = 0
            for number in range(_META_PAGES):
                file.seek(number * page_size + _PAGE_HEADER)
                raw = file.read(_META.size)
                if len(raw) < _META.size:
                    raise _broken(path, "it ends inside its own header")
                magic, _, _, _, size, last_page, transaction = _META.unpack(raw)
                if magic != _MAGIC:
                    raise _broken(path, "its header is not one of this format")
                page_size = page_size or size
                metas.append((transaction, last_page))
        self.transactions = [transaction for transaction, _ in metas]
        self.expected: int = (max(metas)[1] + 1) * page_size

    @property
    def cut(self) -> bool:
        return self.size < self.expected

    @property
    def paired(self) -> bool:
        """Transactions write the two headers in turn, so they are one apart, each in its own place."""
        even, odd = self.transactions
        return (even, odd) == (0, 0) or (even % 2 == 0 and odd % 2 == 1 and abs(even - odd) == 1)


def check(path: Path) -> None:
    """Refuse a store whose file vanished or was cut: a map of it could end the process on the first read."""
    data = path / DATA_NAME
    if not data.exists() or data.stat().st_size == 0:
        if (path / MARK_NAME).exists():
            raise _broken(data, "the directory held a store and the file is missing or empty")
        return
    if Tail(data).cut:
        problems = structure_problems(data)
        if problems:
            raise _broken(data, f"it was cut short ({problems[0]})")
        lengthen(path)


def lengthen(path: Path) -> None:
    """The last pages may be free ones that were never written; let the file have its full length nevertheless, so
    that a cut can be told from that."""
    data = path / DATA_NAME
    tail = Tail(data)
    if tail.cut:
        os.truncate(data, tail.expected)


_RUN = re.compile(r"(.+) DB: overflow page \d+ header mp_pages (\d+) != OVPAGES\(\d+\)=(\d+)")
_WALKED = re.compile(r"(.+) DB: walked (\d+) overflow pages, record says (\d+)")
_LEAK = re.compile(r"(\d+) page\(s\) are neither reachable nor in the freeDB")


def structure_problems(data: Path) -> list[str]:
    """Whether the file's pages form sound trees, proven without mapping it."""
    try:
        problems: list[str] = verify_structure(str(data), subdir=False)  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)]
    return _without_slack(problems)


def _without_slack(problems: list[str]) -> list[str]:
    """LMDB keeps the longer run of pages when a value shrinks within one transaction; the checker takes what is left
    over for damage, and for pages that leaked. Exactly that is no problem, anything beside it is."""
    slack: dict[str, int] = {}
    for problem in problems:
        run = _RUN.fullmatch(problem)
        if run is not None and int(run[2]) > int(run[3]):
            slack[run[1]] = slack.get(run[1], 0) + int(run[2]) - int(run[3])

    def is_slack(problem: str) -> bool:
        run, walked, leak = _RUN.fullmatch(problem), _WALKED.fullmatch(problem), _LEAK.match(problem)
        if run is not None:
            return int(run[2]) > int(run[3])
        if walked is not None:
            return int(walked[3]) - int(walked[2]) == slack.get(walked[1])
        return leak is not None and int(leak[1]) == sum(slack.values())

    return [problem for problem in problems if not is_slack(problem)]


def mark(path: Path) -> None:
    """Say durably that a store lives here, so that a lost file is not taken for a new store."""
    target = path / MARK_NAME
    if target.exists():
        return
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, MARK)
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(path)


def free_bytes(path: Path) -> int:
    """Room on the disk for whoever runs this process."""
    return shutil.disk_usage(path).free


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _broken(path: Path, why: str) -> Corrupt:
    return Corrupt(f"{path} is not a readable store: {why}", stream="", seq=0, where="file")
