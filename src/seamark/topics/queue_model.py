"""What is said to a queue and what it answers, on the wire."""

from __future__ import annotations

import re

import msgspec

from seamark import limits
from seamark.clock import NS_PER_MS
from seamark.errors import BadInput, BatchTooLarge
from seamark.topics.model import U32, U64, check_u64
from seamark.topics.queue import Job
from seamark.topics.render import ENCODER, one_line

_TOKEN = re.compile(r"lease_([0-9a-f]{1,16})")


class ClaimBody(msgspec.Struct, gc=False):
    """A number beyond its range is moved into it."""

    node: str
    max: U32 = 1
    lease_ms: U64 | None = None

    def __post_init__(self) -> None:
        check_u64(self.lease_ms or 0, "lease_ms")


class HeldBody(msgspec.Struct, gc=False):
    """Jobs that `node` says it holds. An empty lease id asks for no particular lease."""

    node: str
    seqs: list[U64]
    lease_ids: list[str] | None = None

    def __post_init__(self) -> None:
        for seq in self.seqs:
            check_u64(seq, "seqs")


class NackBody(HeldBody, gc=False):
    delay_ms: U64 = 0

    def __post_init__(self) -> None:
        HeldBody.__post_init__(self)
        check_u64(self.delay_ms, "delay_ms")


class ExtendBody(HeldBody, gc=False, kw_only=True):
    lease_ms: U64

    def __post_init__(self) -> None:
        HeldBody.__post_init__(self)
        check_u64(self.lease_ms, "lease_ms")


def checked_node(node: str) -> str:
    """Raises BadInput."""
    if not node:
        raise BadInput("node says who holds the jobs and is not empty")
    if len(node.encode()) > limits.NODE_BYTES_MAX:
        raise BadInput(f"node has at most {limits.NODE_BYTES_MAX} bytes")
    return node


def jobs_wanted(number: int) -> int:
    """How many jobs a claim means by `max`."""
    return min(number or 1, limits.CLAIM_JOBS_MAX)


def tokens_of(body: HeldBody) -> list[int | None]:
    """One for each seq; None where no particular lease is asked for. Raises BadInput, BatchTooLarge."""
    count = len(body.seqs)
    if count > limits.CLAIM_JOBS_MAX:
        raise BatchTooLarge(
            f"{count} seqs in one call; the most is {limits.CLAIM_JOBS_MAX}", seqs=count, max=limits.CLAIM_JOBS_MAX
        )
    if body.lease_ids is None:
        return [None] * count
    if len(body.lease_ids) != count:
        raise BadInput(f"{len(body.lease_ids)} lease_ids for {count} seqs: there must be one for each")
    return [_token(lease_id) for lease_id in body.lease_ids]


def lease_id(token: int) -> str:
    return f"lease_{token:016x}"


def job_fields(job: Job) -> bytes:
    """The members of a claimed job's object, without its braces."""
    record, lease = job.record, job.lease
    parts = [
        b'"$seq":%d,"lease_id":"%b","deadline":%d,"$ts":%d'
        % (record.seq, lease_id(lease.token).encode(), lease.deadline, record.ts // NS_PER_MS)
    ]
    if record.tag is not None:
        parts.append(b'"$tag":' + ENCODER.encode(record.tag))
    parts.append(b'"deliveries":%d,"data":%b' % (job.deliveries, one_line(record.payload)))
    if record.meta is not None:
        parts.append(b'"meta":' + one_line(record.meta))
    return b",".join(parts)


def claimed_json(name: str, jobs: list[Job], ready: int, seconds: float) -> bytes:
    """The answer of a claim. Names of topics that exist need no escaping."""
    claimed = b",".join(b"{%b}" % job_fields(job) for job in jobs)
    return b'{"topic":"%b","claimed":[%b],"count":%d,"ready":%d,"performance":{"server_total_ms":%.3f}}' % (
        name.encode(), claimed, len(jobs), ready, seconds * 1_000,
    )  # fmt: skip


def job_event(name: str, job: Job) -> bytes:
    """A job on a work stream. Its id is no place to resume from: what is not acknowledged comes again by itself."""
    return b'id: %d\nevent: job\ndata: {"topic":"%b",%b}\n\n' % (job.record.seq, name.encode(), job_fields(job))


def _token(text: str) -> int | None:
    if not text:
        return None
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} is not a lease id")
    return int(match[1], 16)
