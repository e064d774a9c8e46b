from __future__ import annotations

import math

import pytest

from seamark import limits
from seamark.errors import BadInput, RecordTooLarge, SeamarkError
from seamark.log import intake
from seamark.log.protocol import Append, Put
from seamark.log.record import Draft, Geometry
from seamark.log.settings import StreamSettings

one = [Draft(b"x")]


def test_it_counts_payload_and_meta_and_then_everything() -> None:
    append = Append(stream="t", drafts=[Draft(b"123", meta=b"45", tag="not counted")], puts=[Put("s", b"k", b"678")])
    assert intake.measure(append) == (5, 8)


@pytest.mark.parametrize(
    "append",
    [
        Append(),
        Append(drafts=one),
        Append(key="k", puts=[Put("s", b"", b"")]),
        Append(stream="n" * (limits.STREAM_NAME_BYTES_MAX + 1), drafts=one),
        Append(stream="\ud800", drafts=one),
        Append(stream="t", drafts=one, key=""),
        Append(stream="t", drafts=one, key="é" * limits.KEY_BYTES_MAX),
        Append(stream="t", drafts=one * (limits.RECORDS_PER_APPEND_MAX + 1)),
        Append(stream="t", drafts=[Draft("text")]),  # type: ignore[arg-type]
        Append(stream="t", drafts=[Draft(b"", meta="text")]),  # type: ignore[arg-type]
        Append(stream="t", drafts=[Draft(b"", tag="é" * (limits.TAG_BYTES_MAX // 2 + 1))]),
        Append(stream="t", drafts=[Draft(b"", tag="\udfff")]),
        Append(stream="t", drafts=[Draft(b"", node="n" * (limits.NODE_BYTES_MAX + 1))]),
        Append(stream="t", drafts=[Draft(b"", subject=("a",) * (limits.SUBJECT_TOKENS_MAX + 1))]),
        Append(stream="t", drafts=[Draft(b"", subject=("a" * 1024,) * 5)]),
        Append(stream="t", drafts=[Draft(b"", subject="abc")]),  # type: ignore[arg-type]
        Append(stream="t", drafts=[Draft(b"", geometry=Geometry("x" * (limits.GEOMETRY_BYTES_MAX + 1), 0, 0, 0, 0))]),
        Append(stream="t", drafts=[Draft(b"", geometry=Geometry(None, "0", 0, 0, 0))]),  # type: ignore[arg-type]
        Append(stream="t", create=StreamSettings(cap_records=-1)),
        Append(stream="t", create=StreamSettings(ttl_ms=1.5)),  # type: ignore[arg-type]
        Append(stream="t", create=StreamSettings(durability="disk")),  # type: ignore[arg-type]
        Append(stream="t", create=StreamSettings(extra=b"x" * (limits.SETTINGS_EXTRA_BYTES_MAX + 1))),
        Append(puts=[Put("s", b"k" * (limits.PUT_KEY_BYTES_MAX + 1), b"")]),
        Append(puts=[Put("s\0", b"k", b"")]),
        Append(puts=[Put("", b"k", b"")]),
        Append(puts=[Put("s", b"k", "text")]),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(append: Append) -> None:
    with pytest.raises(BadInput):
        intake.measure(append)


@pytest.mark.parametrize(
    "draft",
    [
        Draft(b"x" * (limits.RECORD_BYTES_MAX + 1)),
        Draft(b"x" * limits.RECORD_BYTES_MAX, meta=b"y"),
        Draft(b"", meta=b"x" * (limits.META_BYTES_MAX + 1)),
    ],
)
def test_what_is_too_large_says_so(draft: Draft) -> None:
    with pytest.raises(RecordTooLarge) as caught:
        intake.measure(Append(stream="t", drafts=[draft]))
    assert caught.value.fields["bytes"] > caught.value.fields["max"]


@pytest.mark.parametrize("name", ["ttl_ms", "dedupe_window_ms"])
def test_a_span_of_time_is_a_hundred_years_at_the_most(name: str) -> None:
    longest = StreamSettings(**{name: limits.SPAN_MS_MAX})  # type: ignore[arg-type]
    intake.measure(Append(stream="t", drafts=[Draft(b"")], create=longest))
    with pytest.raises(BadInput) as caught:
        intake.measure(Append(stream="t", drafts=[Draft(b"")], create=StreamSettings(**{name: limits.SPAN_MS_MAX + 1})))  # type: ignore[arg-type]
    assert caught.value.fields["max"] == limits.SPAN_MS_MAX


def test_an_append_must_fit_one_commit() -> None:
    many = [Draft(b"x" * limits.RECORD_BYTES_MAX)] * 65
    with pytest.raises(RecordTooLarge):
        intake.measure(Append(stream="t", drafts=many))


@pytest.mark.parametrize(
    "draft",
    [
        Draft(b"x" * limits.RECORD_BYTES_MAX),
        Draft(b"", tag="é" * (limits.TAG_BYTES_MAX // 2), node="", meta=b""),
        Draft(b"", subject=()),
        Draft(b"", subject=("", "\0", "𝄞")),
        Draft(b"", geometry=Geometry("", math.nan, -1, 0.5, 2)),
    ],
)
def test_the_edge_is_inside(draft: Draft) -> None:
    try:
        intake.measure(
            Append(stream="t" * limits.STREAM_NAME_BYTES_MAX, drafts=[draft], key="k" * limits.KEY_BYTES_MAX)
        )
    except SeamarkError as error:
        pytest.fail(str(error))


def test_settings_are_judged_however_often_they_come() -> None:
    good, bad = StreamSettings(cap_records=1), StreamSettings(cap_records=-1)
    for _ in range(2):
        intake.measure(Append(stream="t", create=good))
        for _ in range(2):
            with pytest.raises(BadInput):
                intake.measure(Append(stream="t", create=bad))
