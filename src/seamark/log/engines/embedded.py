"""The default store: LMDB on local disk. Every write is one transaction with a durable sync; there is no weaker path."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lmdb

from seamark import limits
from seamark.clock import Clock
from seamark.errors import BadConfig, Corrupt, Fault
from seamark.log.commit import PROBE
from seamark.log.engines import directory
from seamark.log.engines.headroom import Headroom
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.seal import Buffer, seal
from seamark.log.store import Change, Space, StoreFailed
from seamark.telemetry.metrics import Metrics

_MAP_BYTES_MIN = limits.GIB


class LmdbView:
    """One read transaction."""

    __slots__ = ("_dbs", "_txn")

    def __init__(self, txn: lmdb.Transaction, dbs: dict[Space, Any]) -> None:
        self._txn = txn
        self._dbs = dbs

    def get(self, space: Space, key: bytes) -> Buffer | None:
        value: Buffer | None = self._txn.get(key, db=self._dbs[space])
        return value

    def scan(self, space: Space, start: bytes, stop: bytes | None = None) -> Iterator[tuple[bytes, Buffer]]:
        with self._txn.cursor(db=self._dbs[space]) as cursor:
            more = cursor.set_range(start)
            least = start
            while more:
                key, value = cursor.item()
                key = bytes(key)
                if key < least:
                    raise _disorder()
                if stop is not None and key >= stop:
                    return
                yield key, value
                least = key + b"\0"
                more = cursor.next()

    def floor(self, space: Space, key: bytes) -> tuple[bytes, Buffer] | None:
        with self._txn.cursor(db=self._dbs[space]) as cursor:
            found = cursor.set_range(key)
            if not found:
                found = cursor.last()
            elif bytes(cursor.key()) != key:
                found = cursor.prev()
            if not found:
                return None
            if bytes(cursor.key()) > key:
                raise _disorder()
            return bytes(cursor.key()), cursor.value()

    def beside(self, space: Space, key: bytes) -> list[tuple[bytes, Buffer]]:
        with self._txn.cursor(db=self._dbs[space]) as cursor:
            found: list[tuple[bytes, Buffer]] = []
            if cursor.set_range(key):
                found.append((bytes(cursor.key()), cursor.value()))
                if found[0][0] < key:
                    raise _disorder()
                if not cursor.prev():
                    return found
            elif not cursor.last():
                return found
            if bytes(cursor.key()) >= key:
                raise _disorder()
            return [*found, (bytes(cursor.key()), cursor.value())]


class LmdbStore:
    """Implements `Store`. Owns the directory from construction to `close`."""

    durable = True

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        map_bytes: int = limits.MAP_BYTES,
        free_bytes: Callable[[Path], int] = directory.free_bytes,
    ) -> None:
        self._path = path
        self._clock = clock
        self._free_bytes = free_bytes
        self._map_bytes = map_bytes
        self._env: lmdb.Environment | None = None
        self._dbs: dict[Space, Any] = {}
        self._transaction = 0  # the last one known to be durable
        self._found = 0  # the last one in the file; another only after a failed write, until `_settle`
        self._returned = False
        self._headroom = Headroom(path / directory.DATA_NAME)
        self._page_bytes = 0
        path.mkdir(parents=True, exist_ok=True)
        self._lock = directory.DirectoryLock(path)
        try:
            directory.check(path)
            self._open().sync(True)  # what a killed process left to the system is not durable before this
            self._transaction = self._found
            directory.mark(path)
        except lmdb.Error as error:
            self._drop_env()
            self._lock.release()
            raise Fault(f"{path} cannot be synced: {error}") from error
        except BaseException:
            self._drop_env()
            self._lock.release()
            raise

    @contextmanager
    def view(self) -> Iterator[LmdbView]:
        env = self._env
        if env is None:
            raise Fault("the store failed and could not be opened again yet")
        try:
            with env.begin(buffers=True) as txn:
                yield LmdbView(txn, self._dbs)
        except lmdb.Error as error:
            raise Corrupt(f"the store cannot be read: {error}", stream="", seq=0, where="store") from error

    def write(self, changes: Sequence[Change]) -> float:
        env, dbs = self._ready(), self._dbs
        attempted = self._transaction + 1
        try:
            txn = env.begin(write=True)
            try:
                for space, key, value in changes:
                    if value is None:
                        txn.delete(key, db=dbs[space])
                    else:
                        txn.put(key, value, db=dbs[space])
                attempted = txn.id()
                began = self._clock.monotonic()
                txn.commit()
            except BaseException:
                txn.abort()
                raise
        except (lmdb.Error, OSError) as error:
            self._revive()
            if self._found < attempted or not self._settle():
                raise StoreFailed(self._cause(error)) from error
            self._transaction = self._found
            return 0.0  # it had reached the file after all, and is durable now
        self._transaction = self._found = attempted
        took = self._clock.monotonic() - began
        self._headroom.keep((env.info()["last_pgno"] + 1) * self._page_bytes)
        return took

    def returned(self) -> bool:
        returned, self._returned = self._returned, False
        return returned

    def tend(self) -> None:
        """Free the slots of readers that died; they would pin old pages for ever. And keep the file at its full
        length, so that the next start need not ask whether it was cut."""
        if self._env is not None:
            self._env.reader_check()
            directory.lengthen(self._path)

    def backup(self, path: str) -> None:
        target = Path(path)
        if target.exists() and any(target.iterdir()):
            raise Fault(f"{path} is not empty")
        target.mkdir(parents=True, exist_ok=True)
        if self._env is None:
            raise Fault("the store failed and could not be opened again yet")
        try:
            self._env.copy(path)
            directory.mark(target)
        except (lmdb.Error, OSError) as error:
            raise Fault(f"the copy to {path} failed: {error}") from error

    def facts(self) -> dict[str, str | int | float | bool]:
        facts: dict[str, str | int | float | bool] = {"engine": "embedded", "durability": "local disk, fsync"}
        if self._env is not None:
            info, stat = self._env.info(), self._env.stat()
            facts["store_bytes"] = (info["last_pgno"] + 1) * stat["psize"]
            facts["map_bytes"] = info["map_size"]
        return facts

    def close(self) -> None:
        self._drop_env()
        self._headroom.close()
        try:
            directory.lengthen(self._path)
        except (Corrupt, OSError):
            pass  # it was told when it was read; closing has nothing to add
        self._lock.release()

    # -- opening

    def _open(self) -> lmdb.Environment:
        size = self._map_bytes
        while True:
            try:
                self._env = env = self._environment(size)
                break
            except (lmdb.MemoryError, MemoryError, OSError) as error:
                if size <= _MAP_BYTES_MIN:
                    raise BadConfig(f"the system gives no {size} bytes of address space: {error}") from error
                size //= 2
            except lmdb.Error as error:
                if getattr(error, "code", 0) == errno.ENOMEM and size > _MAP_BYTES_MIN:
                    size //= 2
                    continue
                raise Corrupt(f"{self._path} cannot be opened: {error}", stream="", seq=0, where="file") from error
        try:
            env.reader_check()
            self._dbs = {space: env.open_db(space.name.lower().encode("ascii")) for space in Space}
        except lmdb.Error as error:
            raise Corrupt(f"{self._path} cannot be opened: {error}", stream="", seq=0, where="file") from error
        self._found = env.info()["last_txnid"]
        self._page_bytes = env.stat()["psize"]
        directory.sync_directory(self._path)
        return env

    def _environment(self, size: int) -> lmdb.Environment:
        return lmdb.open(
            str(self._path),
            map_size=size,
            subdir=True,
            metasync=True,
            sync=True,
            max_readers=limits.STORE_READERS_MAX,
            max_dbs=len(Space),
            max_spare_txns=4,
            mode=0o644,
        )

    # -- failing

    def _ready(self) -> lmdb.Environment:
        """The environment, if it may be written to. What a failed write left in the file may be there to stay or not,
        until it is durable by a write of our own; from then on it is the truth, and news to those above."""
        if self._env is None:
            self._reopen()
        if self._env is None:
            raise StoreFailed("the store could not be opened again")
        if self._found != self._transaction:
            if not self._settle():
                raise StoreFailed("what a failed write left could not be made durable")
            self._transaction = self._found
            self._returned = True
            raise StoreFailed("the store came back in another state and is being read again")
        return self._env

    def _settle(self) -> bool:
        """Make durable what the file shows. A sync alone proves nothing after one that failed: the system may have
        given the pages up and call them clean. A transaction of ours writes its own and the next header."""
        env = self._env
        if env is None:
            return False
        try:
            with env.begin(write=True) as txn:
                txn.put(PROBE, seal(PROBE, b"settled"), db=self._dbs[Space.FACTS])
                found = txn.id()
        except (lmdb.Error, OSError):
            self._revive()
            return False
        self._found = found
        return True

    def _revive(self) -> None:
        """After a failed write. When the header could not be written, LMDB takes neither reads nor writes any more; a
        new environment at least reads."""
        try:
            if self._env is not None:
                self._env.begin(write=True).abort()
        except (lmdb.Error, OSError):
            self._drop_env()
            self._reopen()

    def _reopen(self) -> None:
        try:
            self._open()
        except (lmdb.Error, OSError, Corrupt, BadConfig):
            self._drop_env()

    def _cause(self, error: Exception) -> str:
        """LMDB takes a write that a full disk cut short for an error of the disk; people have to be told which it is."""
        with suppress(OSError):
            free = self._free_bytes(self._path)
            if free < limits.HEADROOM_BYTES:
                return f"the disk is full: {free} bytes free"
        return f"{type(error).__name__}: {error}"

    def _drop_env(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None
            self._dbs = {}


def open_embedded(
    path: str | os.PathLike[str],
    clock: Clock,
    metrics: Metrics,
    *,
    quota_bytes: int = 0,
    map_bytes: int = limits.MAP_BYTES,
) -> LocalLog:
    """A log that survives. Raises StoreLocked, Corrupt. Call it inside a running loop."""
    store = LmdbStore(Path(path), clock, map_bytes=map_bytes)
    try:
        return LocalLog(store, clock, metrics, quota_bytes=quota_bytes, ephemeral=MemoryStore())
    except BaseException:
        store.close()
        raise


def _disorder() -> Corrupt:
    """A damaged page can show keys that were never written; no meaning may be read into them."""
    return Corrupt("the store's keys are out of order", stream="", seq=0, where="store")
