"""Contract: the small values beside the streams, moved by the same commit as an append."""

from __future__ import annotations

import pytest

from seamark.errors import BadInput, HeadConflict, StreamNotFound
from seamark.log.protocol import Append, Log, Put, Shelf
from seamark.testing.contract.base import FSYNC, ContractBase, drafts, needs, write
from seamark.testing.rig import LogRig

KEY_BYTES_MAX = 400  # what `Put` promises


def _shelf(rig: LogRig) -> Shelf:
    needs(rig.has_shelf, "has_shelf")
    assert isinstance(rig.log, Shelf)
    return rig.log


async def _put(log: Log, *puts: tuple[str, bytes, bytes | None]) -> None:
    await log.append(Append(puts=[Put(*put) for put in puts]))


class ShelfContract(ContractBase):
    """`Append.puts` and the capability Shelf."""

    async def test_values_are_put_fetched_and_removed(self, rig: LogRig) -> None:
        shelf = _shelf(rig)
        assert shelf.fetch("space", b"k") is None
        await _put(rig.log, ("space", b"k", b"v1"), ("space", b"empty", b""), ("other", b"k", b"v2"))
        assert (shelf.fetch("space", b"k"), shelf.fetch("other", b"k"), shelf.fetch("space", b"empty")) == (
            b"v1",
            b"v2",
            b"",
        )
        await _put(rig.log, ("space", b"k", b"v3"), ("other", b"k", None), ("other", b"absent", None))
        assert (shelf.fetch("space", b"k"), shelf.fetch("other", b"k")) == (b"v3", None)
        await _put(rig.log, ("space", b"k", b"lost"), ("space", b"k", b"last"))
        assert shelf.fetch("space", b"k") == b"last"

    async def test_scans_go_in_byte_order_of_one_space(self, rig: LogRig) -> None:
        shelf = _shelf(rig)
        keys = [b"a", b"a\x00", b"a\xff", b"b", b"\xff", b"\xff\xff", b"", b"k" * KEY_BYTES_MAX]
        keys.remove(b"")
        await _put(rig.log, *(("s", key, key) for key in keys), ("s2", b"a", b"not here"), ("r", b"z", b"nor here"))
        assert list(shelf.scan("s")) == [(key, key) for key in sorted(keys)]
        assert [key for key, _ in shelf.scan("s", b"a")] == [b"a", b"a\x00", b"a\xff"]
        assert [key for key, _ in shelf.scan("s", b"\xff")] == [b"\xff", b"\xff\xff"]
        assert list(shelf.scan("nothing")) == []

    async def test_large_values_and_long_keys_fit(self, rig: LogRig) -> None:
        shelf = _shelf(rig)
        large = bytes(range(256)) * 4_096
        await _put(rig.log, ("s", b"k" * KEY_BYTES_MAX, large))
        assert shelf.fetch("s", b"k" * KEY_BYTES_MAX) == large
        with pytest.raises(BadInput):
            await _put(rig.log, ("s", b"k" * (KEY_BYTES_MAX + 1), b"v"))

    async def test_puts_share_the_fate_of_their_append(self, rig: LogRig) -> None:
        shelf, log = _shelf(rig), rig.log
        await log.append(Append(stream="s", drafts=drafts("a"), create=FSYNC, key="k", puts=[Put("p", b"at", b"1")]))
        assert shelf.fetch("p", b"at") == b"1"
        with pytest.raises(HeadConflict):
            await log.append(Append(stream="s", drafts=drafts("b"), expect_head=7, puts=[Put("p", b"at", b"2")]))
        with pytest.raises(StreamNotFound):
            await log.append(Append(stream="absent", drafts=drafts("b"), puts=[Put("p", b"at", b"3")]))
        repeat = await log.append(Append(stream="s", drafts=drafts("a"), key="k", puts=[Put("p", b"at", b"4")]))
        assert repeat.deduped
        assert shelf.fetch("p", b"at") == b"1"

    async def test_values_outlive_the_process_together_with_their_records(self, rig: LogRig) -> None:
        _shelf(rig)
        needs(rig.keeps_records, "keeps_records")
        await rig.log.append(Append(stream="s", drafts=drafts("a"), create=FSYNC, puts=[Put("p", b"at", b"1")]))
        await _put(rig.log, ("p", b"alone", b"2"), ("p", b"gone", b"3"))
        await _put(rig.log, ("p", b"gone", None))
        await rig.reopen()
        assert list(_shelf(rig).scan("p")) == [(b"alone", b"2"), (b"at", b"1")]
        await write(rig.log, "s", "b")
        await rig.log.drop("s")
        assert _shelf(rig).fetch("p", b"at") == b"1", "a dropped stream takes no value with it"
