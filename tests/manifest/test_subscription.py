from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadInput, MalformedList, TooManyFlags
from seamark.manifest.subscription import EVERY_FLAG, FlagList, from_token, parse_flag_list

keys = st.from_regex(r"[a-z][a-z0-9_-]{0,62}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "canonical", "token"),
    [
        ("*", "*", "Kg"),
        ("checkout-redesign", "checkout-redesign", "Y2hlY2tvdXQtcmVkZXNpZ24"),
        ("a,b", "a,b", "YSxi"),
        ("b,a,b", "a,b", "YSxi"),
        ("checkout-redesign,employees", "checkout-redesign,employees", "Y2hlY2tvdXQtcmVkZXNpZ24sZW1wbG95ZWVz"),
        ("a_b,a-b,ab", "a-b,a_b,ab", "YS1iLGFfYixhYg"),
    ],
)
def test_a_list_and_its_forms(text: str, canonical: str, token: str) -> None:
    wanted = parse_flag_list(text)
    assert (wanted.canonical, wanted.token) == (canonical, token)
    assert from_token(token) == wanted


def test_the_star_names_no_key() -> None:
    assert parse_flag_list("*") is EVERY_FLAG
    assert EVERY_FLAG.keys is None


@pytest.mark.parametrize(
    "text",
    ["", ",", "a,", ",a", "a,,b", "*,a", "a,*", "**", " a", "a b", "A", "1a", "-a", "a.b", "a/b", "a" * 64, "é", "a\n"],
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(MalformedList):
        parse_flag_list(text)


def test_64_flags_and_no_more() -> None:
    names = [f"f{number}" for number in range(65)]
    assert len(parse_flag_list(",".join(names[:64])).keys or ()) == 64
    assert len(parse_flag_list(",".join(names[:64] * 2)).keys or ()) == 64
    with pytest.raises(TooManyFlags) as caught:
        parse_flag_list(",".join(names))
    assert caught.value.fields == {"max": 64}


@pytest.mark.parametrize(
    "token",
    ["", "Kg==", "Kg=", "Kh", "K", "YSxi=", "YS xi", "YSxi\n", "YSx", "-_-_", "w6k", "é", "Kg.", "K+g", "YSws", "LCws"],
)
def test_what_is_no_list_in_a_url(token: str) -> None:
    with pytest.raises(MalformedList):
        from_token(token)


def test_a_list_in_a_url_need_not_be_canonical() -> None:
    token = urlsafe_b64encode(b"b,a,a").rstrip(b"=").decode()
    assert from_token(token) == FlagList.of(["a", "b"])


def test_a_list_in_a_url_has_the_same_bound() -> None:
    token = urlsafe_b64encode(",".join(f"f{number}" for number in range(65)).encode()).rstrip(b"=").decode()
    with pytest.raises(TooManyFlags):
        from_token(token)


@given(st.lists(keys, min_size=1, max_size=64))
def test_every_order_is_the_same_list(names: list[str]) -> None:
    wanted = parse_flag_list(",".join(names))
    assert wanted == parse_flag_list(",".join(reversed(names))) == from_token(wanted.token)
    assert hash(wanted) == hash(parse_flag_list(wanted.canonical))
    assert wanted.keys == tuple(sorted(set(names), key=str.encode))


@given(st.text())
def test_any_text_is_a_list_or_refused(text: str) -> None:
    for parse in (parse_flag_list, from_token):
        try:
            assert parse(text).canonical
        except BadInput:
            pass
