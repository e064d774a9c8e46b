"""The default store: LMDB on local disk. Every write is one transaction with a durable sync; there is no weaker path."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from seamark import limits
from seamark.clock import Clock
from seamark.errors import BadConfig, Corrupt, Fault
from seamark.log.engines import directory
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.seal import Buffer
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


class LmdbStore:
    """Implements `Store`. Owns the directory from construction to `close`."""

    durable = True

    def __init__(self, path: Path, clock: Clock, *, map_bytes: int = limits.MAP_BYTES) -> None:
        self._path = path
        self._clock = clock
        self._map_bytes = map_bytes
        self._env: lmdb.Environment | None = None
        self._dbs: dict[Space, Any] = {}
        self._transaction = 0
        self._returned = False
        path.mkdir(parents=True, exist_ok=True)
        self._lock = directory.DirectoryLock(path)
        try:
            directory.check(path)
            self._open()
            directory.mark(path)
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
        env = self._env or self._reopen()
        dbs = self._dbs
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
            self._after_failure(env, attempted, error)
        else:
            self._transaction = attempted
            return self._clock.monotonic() - began
        return 0.0

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
        self._transaction = env.info()["last_txnid"]
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

    def _after_failure(self, env: lmdb.Environment, attempted: int, error: Exception) -> None:
        """Returns only when the write turned out to be on disk after all; raises StoreFailed otherwise."""
        cause = _cause(error)
        try:
            env.begin(write=True).abort()
        except (lmdb.Error, OSError):
            # The environment is marked fatal: the meta page may or may not have been written. Trust the disk.
            self._drop_env()
            before = self._transaction
            try:
                reopened = self._open()
                reopened.sync(True)
            except (lmdb.Error, OSError, Corrupt, BadConfig) as second:
                self._drop_env()
                self._transaction = before
                raise StoreFailed(f"{cause}; then {_cause(second)}") from error
            if self._transaction >= attempted:
                return
        raise StoreFailed(cause) from error

    def _reopen(self) -> lmdb.Environment:
        """The environment was lost in a failed write; what is on disk now is the truth, and may be news."""
        before = self._transaction
        try:
            env = self._open()
        except (lmdb.Error, OSError, Corrupt, BadConfig) as error:
            self._drop_env()
            self._transaction = before
            raise StoreFailed(_cause(error)) from error
        self._returned = self._transaction != before
        if self._returned:
            raise StoreFailed("the store came back in another state and is being read again")
        return env

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


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
