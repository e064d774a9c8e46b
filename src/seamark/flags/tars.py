"""Closures as archives, made once for all who fetch the same."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Generic, TypeVar

from seamark.flags.once import Once
from seamark.flags.rows import owner_of
from seamark.flags.seats import Seats
from seamark.flags.version import Closure, Version
from seamark.flags.versions import Versions
from seamark.limits import FLAG_TAR_BYTES_KEPT, FLAG_TAR_SIZES_KEPT_MAX, FLAG_TARS_AT_ONCE
from seamark.manifest.archive import pack, tar_size
from seamark.telemetry.metrics import Metrics

T = TypeVar("T", int, bytes)
_Key = tuple[str, str]  # the stream, and what is packed: two versions with the same closure have the same archive
_SLICE_FILES = 256  # contents fetched before the loop goes on


class _Kept(Generic[T]):
    """The values that were asked for last, within a bound on what they weigh together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._values: OrderedDict[_Key, tuple[T, int]] = OrderedDict()

    def get(self, key: _Key) -> T | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: _Key, value: T, weight: int) -> T:
        if key not in self._values and weight <= self._most:
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self._most:
                self._weight -= self._values.popitem(last=False)[1][1]
        return value


class Tars:
    """Belongs to one loop."""

    def __init__(self, versions: Versions, metrics: Metrics) -> None:
        self._versions = versions
        self._tars: _Kept[bytes] = _Kept(FLAG_TAR_BYTES_KEPT)
        self._sizes: _Kept[int] = _Kept(FLAG_TAR_SIZES_KEPT_MAX)
        self._making: Once[_Key, bytes] = Once()
        self._measuring: Once[_Key, int] = Once()
        self._seats = Seats(FLAG_TARS_AT_ONCE)
        self._packed = metrics.counter("seamark_flags_archives_total")

    def size_now(self, version: Version, closure: Closure) -> int:
        """Bytes of a closure's archive without compression, worked out at once."""
        key = (version.stream, closure.hash)
        size = self._sizes.get(key)
        return self._sized(key, self._versions.files(version, closure.index)) if size is None else size

    async def size(self, version: Version, closure: Closure) -> int:
        """The same, with pauses."""
        key = (version.stream, closure.hash)
        size = self._sizes.get(key)
        return size or await self._measuring.share(key, lambda: self._measure(key, version, closure))

    async def archive(self, version: Version, closure: Closure) -> bytes:
        """A closure's archive."""
        key = (version.stream, closure.hash)
        return self._tars.get(key) or await self._making.share(key, lambda: self._make(key, version, closure))

    async def _measure(self, key: _Key, version: Version, closure: Closure) -> int:
        return self._sized(key, await self._files(version, closure))

    async def _make(self, key: _Key, version: Version, closure: Closure) -> bytes:
        async with self._seats.of(owner_of(version.stream)[0]):
            files = await self._files(version, closure)
            self._sized(key, files)
            self._packed.value += 1
            archive = await asyncio.to_thread(pack, files)
        return self._tars.keep(key, archive, len(archive))

    async def _files(self, version: Version, closure: Closure) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for number, path in enumerate(closure.index, start=1):
            files[path] = self._versions.content(version, path)
            if number % _SLICE_FILES == 0:
                await asyncio.sleep(0)
        return files

    def _sized(self, key: _Key, files: dict[str, bytes]) -> int:
        return self._sizes.keep(key, tar_size(files), 1)
