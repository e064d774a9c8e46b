"""What stands in the `Authorization` header of the notify contract."""

from __future__ import annotations

import pytest

from seamark.access.bearer import BASIC, BEARER, Presented, presented


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"Bearer abc", Presented("bearer", "abc", b"Bearer abc")),
        (b"bearer  abc ", Presented("bearer", "abc", b"bearer  abc ")),
        (b"Basic YTpi", Presented("basic", "YTpi", b"Basic YTpi")),
        (b"Digest abc", None),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"abc", None),
        (b"", None),
        (b"Bearer \xe4", None),
        (b"\xe4 abc", None),
    ],
)
def test_what_counts(value: bytes, found: Presented | None) -> None:
    assert presented([(b"host", b"x"), (b"authorization", value)], (BEARER, BASIC)) == found


def test_what_counts_for_some_does_not_for_others() -> None:
    assert presented([(b"authorization", b"Basic YTpi")], (BEARER,)) is None
    assert presented([], (BEARER,)) is None


def test_of_two_headers_none_counts() -> None:
    headers = [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")]
    assert presented(headers, (BEARER,)) is None
