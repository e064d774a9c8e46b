from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.limits import SEMVER_CHARACTERS_MAX
from seamark.manifest.semver import precedence

# From section 11 of Semantic Versioning 2.0.0, and numbers that do not sort as text.
ASCENDING = [
    "0.0.0",
    "0.0.9",
    "0.0.10",
    "0.2.0",
    "1.0.0-0",
    "1.0.0-9",
    "1.0.0-10",
    "1.0.0-10.a",
    "1.0.0--",
    "1.0.0-A",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.1.0",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "2.0.0",
    "2.1.0",
    "2.1.1",
    "2.10.0",
    "10.0.0",
    f"{'9' * 50}.0.0",
    f"1{'0' * 50}.0.0",
]


def test_the_order() -> None:
    for lower, higher in pairwise(map(precedence, ASCENDING)):
        assert lower is not None
        assert higher is not None
        assert lower < higher


@pytest.mark.parametrize(("one", "other"), [("1.0.0+a", "1.0.0+b.2"), ("1.0.0-x+1", "1.0.0-x"), ("1.2.3", "1.2.3+001")])
def test_build_metadata_does_not_count(one: str, other: str) -> None:
    assert precedence(one) == precedence(other) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "v1.0.0",
        "01.0.0",
        "1.00.0",
        "1.0.0-",
        "1.0.0-01",
        "1.0.0-a..b",
        "1.0.0+",
        "1.0.0+a+b",
        "1.0.0-ä",
        "1.0.٣",
        " 1.0.0",
        "1.0.0\n",
        "-1.0.0",
        "1.0.0" + "0" * SEMVER_CHARACTERS_MAX,
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert precedence(text) is None


numbers = st.integers(0, 2**70)


@given(st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers))
def test_numbers_compare_as_numbers(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    first, second = (precedence(".".join(map(str, version))) for version in (one, other))
    assert first is not None
    assert second is not None
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@given(st.text("019.-+ab", max_size=300))
def test_any_text_is_a_version_or_not(text: str) -> None:
    if precedence(text) is not None:
        numbers = text.partition("+")[0].partition("-")[0].split(".")
        assert [str(int(number)) for number in numbers] == numbers
        assert len(numbers) == 3
