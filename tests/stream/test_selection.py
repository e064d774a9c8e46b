"""Which groups get which records of a run."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from seamark.log.record import Record
from seamark.match.filter import Filter
from seamark.stream.channel import Channel
from seamark.stream.group import Encoding, Group, GroupKey
from seamark.stream.selection import Selection
from tests.stream.conftest import LineDialect

WORDS = ["a", "b", "c"]
FILTERS = [
    None,
    *(Filter(subject=(word, None)) for word in WORDS),
    *(Filter(subject=(None, word)) for word in WORDS),
    Filter(subject=("a", "b")),
]
RUNS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=8)


def group_for(wanted: Filter | None, projection: str = "") -> Group:
    """A group without a channel: choosing never asks for it."""
    encoding = Encoding(LineDialect())
    return Group(cast("Channel", None), GroupKey(wanted, projection), encoding)


def run_of(subjects: list[tuple[str, str]]) -> list[Record]:
    return [Record(seq, 0, b"", subject=subject) for seq, subject in enumerate(subjects, 1)]


@given(st.lists(st.tuples(st.sampled_from(FILTERS), st.sampled_from("xy")), max_size=12, unique=True), RUNS, st.data())
def test_each_group_gets_what_its_filter_wants_in_order(
    keys: list[tuple[Filter | None, str]], subjects: list[tuple[str, str]], data: st.DataObject
) -> None:
    selection = Selection()
    groups = [group_for(*key) for key in keys]
    for group in groups:
        selection.add(group)
    gone = data.draw(st.sets(st.sampled_from(groups))) if groups else set()
    for group in gone:
        selection.remove(group)
    records = run_of(subjects)
    expected = {}
    for group in groups:
        wanted = [record for record in records if group.key.filter is None or group.key.filter.matches(record)]
        if wanted and group not in gone:
            expected[group] = wanted
    chosen = selection.choose(records)
    assert {group: list(wanted) for group, wanted in chosen.items()} == expected


def test_groups_that_want_one_record_share_what_they_get() -> None:
    selection = Selection()
    for projection in range(5):
        selection.add(group_for(FILTERS[1], str(projection)))
    chosen = selection.choose(run_of([("a", "x"), ("b", "x")]))
    assert len(chosen) == 5
    assert len({id(wanted) for wanted in chosen.values()}) == 1
