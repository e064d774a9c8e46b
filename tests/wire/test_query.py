from __future__ import annotations

import pytest

from seamark import limits
from seamark.errors import BadRequest
from seamark.wire.query import number, parse

NAMES = frozenset({"after", "limit"})


def test_reads_percent_encoding() -> None:
    assert parse(b"after=%31&limit=+x", NAMES) == {"after": "1", "limit": " x"}
    assert parse(b"", NAMES) == {}


@pytest.mark.parametrize(
    "query", [b"afer=1", b"after=1&after=2", b"after=%ff", b"after=\xff", b"&".join([b"after=1"] * 2_000)]
)
def test_refuses(query: bytes) -> None:
    with pytest.raises(BadRequest):
        parse(query, NAMES)


def test_numbers() -> None:
    assert number({}, "after", 7) == 7
    assert number({"after": "007"}, "after", 0) == 7
    assert number({"after": str(limits.SEQ_MAX)}, "after", 0) == limits.SEQ_MAX


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1.0", "1e3", "٣", "9" * 19, "9" * 5_000, "x"])
def test_not_numbers(text: str) -> None:
    with pytest.raises(BadRequest):
        number({"after": text}, "after", 0)
