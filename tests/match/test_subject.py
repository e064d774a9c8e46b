from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadFilter
from seamark.match.subject import (
    Pattern,
    Subject,
    covers,
    display,
    encode_token,
    format_topic,
    parse_pattern,
    parse_topic,
    pattern_of,
)

TOKENS = st.text(alphabet="ab.*>%25EA é/", max_size=6)


@pytest.mark.parametrize(
    ("token", "wire"),
    [("a.b", "a%2Eb"), ("*", "%2A"), (">", "%3E"), ("50%", "50%25"), ("a b/é", "a b/é"), ("%2E", "%252E"), ("", "")],
)
def test_only_four_characters_are_escaped(token: str, wire: str) -> None:
    assert encode_token(token) == wire
    assert parse_topic(wire) == (token,)


@given(st.lists(TOKENS, min_size=1, max_size=5))
def test_a_topic_reads_back(tokens: list[str]) -> None:
    wire = format_topic(tokens)
    assert parse_topic(wire) == tuple(tokens)
    assert wire.count(".") == len(tokens) - 1


@pytest.mark.parametrize("wire", ["%", "a%", "a%2", "%2x", "%41", "%2e", "%%25", "a.%zz", "%\n5"])
def test_any_other_escape_is_an_error(wire: str) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_topic(wire)
    assert caught.value.fields == {"field": "topic"}


def test_a_pattern_has_wildcards() -> None:
    assert parse_pattern("polygon.*.1200") == ("polygon", None, "1200")
    assert pattern_of(["a", "*", "**"]) == ("a", None, "**")
    assert display(("polygon", None, "a.b")) == "polygon.*.a.b"


@pytest.mark.parametrize(
    ("pattern", "subject", "answer"),
    [
        (("a", "b"), ("a", "b"), True),
        (("a", None), ("a", "b"), True),
        (("a", None), ("a", ""), True),
        (("a", None), ("a", "*"), True),
        (("a", None), ("a",), False),
        (("a", None), ("a", "b", "c"), False),
        (("a", "B"), ("a", "b"), False),
        (("a", "\u00e9"), ("a", "e\u0301"), False),  # no normalisation
        ((None,), None, False),
        ((), (), True),
        ((), None, False),
    ],
)
def test_covers(pattern: Pattern, subject: Subject | None, answer: bool) -> None:
    assert covers(pattern, subject) is answer
