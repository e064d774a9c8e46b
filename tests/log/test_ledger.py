from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seamark.log.engines.memory import MemoryStore
from seamark.log.ledger import Ledger, Registry
from seamark.log.meta import Meta
from seamark.log.settings import StreamSettings

names = st.text(st.sampled_from("ab:é𝄞"), min_size=1, max_size=4)


def registry(of: set[str]) -> Registry:
    made = Registry()
    for number, name in enumerate(of, 1):
        made.add(Ledger(name, Meta(number, "i", StreamSettings(), count=1, bytes=2), MemoryStore()))
    return made


@given(st.sets(names), st.text(st.sampled_from("ab:é𝄞"), max_size=3), st.text(st.sampled_from("ab:é𝄞"), max_size=3))
def test_names_come_in_the_order_of_their_bytes(of: set[str], prefix: str, after: str) -> None:
    expected = sorted((n for n in of if n.startswith(prefix) and (not after or n > after)), key=str.encode)
    assert list(registry(of).names(prefix, after)) == expected


@given(st.sets(names, min_size=1))
def test_what_is_removed_is_forgotten_everywhere(of: set[str]) -> None:
    made = registry(of)
    gone = made.get(min(of))
    made.remove(gone)
    assert made.find(gone.name) is None
    assert made.by_id(gone.meta.id) is None
    assert list(made.names("", "")) == sorted(of - {gone.name}, key=str.encode)
    assert (made.records, made.bytes) == (len(of) - 1, 2 * (len(of) - 1))
