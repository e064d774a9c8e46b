from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadFilter
from seamark.notify.topic import decode, encode, shown, stream_of

TOKENS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [".", "*", "%2E", "%", ">", ""]
)


@pytest.mark.parametrize(
    ("base", "values", "topic"),
    [
        ("diss", ("FOO", "E1", "od"), "diss.FOO.E1.od"),
        ("test", ("1.2", "3*4"), "test.1%2E2.3%2A4"),
        ("p", ("a>b", "p%q"), "p.a%3Eb.p%25q"),
        ("d.v2", ("1%2E",), "d%2Ev2.1%252E"),
        ("t", ("a b/c", "Zürich", "日本"), "t.a b/c.Zürich.日本"),
        ("mars", (), "mars"),
        ("mars", ("",), "mars."),
    ],
)
def test_topics(base: str, values: tuple[str, ...], topic: str) -> None:
    assert encode(base, values) == topic
    assert decode(topic) == (base, values)


@given(TOKENS, st.lists(TOKENS, max_size=5))
def test_what_is_encoded_is_decoded(base: str, values: list[str]) -> None:
    topic = encode(base, values)
    assert decode(topic) == (base, tuple(values))
    assert topic.count(".") == len(values)
    assert not set("*>") & set(topic)


@pytest.mark.parametrize("topic", ["a.%", "a.%2", "a.%2G", "abc%ZZ", "a.b%%25"])
def test_malformed_escapes(topic: str) -> None:
    with pytest.raises(BadFilter):
        decode(topic)


def test_what_people_see() -> None:
    assert shown("polygon", (None, "1200")) == "polygon.*.1200"
    assert shown("test", ("1.2", "x%y")) == "test.1.2.x%y"
    assert shown("mars", ()) == "mars"
    assert stream_of("mars") == "notify:mars"
