"""Room ahead of the store's end that the file system has already found. A sync of pages that the file did not have
before makes the file system find room and journal that; of pages that it had, it only writes. For small commits that is
a third of the sync (docs/decisions/0009)."""

from __future__ import annotations

import os
from pathlib import Path

from seamark import limits

_LOW_BYTES = limits.HEADROOM_BYTES // 4


class Headroom:
    """Zeros behind everything that was ever written. Only the owner of the store may call it, between two writes."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._fd = -1
        self._end = 0
        self._upto = 0  # the file has its blocks up to here, as far as we know

    def keep(self, end: int) -> None:
        """The store ends at `end` now. Writes ahead when little room is left, unless the store is small, or grows by so
        much at a time that writing twice would cost more than it saves."""
        grown, self._end = end - self._end, end
        self._upto = max(self._upto, end)
        if self._upto - end < _LOW_BYTES and grown < _LOW_BYTES and end >= limits.HEADROOM_BYTES:
            self._write()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self) -> None:
        upto = self._end + limits.HEADROOM_BYTES
        try:
            if self._fd < 0:
                self._fd = os.open(self._data, os.O_WRONLY | os.O_CLOEXEC)
            os.pwrite(self._fd, bytes(upto - self._upto), self._upto)
            os.fdatasync(self._fd)
        except OSError:
            pass  # it was only to save time; the store's own writes say what is wrong, and the next try is a while off
        self._upto = upto
