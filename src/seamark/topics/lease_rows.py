"""Leases that outlive the process: one small value on the shelf for each job that is not fresh."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark.log.protocol import Put, Shelf
from seamark.topics.leases import Lease, Leases

_SPACE = "queue-leases"  # <stream> NUL <seq>: a row
_SEQ_BYTES = 8


class _Row(msgspec.Struct, array_like=True):
    """A job without `node` is to be had again, at once or from `until` on."""

    instance: str
    deliveries: int
    node: str | None = None
    token: int = 0
    deadline: int = 0
    until: int | None = None


_ROWS = msgspec.json.Decoder(_Row)
_encode = msgspec.json.Encoder().encode


def rows_of(leases: Leases, stream: str, instance: str, seqs: Iterable[int]) -> list[Put]:
    """What to put so that the shelf knows of these jobs what the table does."""
    return [Put(_SPACE, _key(stream, seq), _row(leases, instance, seq)) for seq in seqs]


def restore(shelf: Shelf, stream: str, instance: str) -> Leases:
    """The table as the last process left it. The seqs in it need not be in the log any more."""
    leases = Leases()
    for key, value in shelf.scan(_SPACE, _prefix(stream)):
        row = _ROWS.decode(value)
        if row.instance == instance:
            lease = None if row.node is None else Lease(row.node, row.token, row.deadline)
            leases.restore(int.from_bytes(key[-_SEQ_BYTES:]), row.deliveries, lease, row.until)
    return leases


def forget(shelf: Shelf, stream: str) -> list[Put]:
    """What to put when the queue is gone, or does not want its leases kept any more."""
    return [Put(_SPACE, key, None) for key, _ in shelf.scan(_SPACE, _prefix(stream))]


def _row(leases: Leases, instance: str, seq: int) -> bytes | None:
    if seq not in leases:
        return None
    row = _Row(instance, leases.deliveries(seq), until=leases.delayed_until(seq))
    lease = leases.lease(seq)
    if lease is not None and not lease.owner:  # a connection does not outlive the process, nor does what it holds
        row.node, row.token, row.deadline = lease.node, lease.token, lease.deadline
    return _encode(row)


def _key(stream: str, seq: int) -> bytes:
    return _prefix(stream) + seq.to_bytes(_SEQ_BYTES)


def _prefix(stream: str) -> bytes:
    return stream.encode() + b"\0"
