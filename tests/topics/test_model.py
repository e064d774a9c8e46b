"""Configurations between the wire and the log, names, and the grammar of matches."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadInput
from seamark.log.intake import check_settings
from seamark.log.protocol import TagMatch
from seamark.log.settings import Discard, Durability
from seamark.topics.match import match_tuple, parse_match
from seamark.topics.model import (
    DEFAULT_SETTINGS,
    U64_MAX,
    TopicConfig,
    TopicType,
    check_name,
    config_of,
    is_name,
    resolved,
    settings_of,
    stream_of,
    topic_of,
)
from seamark.topics.render import config_dict

U64 = st.integers(0, U64_MAX) | st.sampled_from([0, 1, 2**63 - 1, 2**63, U64_MAX])
CONFIGS = st.builds(
    TopicConfig,
    type=st.sampled_from(TopicType),
    ttl_ms=U64,
    cap_records=U64,
    cap_bytes=U64,
    discard=st.sampled_from(Discard),
    durable=st.booleans(),
    durability=st.none() | st.sampled_from(Durability),
    priority=st.none() | st.integers(-(2**31), 2**31 - 1),
    auto_priority=st.booleans(),
    auto_create=st.booleans(),
    idempotency_window_ms=U64,
    dedupe_node=st.booleans(),
    lease_ms=U64,
    claim_jitter_ms=U64,
    max_deliveries=U64,
    dead_letter=st.none() | st.just("dead"),
    leases_durable=st.booleans(),
)


@given(CONFIGS)
def test_the_log_keeps_a_configuration_and_takes_its_settings(config: TopicConfig) -> None:
    whole = resolved(config, "t")
    settings = settings_of(whole)
    check_settings(settings)
    assert config_of(settings) == whole
    assert resolved(whole, "t") == whole
    shown = config_dict(whole)
    assert msgspec.json.decode(msgspec.json.encode(shown), type=TopicConfig) == whole
    assert shown["durable"] is (shown["durability"] == "fsync")
    assert 100 <= whole.lease_ms <= 86_400_000
    assert whole.claim_jitter_ms <= 5_000
    assert settings.sparse is (whole.type == "queue")
    assert len(settings.extra) < limits.SETTINGS_EXTRA_BYTES_MAX


def test_a_plain_topic_keeps_next_to_nothing() -> None:
    assert len(DEFAULT_SETTINGS.extra) < 32
    assert DEFAULT_SETTINGS.durability is Durability.DISK


@given(st.text(max_size=300))
def test_names(text: str) -> None:
    allowed = (
        text.isascii() and 0 < len(text) <= 255 and text[0].isalnum() and all(c.isalnum() or c in "._:-" for c in text)
    )
    assert is_name(text) is allowed
    assert topic_of(stream_of(text)) == text
    if not allowed:
        with pytest.raises(BadInput):
            check_name(text)


@given(st.text(max_size=20), st.booleans())
def test_a_match_is_said_as_a_tuple_or_as_text(text: str, prefix: bool) -> None:
    match = TagMatch(text, prefix=prefix)
    assert parse_match(match_tuple(match)) == match
    if prefix or not text.endswith("*"):
        assert parse_match(text + "*" if prefix else text) == match


@pytest.mark.parametrize(
    "given", [None, 1, [], ["tag"], ["tag", "Eq"], ["tag", "EQ", "a"], ["tag", "Glob", "a"], {"tag": "a"}]
)
def test_what_is_no_match(given: object) -> None:
    with pytest.raises(BadInput):
        parse_match(given)
