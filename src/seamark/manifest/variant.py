"""The values that a flag of each type may have."""

from __future__ import annotations

import math

from seamark import limits
from seamark.manifest.reading import INT64_MAX, INT64_MIN

TYPES = ("boolean", "string", "integer", "float", "json")
_PYTHON = {"boolean": bool, "string": str, "integer": int, "float": float}


def refusal(kind: str, value: object) -> str | None:
    """Why a flag of type `kind` cannot have the value, or None. TOML tells 1 and 1.0 apart, and so do types."""
    if kind != "json" and type(value) is not _PYTHON[kind]:
        return f"does not have the type {kind}"
    if isinstance(value, str | bool):
        return None
    return _unwritable(value)


def _unwritable(value: object) -> str | None:
    """Why JSON cannot hold the value: dates, integers beyond 64 bits, and what is not finite."""
    level = [value]
    for _ in range(limits.VARIANT_DEPTH_MAX):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, bool | str):
                continue
            elif isinstance(item, int):
                if not INT64_MIN <= item <= INT64_MAX:
                    return "has an integer that does not fit 64 bits"
            elif not isinstance(item, float):
                return "has a date or a time"
            elif not math.isfinite(item):
                return "has a number that is not finite"
        if not below:
            return None
        level = below
    return f"is nested deeper than {limits.VARIANT_DEPTH_MAX}"
