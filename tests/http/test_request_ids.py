from __future__ import annotations

import random
import uuid

from hypothesis import given
from hypothesis import strategies as st

from seamark.http.request_ids import RequestIds


def test_ids_differ() -> None:
    new = RequestIds()
    assert len({new() for _ in range(2_000)}) == 2_000


@given(st.integers(0, 2**32))
def test_any_entropy_makes_a_version_4_uuid(seed: int) -> None:
    text = RequestIds(random.Random(seed).randbytes)()
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (4, uuid.RFC_4122, text)
