from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# A big block, freed: by default glibc maps it apart and gives it back at once; told to keep memory, it stays resident.
PROGRAM = """
from pathlib import Path
from seamark.http.allocator import keep_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

told = keep_memory() if {keep} else None
before = resident()
del (block := bytearray(b"x") * (16 << 20))[:]
block = None
print(told, resident() - before)
"""


def kept_pages(keep: bool) -> tuple[str, int]:
    run = subprocess.run([sys.executable, "-c", PROGRAM.format(keep=keep)], capture_output=True, text=True, check=True)
    told, pages = run.stdout.split()
    return told, int(pages)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is no glibc to tell")
def test_freed_memory_is_kept() -> None:
    told, kept = kept_pages(True)
    assert told == "True"
    assert kept > kept_pages(False)[1] + 1_000
