"""What a flag answers, with everything that there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SDK_DEFAULT = "sdk_default"

ErrorCode: TypeAlias = Literal[
    "PROVIDER_NOT_READY",  # nothing has been verified yet
    "FLAG_NOT_FOUND",
    "TYPE_MISMATCH",
    "UNKNOWN_ENVIRONMENT",
    "UNKNOWN_NAMESPACE",  # not subscribed to, or not said which of several
    "INVALID_CONTEXT",
]


@dataclass(frozen=True, slots=True)
class Details:
    """`value` is the default that was given, if there is an error code. `stale`: the server may have something newer."""

    flag: str
    value: object
    namespace: str
    environment: str
    variant: str | None = None
    rule_matched: str | None = None  # `rule:<i>` or `default`
    reason: str = SDK_DEFAULT  # or `matched_rule`, `fallthrough`
    error_code: ErrorCode | None = None
    error_message: str | None = None
    version: int | None = None
    closure_hash: str | None = None
    stale: bool = False


def copied(value: object) -> object:
    """A JSON value that the receiver may change: the one in the manifest is everybody's."""
    if isinstance(value, dict):
        return {key: copied(below) for key, below in value.items()}
    if isinstance(value, list):
        return [copied(below) for below in value]
    return value
