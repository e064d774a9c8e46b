"""Versions by Semantic Versioning 2.0.0, as keys that compare the way their precedence says."""

from __future__ import annotations

import re
from typing import TypeAlias

from seamark import limits

_NUMBER = r"0|[1-9][0-9]*"
_PART = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)

_Number: TypeAlias = tuple[int, str]  # how many digits, and which: as good as the number, of any size
Precedence: TypeAlias = tuple[_Number, _Number, _Number, tuple[tuple[int, int, str], ...]]

_RELEASE = ((2, 0, ""),)  # after every pre-release of the same numbers
_NUMERIC, _TEXT = 0, 1


def precedence(text: str) -> Precedence | None:
    """What to compare a version by; equal for two that differ in build metadata only. None where `text` is no version."""
    if len(text) > limits.SEMVER_CHARACTERS_MAX:
        return None
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, pre = found.groups()
    return (
        _number(major),
        _number(minor),
        _number(patch),
        _RELEASE if pre is None else tuple(map(_part, pre.split("."))),
    )


def _number(digits: str) -> _Number:
    return len(digits), digits


def _part(part: str) -> tuple[int, int, str]:
    """Numbers come before words; numbers by size, words letter by letter."""
    return (_NUMERIC, len(part), part) if part.isdigit() else (_TEXT, 0, part)
