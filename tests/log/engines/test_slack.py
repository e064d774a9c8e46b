from __future__ import annotations

from pathlib import Path

import lmdb

from seamark.log.engines.directory import structure_problems


def test_a_value_that_shrank_within_one_transaction_is_no_damage(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path)) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"x" * 12_000)
        txn.put(b"key", b"y" * 5_000)
    assert structure_problems(tmp_path / "data.mdb") == []


def test_damage_beside_it_is_still_told(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path)) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"x" * 12_000)
        txn.put(b"key", b"y" * 5_000)
        txn.put(b"other", b"z" * 12_000)
    data = tmp_path / "data.mdb"
    raw = bytearray(data.read_bytes())
    place = raw.index(b"z" * 4_000) // 4_096 * 4_096  # the page on which the other run begins
    raw[place + 12 : place + 16] = (1).to_bytes(4, "little")  # says that it is one page long
    data.write_bytes(raw)
    assert structure_problems(data) != []
