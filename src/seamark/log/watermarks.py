"""Where a stream stands, and what it has lost. Pure arithmetic on values."""

from __future__ import annotations

import enum

import msgspec


class Loss(enum.StrEnum):
    """Why records are gone that nobody asked to remove."""

    CAP = "cap"
    TTL = "ttl"
    MIXED = "mixed"  # more than one of the others; a bound of the stream's own speaks for SOURCE
    SOURCE = "source"  # a derived stream's source had lost them before they were forwarded
    CRASH = "crash"  # acknowledged without a durable commit (class disk or memory), then the machine stopped
    RECREATED = "recreated"  # the cursor belongs to an earlier instance of the stream


class Gap(msgspec.Struct, frozen=True):
    """Seqs `first..last` are lost, both inclusive. For RECREATED the range may be empty (`last == 0`)."""

    first: int
    last: int
    loss: Loss

    @property
    def missed(self) -> int:
        return self.last - self.first + 1


class Watermarks(msgspec.Struct, frozen=True):
    """The four marks of one stream instance.

    `head`        last seq given out and visible (0: none yet)
    `synced`      durable up to here; `synced <= head`
    `evict_floor` first seq not lost involuntarily at the front
    `earliest`    first live seq, or head + 1 when there is none
    Always `1 <= evict_floor <= earliest <= head + 1`, and the last two only grow while the instance lives.
    """

    head: int = 0
    synced: int = 0
    evict_floor: int = 1
    earliest: int = 1


class Cursor(msgspec.Struct, frozen=True):
    """A reader's place: it has seen everything up to and including `seq` of `instance` (None: whichever there is)."""

    seq: int = 0
    instance: str | None = None
