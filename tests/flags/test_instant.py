from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import NS_PER_MS
from seamark.errors import BadRequest
from seamark.flags import instant


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_699_999_999_999_999_999, "2023-11-14T22:13:19.999Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
    ],
)
def test_written(ns: int, text: str) -> None:
    assert instant.text(ns) == text


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:20Z",
        "2023-11-14t22:13:20z",
        "2023-11-14T22:13:20.000000000Z",
        "2023-11-14T23:13:20+01:00",
        "2023-11-14T13:43:20-08:30",
    ],
)
def test_one_moment_in_many_forms(text: str) -> None:
    assert instant.parse(text, name="expires_at") == 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14 22:13:20Z",
        "2023-11-14T22:13Z",
        "2023-11-14T24:13:20Z",
        "2023-11-31T22:13:20Z",
        "2023-11-14T22:13:60Z",
        "2023-11-14T22:13:20+99:00",
        "20231114T221320Z",
        "２023-11-14T22:13:20Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(BadRequest, match="expires_at"):
        instant.parse(text, name="expires_at")


@given(st.integers(0, 250_000_000_000_000))
def test_what_is_written_is_read(ms: int) -> None:
    assert instant.parse(instant.text(ms * NS_PER_MS), name="x") == ms * NS_PER_MS
