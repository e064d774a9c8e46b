"""The answer of one check."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "warn", "fail"]


class Outcome(NamedTuple):
    """What was found, and what to do about it. `fail` means that a server would not start, or would not keep its word."""

    check: str
    level: Level
    found: str
    remedy: str = ""


def ok(check: str, found: str) -> Outcome:
    return Outcome(check, "ok", found)


def warn(check: str, found: str, remedy: str) -> Outcome:
    assert remedy
    return Outcome(check, "warn", found, remedy)


def fail(check: str, found: str, remedy: str) -> Outcome:
    assert remedy
    return Outcome(check, "fail", found, remedy)
