"""The store without Seamark: the same bytes put into LMDB, one transaction and one durable sync for each group."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import lmdb

from seamark.bench import wire

MAP_BYTES = 64 * 1024**3
_KEY = struct.Struct(">IQ")


class RawLmdb:
    """One record per key, ascending, as fast as LMDB takes them."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._env = lmdb.open(str(path), map_size=MAP_BYTES)
        self._seq = 0

    def close(self) -> None:
        self._env.close()

    def append(self, records: int) -> None:
        """One group commit."""
        data = wire.payload()
        first = self._seq + 1
        self._seq += records
        items = [(_KEY.pack(1, seq), data) for seq in range(first, self._seq + 1)]
        with self._env.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(items, append=True)

    def append_for(self, seconds: float, group: int) -> float:
        """Records per second, in groups of `group`."""
        began = time.perf_counter()
        records = 0
        while time.perf_counter() < began + seconds:
            self.append(group)
            records += group
        return records / (time.perf_counter() - began)

    def read_for(self, seconds: float, page: int) -> float:
        """Records per second, copied out in pages that start at different places."""
        began = time.perf_counter()
        records, start = 0, 1
        while time.perf_counter() < began + seconds:
            with self._env.begin() as transaction, transaction.cursor() as cursor:
                cursor.set_range(_KEY.pack(1, start))
                values = []
                for value in cursor.iternext(keys=False):
                    values.append(bytes(value))
                    if len(values) == page:
                        break
            records += len(values)
            start = start + page if start + 2 * page < self._seq else 1
        return records / (time.perf_counter() - began)
