"""Where a key may stand in a request, and which one counts."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.access.presented import presented_key
from seamark.errors import Unauthenticated


def header(value: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"authorization", value)]


def test_the_header_is_trimmed_and_beats_the_query() -> None:
    assert presented_key(header(b"Bearer  k ")) == b"k"
    assert presented_key(header(b"Bearer k"), b"token=other", in_query=True) == b"k"
    with pytest.raises(Unauthenticated):
        presented_key(header(b"Basic k"), b"token=k", in_query=True)


def test_two_headers_are_none() -> None:
    with pytest.raises(Unauthenticated, match="twice"):
        presented_key([*header(b"Bearer k"), *header(b"Bearer k")])


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (b"token=k", b"k"),
        (b"a=1&token=k&token=other", b"k"),
        (b"token=&token=k", b""),
        (b"token=a+b%2Bc%26", b"a b+c&"),
        (b"%74oken=k", b"k"),
        (b"token=%zz", b"%zz"),
        (b"token&token=k", b"k"),
    ],
)
def test_the_first_token_of_a_query_is_decoded_as_a_form(query: bytes, key: bytes) -> None:
    assert presented_key([], query, in_query=True) == key


@pytest.mark.parametrize("query", [b"", b"tokens=k", b"Token=k", b"token", b"x=token=k"])
def test_no_token_is_no_key(query: bytes) -> None:
    with pytest.raises(Unauthenticated):
        presented_key([], query, in_query=True)


def test_a_token_counts_for_nothing_where_it_is_not_allowed() -> None:
    with pytest.raises(Unauthenticated):
        presented_key([], b"token=k")


@given(st.text(), st.lists(st.tuples(st.text().filter(lambda name: name != "token"), st.text())))
def test_whatever_a_form_encodes_comes_back(key: str, before: list[tuple[str, str]]) -> None:
    query = urlencode([*before, ("token", key)], errors="surrogatepass").encode()
    assert presented_key([], query, in_query=True) == key.encode(errors="surrogatepass")
