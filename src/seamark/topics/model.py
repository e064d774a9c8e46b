"""What a topic is: its name, its settings on the wire, and what the log is told of them."""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Annotated

import msgspec

from seamark import limits
from seamark.errors import BadInput
from seamark.log.settings import Discard, Durability, StreamSettings

PREFIX = "topics:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")
_NAME_IS = "letters, digits and ._:- with a letter or digit first, at most 255"

U64_MAX = 2**64 - 1
U64 = Annotated[int, msgspec.Meta(ge=0)]  # its upper bound is beyond what msgspec can check: see `check_u64`
U32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
I32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

LEASE_MS_MIN, LEASE_MS_MAX = 100, 86_400_000
CLAIM_JITTER_MS_MAX = 5_000


class TopicType(enum.StrEnum):
    LOG = "log"
    QUEUE = "queue"


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a topic. A client that names only some of them gets the defaults for the rest, also when the topic
    exists: a configuration is replaced, never merged. `durable` and `durability` agree once resolved."""

    type: TopicType = TopicType.LOG
    ttl_ms: U64 = 0
    cap_records: U64 = 0
    cap_bytes: U64 = 0
    discard: Discard = Discard.OLD
    durable: bool = False
    durability: Durability | None = None  # None only until resolved
    priority: I32 | None = None
    auto_priority: bool = True
    auto_create: bool = True
    idempotency_window_ms: U64 = 120_000
    dedupe_node: bool = True
    lease_ms: U64 = 30_000
    claim_jitter_ms: U64 = 0
    max_deliveries: U64 = 0
    dead_letter: str | None = None
    leases_durable: bool = False

    def __post_init__(self) -> None:
        for name in _WIDE:
            check_u64(getattr(self, name), name)

    @property
    def is_queue(self) -> bool:
        return self.type is TopicType.QUEUE


_WIDE = (
    "ttl_ms", "cap_records", "cap_bytes", "idempotency_window_ms", "lease_ms", "claim_jitter_ms", "max_deliveries",
)  # fmt: skip
_STORED = msgspec.json.Decoder(TopicConfig)
_encode = msgspec.json.Encoder().encode


def check_u64(value: int, name: str) -> None:
    """Raises ValueError, which the decoder turns into its own error when a struct checks itself with this."""
    if value > U64_MAX:
        raise ValueError(f"{name} is more than 64 bits hold")


def stream_of(name: str) -> str:
    """The log's name for a topic. Any text will do: a name that cannot be given to a topic is that of none."""
    return PREFIX + name


def topic_of(stream: str) -> str:
    return stream.removeprefix(PREFIX)


@lru_cache(limits.ROUTE_CACHE_MAX)
def is_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def check_name(name: str, what: str = "a topic name") -> None:
    """Asked where a topic would be made, and nowhere else. Raises BadInput."""
    if not is_name(name):
        raise BadInput(f"{name!r} is not {what}: {_NAME_IS}")


def resolved(config: TopicConfig, name: str) -> TopicConfig:
    """The configuration as topic `name` would have it. Raises BadInput."""
    if config.dead_letter is not None:
        check_name(config.dead_letter, "a name for a dead letter topic")
        if config.is_queue and config.dead_letter == name:
            raise BadInput("the dead letter topic of a queue is another topic")
    durability = config.durability
    if durability is None:
        durability = Durability.FSYNC if config.durable else Durability.DISK
    return msgspec.structs.replace(
        config,
        durability=durability,
        durable=durability is Durability.FSYNC,
        lease_ms=min(max(config.lease_ms, LEASE_MS_MIN), LEASE_MS_MAX),
        claim_jitter_ms=min(config.claim_jitter_ms, CLAIM_JITTER_MS_MAX),
    )


def settings_of(config: TopicConfig) -> StreamSettings:
    """What the log is told of a resolved configuration. It keeps the whole for us; what is more than it can count to is no
    bound at all."""
    assert config.durability is not None, "the configuration is resolved"
    return StreamSettings(
        durability=config.durability,
        cap_records=min(config.cap_records, limits.SEQ_MAX),
        cap_bytes=min(config.cap_bytes, limits.SEQ_MAX),
        ttl_ms=min(config.ttl_ms, limits.SPAN_MS_MAX),
        discard=config.discard,
        dedupe_window_ms=min(config.idempotency_window_ms, limits.SPAN_MS_MAX),
        sparse=config.is_queue,
        extra=_encode(config),
    )


def config_of(settings: StreamSettings) -> TopicConfig:
    """The resolved configuration that `settings_of` was given."""
    return _stored(settings.extra)


@lru_cache(limits.ROUTE_CACHE_MAX)
def _stored(extra: bytes) -> TopicConfig:
    return _STORED.decode(extra)


DEFAULT_CONFIG = resolved(TopicConfig(), "")
DEFAULT_SETTINGS = settings_of(DEFAULT_CONFIG)
