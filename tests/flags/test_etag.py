from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.flags.etag import matches
from tests.flags.stage import Request

TAG = b'"v42-sha256:ae5b"'


def asked(*values: str) -> Request:
    request = Request("", None, {}, {})
    request.headers = [(b"if-none-match", value.encode("latin-1")) for value in values]
    return request


@pytest.mark.parametrize(
    ("values", "same"),
    [
        ([], False),
        ([""], False),
        (['"v42-sha256:ae5b"'], True),
        (['W/"v42-sha256:ae5b"'], True),
        (["*"], True),
        ([" * "], True),
        (['"a", "v42-sha256:ae5b"'], True),
        (['"a","b"', '"v42-sha256:ae5b"'], True),
        (['  W/"a" ,\t"v42-sha256:ae5b"  '], True),
        (['"a,b", "v42-sha256:ae5b"'], True),
        ([', "v42-sha256:ae5b"'], True),
        (['"a",, "v42-sha256:ae5b"'], True),
        (['"v4-sha256:ae5b"'], False),
        (["v42-sha256:ae5b"], False),
        (['w/"v42-sha256:ae5b"'], False),
        (['"*"'], False),
        (['*, "a"'], False),
        (['"a"; "v42-sha256:ae5b"'], False),
        (['nonsense, "v42-sha256:ae5b"'], False),
        (['"v42-sha256:ae5b'], False),
    ],
)
def test_what_a_client_has(values: list[str], same: bool) -> None:
    assert matches(asked(*values), TAG) is same


@given(st.lists(st.text(st.characters(codec="latin-1")), max_size=3))
def test_any_header_can_be_read(values: list[str]) -> None:
    assert matches(asked(*values), TAG) in {True, False}
