from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.manifest.bucket import BUCKETS, bucket_of


@pytest.mark.parametrize(
    ("salt", "entity", "bucket"),
    [
        ("feature-x-2026", "u-1", 6075),
        ("feature-x-2026", "u-2", 791),
        ("feature-x-2026", "u_42", 9346),
        ("checkout-redesign-2025", "u-1", 8528),
        ("sel-é", "ü", 7583),
    ],
)
def test_the_vectors(salt: str, entity: str, bucket: int) -> None:
    assert bucket_of(salt, entity) == bucket


@given(st.text(), st.text(st.characters()))
def test_everybody_has_a_bucket(salt: str, entity: str) -> None:
    assert 0 <= bucket_of(salt, entity) < BUCKETS


def test_half_a_letter_has_a_bucket() -> None:
    assert 0 <= bucket_of("salt", "\ud800") < BUCKETS


def test_buckets_are_filled_evenly() -> None:
    halves = [bucket_of("salt", f"user-{number}") < BUCKETS // 2 for number in range(10_000)]
    assert 4_800 < sum(halves) < 5_200
