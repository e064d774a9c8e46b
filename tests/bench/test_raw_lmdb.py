from __future__ import annotations

from pathlib import Path

from seamark.bench.raw_lmdb import RawLmdb


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    raw = RawLmdb(tmp_path / "raw")
    raw.append(1_000)
    assert raw.append_for(0.05, 100) > 0
    assert raw.read_for(0.05, 256) > 0
    raw.close()
