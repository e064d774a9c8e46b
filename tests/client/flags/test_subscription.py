from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.client.flags.subscription import Wanted, closure_target, events_target, read_wanted, shards
from seamark.errors import BadField, MalformedList, TooManyFlags
from seamark.flags.subscribe import read_hints, read_parts, read_query
from seamark.limits import EVENTS_QUERY_BYTES_MAX, NAMESPACES_PER_STREAM_MAX
from seamark.manifest.subscription import FlagList, from_token

slugs = st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True)
lists = st.none() | st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,62}", fullmatch=True), min_size=1, max_size=64)


def test_what_may_be_asked_for() -> None:
    assert {slug: flags.canonical for slug, flags in read_wanted("billing").items()} == {"billing": "*"}
    assert {slug: flags.canonical for slug, flags in read_wanted(["a", "b"]).items()} == {"a": "*", "b": "*"}
    given_all = read_wanted({"a": "*", "b": ["y", "x", "y"], "c": "x,y"})
    assert [flags.canonical for flags in given_all.values()] == ["*", "x,y", "x,y"]


def test_what_may_not() -> None:
    wrongs: tuple[Wanted, ...] = ([], {}, "Billing", ["a", "A"], "")
    for wrong in wrongs:
        with pytest.raises(BadField):
            read_wanted(wrong)
    with pytest.raises(MalformedList):
        read_wanted({"a": []})
    with pytest.raises(TooManyFlags):
        read_wanted({"a": [f"f{number}" for number in range(65)]})


@given(st.dictionaries(slugs, lists, min_size=1, max_size=70), st.none() | slugs)
def test_every_namespace_is_asked_for_once_within_what_a_server_takes(
    wanted: dict[str, list[str] | None], owner: str | None
) -> None:
    """Read back by the server's own reader."""
    asked = {slug: FlagList.of(keys) for slug, keys in wanted.items()}
    parts = []
    for shard in shards(asked, owner):
        assert 1 <= len(shard) <= NAMESPACES_PER_STREAM_MAX
        query = urlsplit(events_target(shard, dict.fromkeys(wanted, 10**9))).query
        assert len(query) <= EVENTS_QUERY_BYTES_MAX
        parts += read_parts(read_query(query.encode()).ns, "" if owner else "mine")
    assert [(part.namespace, part.wanted) for part in parts] == list(asked.items())
    assert {part.tenant for part in parts} == {owner or "mine"}


def test_streams_are_as_few_as_can_be() -> None:
    every = FlagList.of(None)
    assert [len(shard) for shard in shards({f"n{number}": every for number in range(70)}, None)] == [32, 32, 6]
    long = FlagList.of(
        [f"{number:02}".translate({48 + digit: 97 + digit for digit in range(10)}) + "x" * 55 for number in range(64)]
    )
    assert [len(shard) for shard in shards({f"n{number}": long for number in range(5)}, None)] == [2, 2, 1]


def test_what_is_held_is_told_where_it_fits() -> None:
    (shard,) = shards(read_wanted(["a", "b", "c"]), None)
    target = events_target(shard, {"a": 7, "b": 0, "c": 41})
    assert target == "/api/v1/events?ns=a:*&ns=b:*&ns=c:*&since=a:7,c:41"
    query = dict(parse_qsl(urlsplit(target).query))
    assert read_hints([query["since"]], None) == {"a": 7, "c": 41}


def test_a_closure_is_asked_for_by_version_and_list() -> None:
    wanted = FlagList.of(["b", "a"])
    target = closure_target("acme", "billing", 42, wanted)
    path, _, query = target.partition("?")
    assert path == "/api/v1/tenants/acme/namespaces/billing/closure"
    assert from_token(dict(parse_qsl(query))["subscription"]) == wanted
    assert dict(parse_qsl(query))["version"] == "42"
