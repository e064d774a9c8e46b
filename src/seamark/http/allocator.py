"""glibc's malloc, told that this is a server: memory that a commit or a large body needed will be needed again, so
giving the pages back and faulting them in anew, many times a second, is work for nothing (docs/performance.md)."""

from __future__ import annotations

import ctypes
import sys

from seamark.limits import MIB

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
TRIM_BYTES = 256 * MIB
TOP_PAD_BYTES = 1 * MIB
MMAP_BYTES = 32 * MIB


def keep_memory() -> bool:
    """Whether there was a glibc to tell."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    wishes = ((_M_TRIM_THRESHOLD, TRIM_BYTES), (_M_TOP_PAD, TOP_PAD_BYTES), (_M_MMAP_THRESHOLD, MMAP_BYTES))
    granted = [libc.mallopt(option, value) == 1 for option, value in wishes]
    return all(granted)
