"""What a stream may be told: how durable, how long kept, how replaced."""

from __future__ import annotations

import enum

import msgspec


class Durability(enum.StrEnum):
    """What an acknowledgement means."""

    EPHEMERAL = "ephemeral"  # in memory; the store never sees it
    MEMORY = "memory"  # accepted; written when convenient
    DISK = "disk"  # accepted and on its way to the next commit
    FSYNC = "fsync"  # its commit is durable


class Discard(enum.StrEnum):
    """What a full stream does."""

    OLD = "old"
    REJECT = "reject"


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one stream; zero means "no bound".

    Bounds are applied once to all that a commit brings: first age, then replacement by subject, then the caps. So with
    `latest_per_subject` and a cap, appends that share a commit may lose less than one after the other would, as if they
    were one batch; and a stream that rejects when full counts what the same commit is about to replace.
    """

    durability: Durability = Durability.FSYNC
    cap_records: int = 0
    cap_bytes: int = 0
    ttl_ms: int = 0
    discard: Discard = Discard.OLD
    latest_per_subject: int = 0  # keep the newest N of each subject; older ones are replaced, which is not a loss
    dedupe_window_ms: int = 120_000
    sparse: bool = False  # records will be removed one by one (queues): store each on its own
    indexed: bool = False  # selective readers of a long history are expected: keep columns of subjects and bounds
    extra: bytes = b""  # the surface's own settings, opaque to the log
