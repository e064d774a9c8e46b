"""What is kept about one stream beside its records: settings, marks, losses, counts. One sealed value, changed in the
same write as the records."""

from __future__ import annotations

import msgspec

from seamark.log.seal import Buffer, Damaged, seal, unseal
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Gap, Loss

VERSION = 1


class Meta(msgspec.Struct, array_like=True):
    """The durable image of a stream. Copied to be changed, replaced when the change is committed.

    Seqs between the floor and the head are accounted for: live ones (`count`), voluntarily removed ones (`removed`),
    and those inside a lost range.
    """

    id: int
    instance: str
    settings: StreamSettings
    head: int = 0
    reserved: int = 0  # no seq up to here will be issued by a later process
    earliest: int = 1
    cap_floor: int = 0  # highest seq lost for each reason at the front
    ttl_floor: int = 0
    source_floor: int = 0
    crash_floor: int = 0
    lost: tuple[Gap, ...] = ()  # above the floor, ascending, not touching it
    count: int = 0
    bytes: int = 0
    removed: int = 0
    last_ts: int = 0
    leftovers: bool = False  # chunks below `earliest` are still stored
    version: int = VERSION

    @property
    def evict_floor(self) -> int:
        return 1 + max(self.cap_floor, self.ttl_floor, self.source_floor, self.crash_floor)

    def evict(self, upto: int, count: int, loss: Loss) -> None:
        """The front up to `upto` is lost, `count` live records with it; what had been removed there counts as lost."""
        before = self.evict_floor
        self._raise_floor(upto, loss)
        swallowed = 0
        while self.lost and self.lost[0].last <= upto:
            swallowed += self.lost[0].missed
            self._raise_floor(self.lost[0].last, self.lost[0].loss)  # part of the front now, with its own reason
            self.lost = self.lost[1:]
        self.removed -= self.evict_floor - before - count - swallowed
        self.fold()

    def fold(self) -> None:
        """A lost range that touches the floor becomes part of it."""
        while self.lost and self.lost[0].first <= self.evict_floor:
            self._raise_floor(self.lost[0].last, self.lost[0].loss)
            self.lost = self.lost[1:]
        self.earliest = max(self.earliest, self.evict_floor)

    def lose(self, upto: int, loss: Loss) -> None:
        """The seqs `head + 1 .. upto` were given out or reserved and hold nothing."""
        assert upto > self.head
        first = self.head + 1
        if self.lost and self.lost[-1].last == self.head and self.lost[-1].loss is loss:
            first = self.lost[-1].first
            self.lost = self.lost[:-1]
        self.lost = (*self.lost, Gap(first=first, last=upto, loss=loss))
        self.head = upto
        if self.count == 0:
            self.earliest = upto + 1
        self.fold()

    def _raise_floor(self, seq: int, loss: Loss) -> None:
        if loss is Loss.CAP:
            self.cap_floor = max(self.cap_floor, seq)
        elif loss is Loss.TTL:
            self.ttl_floor = max(self.ttl_floor, seq)
        elif loss is Loss.SOURCE:
            self.source_floor = max(self.source_floor, seq)
        else:
            self.crash_floor = max(self.crash_floor, seq)

    def front_gap(self, first: int) -> Gap | None:
        """The loss at the front for a reader who wants `first` next.

        A reason counts when its floor reaches `first`. Beside a bound of this stream the source's is not told (the
        topics contract says so); a crash always is, because nobody set it.
        """
        floor = self.evict_floor
        if first >= floor:
            return None
        floors = ((Loss.CAP, self.cap_floor), (Loss.TTL, self.ttl_floor), (Loss.CRASH, self.crash_floor))
        reasons = [loss for loss, reached in floors if reached >= first]
        if self.source_floor >= first and reasons in ([], [Loss.CRASH]):
            reasons.append(Loss.SOURCE)
        return Gap(first=first, last=floor - 1, loss=reasons[0] if len(reasons) == 1 else Loss.MIXED)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Meta)


def encode(key: bytes, meta: Meta) -> bytes:
    return seal(key, _encoder.encode(meta))


def decode(key: bytes, value: Buffer) -> Meta:
    """Raises Damaged."""
    try:
        meta = _decoder.decode(unseal(key, value))
    except msgspec.MsgspecError as error:
        raise Damaged(str(error)) from error
    if meta.version != VERSION:
        raise Damaged(f"format version {meta.version}")
    return meta
