"""What event streams say, and to whom: in this process, on every engine, with a clock that moves when told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from seamark import limits
from seamark.limits import INLINE_BYTES_MAX, STALL_SECONDS_MAX
from seamark.manifest.closure import closure_hash, index_of
from seamark.stream.dialect import Close
from seamark.testing.rig import LogRig
from tests.flags.manifests import HEAD, flag, manifest, segment
from tests.flags.stage import AUTHOR, Frame, Listener, Stage, settle
from tests.manifest import vectors


@pytest.fixture
async def stage(rig: LogRig) -> AsyncIterator[Stage]:
    stage = await Stage.opened(rig, "billing", "growth", "experiments")
    yield stage
    stage.close()


def namespace(note: str) -> bytes:
    return f'{HEAD}[namespace]\nslug = "billing"\ndescription = "{note}"\n'.encode()


def said(listener: Listener) -> list[tuple[str, int, str]]:
    """Namespace, version and delivery of every event."""
    return [
        (frame.body["namespace"], frame.body["version"], frame.body["delivery"])
        for frame in listener.frames
        if frame.kind == "version"
    ]


def ops(frame: Frame) -> dict[str, str]:
    return {entry["path"]: entry["op"] for entry in frame.body["files"]}


# -- the first event


async def test_the_first_event_is_a_snapshot(stage: Stage) -> None:
    files = manifest({"a": flag(segment="s"), "b": flag()}, {"s": segment()})
    await stage.commit(files)
    listener = await stage.watch("ns=billing:a")
    (frame,) = listener.frames
    url = frame.body.pop("snapshot_url")
    closure = {path: files[path] for path in ("flags/a.toml", "segments/s.toml")}
    assert frame == Frame(
        "version",
        "billing:1",
        {
            "protocol": "v2",
            "namespace": "billing",
            "version": 1,
            "prev_version": None,
            "prev_closure_hash": None,
            "closure_hash": closure_hash(index_of(closure)),
            "delivery": "snapshot",
            "snapshot_size_bytes": 1024 + 2 * 1024,
        },
    )
    start = "https://exd.example.com/api/v1/tenants/acme/namespaces/billing/closure?version=1&subscription=YQ&token="
    assert url.startswith(start)
    assert await stage.fetch(url) == closure


@pytest.mark.parametrize(
    ("query", "headers", "counted"),
    [
        ("", {}, None),
        ("&since=billing:2", {}, "current"),
        ("&since=billing:1", {}, "behind"),
        ("&since=billing:3", {}, "ahead"),
        ("&since=billing:99999", {}, "ahead"),
        ("&since=billing:0", {}, None),
        ("&since=billing:1,,nonsense", {}, "behind"),
        ("&since=growth:1", {}, None),
        ("&since=unknown:1", {}, None),
        ("", {"last_event_id": "billing:2"}, "current"),
        ("&since=billing:2", {"last_event_id": "billing:1"}, "behind"),
        ("&since=billing:2", {"last_event_id": "growth:1"}, "current"),
        ("&since=billing:2", {"last_event_id": "what?"}, "current"),
    ],
)
async def test_no_hint_changes_the_first_event(
    stage: Stage, query: str, headers: dict[str, str], counted: str | None
) -> None:
    await stage.commit(manifest({"a": flag()}))
    await stage.commit(manifest({"a": flag(note="2")}))
    listener = await stage.watch(f"ns=billing:*{query}", **headers)
    assert said(listener) == [("billing", 2, "snapshot")]
    assert listener.last.body["prev_version"] is listener.last.body["prev_closure_hash"] is None
    for name in ("current", "behind", "ahead"):
        assert stage.count("seamark_flags_resumed_total", name) == (name == counted)
    await stage.commit(manifest({"a": flag(note="3")}))
    assert said(listener)[1:] == [("billing", 3, "inline")]


async def test_each_namespace_begins_with_its_own(stage: Stage) -> None:
    token = await stage.mint("tenant-admin")
    for slug in ("billing", "growth"):
        await stage.commit(manifest({"a": flag(note=slug)}), slug)
    await stage.commit(manifest({"a": flag(note="2")}), "growth")
    listener = await stage.watch("ns=growth:*&ns=billing:a&ns=experiments:*", token=token)
    assert said(listener) == [("growth", 2, "snapshot"), ("billing", 1, "snapshot")]
    assert set(await listener.mirrors()) == {"growth", "billing"}


async def test_a_namespace_without_a_manifest_is_silent_until_it_has_one(stage: Stage) -> None:
    listener = await stage.watch()
    await stage.pass_time(35)
    assert listener.frames == [Frame(":keepalive")]
    files = manifest({"a": flag()})
    await stage.commit(files)
    assert said(listener) == [("billing", 1, "snapshot")]
    assert listener.last.body["prev_version"] is listener.last.body["prev_closure_hash"] is None
    await stage.commit(manifest({"a": flag(note="2")}))
    assert said(listener)[1:] == [("billing", 2, "inline")]
    assert await listener.mirrors() == {"billing": manifest({"a": flag(note="2")})}


async def test_an_empty_closure_is_one(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch("ns=billing:not-there-yet")
    assert listener.last.body["closure_hash"] == vectors.HASHES["V0"][1]
    assert await listener.mirrors() == {"billing": {}}
    await stage.commit(manifest({"a": flag(), "not-there-yet": flag()}))
    assert ops(listener.last) == {"flags/not-there-yet.toml": "added"}


async def test_what_is_committed_while_a_stream_is_opened_is_not_lost(stage: Stage) -> None:
    """Between reading what is there and following the log."""
    await stage.commit(manifest({"a": flag()}))
    begin, extra = stage.streaming.streams.prepare, manifest({"a": flag(note="2")})

    async def prepare(parts: object) -> object:
        starts = await begin(parts)  # type: ignore[arg-type]
        await stage.commit(extra)
        return starts

    stage.streaming.streams.prepare = prepare  # type: ignore[method-assign, assignment]
    listener = await stage.watch()
    assert said(listener) == [("billing", 1, "snapshot"), ("billing", 2, "inline")]
    assert await listener.mirrors() == {"billing": extra}


# -- what became different


async def test_the_worked_event(rig: LogRig) -> None:
    stage = await Stage.opened(rig)
    for note in range(40):
        await stage.commit({**vectors.A, "flags/other.toml": flag(note=str(note))})
    await stage.commit(vectors.A)
    listener = await stage.watch("ns=billing:checkout-redesign")
    await stage.commit(vectors.B)
    assert listener.raw.endswith(b"\n\n" + vectors.WORKED_EVENT)
    stage.close()


@pytest.mark.parametrize(
    ("wanted", "before", "after", "expected"),
    [
        ("a", manifest(), manifest({"a": flag(segment="s")}, {"s": segment()}),
         {"flags/a.toml": "added", "segments/s.toml": "added"}),
        ("a", manifest({"a": flag()}), manifest({"a": flag(note="2")}), {"flags/a.toml": "modified"}),
        ("a", manifest({"a": flag()}, namespace=namespace("1")), manifest({"a": flag()}, namespace=namespace("2")),
         {"namespace.toml": "modified"}),
        ("a", manifest({"a": flag(segment="s")}, {"s": segment()}), manifest(),
         {"flags/a.toml": "removed", "segments/s.toml": "removed"}),
        ("a", manifest({"a": flag()}, {"s": segment(uses="t"), "t": segment()}),
         manifest({"a": flag(segment="s")}, {"s": segment(uses="t"), "t": segment()}),
         {"flags/a.toml": "modified", "segments/s.toml": "enter", "segments/t.toml": "enter"}),
        ("a", manifest({"a": flag(segment="s")}, {"s": segment()}), manifest({"a": flag()}, {"s": segment(note="2")}),
         {"flags/a.toml": "modified", "segments/s.toml": "leave"}),
        ("*", manifest({"a": flag()}, {"s": segment()}), manifest({"a": flag(segment="s")}, {"s": segment()}),
         {"flags/a.toml": "modified"}),
        ("*", manifest({"a": flag(segment="s")}, {"s": segment()}), manifest({"a": flag()}),
         {"flags/a.toml": "modified", "segments/s.toml": "removed"}),
    ],
)  # fmt: skip
async def test_the_ops(
    stage: Stage, wanted: str, before: dict[str, bytes], after: dict[str, bytes], expected: dict[str, str]
) -> None:
    await stage.commit(before)
    listener = await stage.watch(f"ns=billing:{wanted}")
    await stage.commit(after)
    assert said(listener) == [("billing", 1, "snapshot"), ("billing", 2, "inline")]
    assert ops(listener.last) == expected
    for op in set(expected.values()):
        assert stage.count("seamark_flags_delta_files_total", op) == list(expected.values()).count(op)
    await listener.mirrors()


async def test_a_version_that_changes_nothing_here_is_not_told(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag(), "b": flag()}))
    narrow, wide = await stage.watch("ns=billing:a"), await stage.watch()
    await stage.commit(manifest({"a": flag(), "b": flag(note="2")}))
    await stage.commit(manifest({"a": flag(), "b": flag(note="2")}))
    assert said(narrow) == [("billing", 1, "snapshot")]
    assert said(wide) == [("billing", 1, "snapshot"), ("billing", 2, "inline")]
    await stage.commit(manifest({"a": flag(note="4"), "b": flag(note="4")}))
    assert (narrow.last.body["prev_version"], narrow.last.body["version"]) == (1, 4)
    assert (wide.last.body["prev_version"], wide.last.body["version"]) == (2, 4)
    assert ops(narrow.last) == {"flags/a.toml": "modified"}
    for listener in (narrow, wide):
        await listener.mirrors()


async def test_an_op_is_told_against_the_version_that_was_told_last(stage: Stage) -> None:
    """The segment comes in a version that does not concern this reader, and is new to the namespace since its last."""
    await stage.commit(manifest({"a": flag()}))
    early = await stage.watch("ns=billing:a")
    await stage.commit(manifest({"a": flag()}, {"s": segment()}))
    late = await stage.watch("ns=billing:a")
    await stage.commit(manifest({"a": flag(segment="s")}, {"s": segment()}))
    assert ops(early.last) == {"flags/a.toml": "modified", "segments/s.toml": "added"}
    assert ops(late.last) == {"flags/a.toml": "modified", "segments/s.toml": "enter"}


# -- snapshots later on


async def test_more_than_64_kib_is_a_snapshot(stage: Stage) -> None:
    """To the byte: the JSON of the one is exactly at the bound, that of the other three bytes more of base64."""
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    size = 0
    for note_size in (100, 103, 48_000):
        await stage.commit(manifest({"a": flag(note="x" * note_size)}))
        size = len(listener.raw.rpartition(b"data: ")[2]) - 2
    room = (INLINE_BYTES_MAX - size) // 4 * 3
    for more, delivery in ((room, "inline"), (room + 3, "snapshot"), (0, "inline")):
        await stage.commit(manifest({"a": flag(note="x" * (48_000 + more))}))
        assert listener.last.body["delivery"] == delivery
    told = [frame.body for frame in listener.frames]
    assert told[-2]["prev_version"] == told[-3]["version"]
    assert told[-2]["prev_closure_hash"] == told[-3]["closure_hash"]
    await listener.mirrors()


@pytest.mark.parametrize(("files", "delivery"), [(32, "inline"), (33, "snapshot")])
async def test_more_than_32_files_are_a_snapshot(stage: Stage, files: int, delivery: str) -> None:
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    await stage.commit(manifest({"a": flag(), **{f"f{number}": flag() for number in range(files)}}))
    assert said(listener)[1:] == [("billing", 2, delivery)]
    assert listener.last.body["prev_version"] == 1
    await listener.mirrors()


async def test_how_many_files_are_told_inline_is_a_setting(rig: LogRig) -> None:
    stage = await Stage.opened(rig, flags_inline_files="1")
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    await stage.commit(manifest({"a": flag(note="2")}))
    await stage.commit(manifest({"a": flag(note="3"), "b": flag()}))
    assert [delivery for _, _, delivery in said(listener)] == ["snapshot", "inline", "snapshot"]
    stage.close()


async def test_what_cannot_be_compared_any_more_is_a_snapshot(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader whom nothing concerned for so long that what it was told last is no longer kept."""
    await stage.commit(manifest({"a": flag(), "b": flag()}))
    listener = await stage.watch("ns=billing:a")
    await listener.mirrors()
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 2)
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSION_DAYS", 0)
    for number in range(4):
        stage.clock.advance(86_400)
        await stage.commit(manifest({"a": flag(), "b": flag(note=str(number))}))
    assert said(listener) == [("billing", 1, "snapshot")]
    before = listener.last.body["closure_hash"]
    await stage.commit(manifest({"a": flag(note="new")}))
    assert said(listener)[1:] == [("billing", 6, "snapshot")]
    assert listener.last.body["prev_version"] == 1
    assert listener.last.body["prev_closure_hash"] == before
    await listener.mirrors()


# -- readers that are slow, and many


async def test_a_slow_reader_is_told_once_what_it_missed(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    slow, other = await stage.watch(), await stage.watch()
    slow.pipe.fill()
    for number in range(300):
        await stage.commit(manifest({"a": flag(note=str(number))}))
    assert said(slow) == [("billing", 1, "snapshot")]
    assert slow.pipe.buffered == 0, "nothing is queued for it"
    slow.pipe.drain()
    await settle(100)
    assert said(slow) == [("billing", 1, "snapshot"), ("billing", 301, "inline")]
    assert slow.last.body["prev_version"] == 1
    assert len(said(other)) == 301
    assert await slow.mirrors() == await other.mirrors()
    await stage.commit(manifest({"a": flag(note="live again")}))
    assert said(slow)[2:] == [("billing", 302, "inline")]


async def test_what_a_slow_reader_missed_may_be_a_snapshot_or_nothing(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    much, nothing = await stage.watch(), await stage.watch("ns=billing:a")
    for listener in (much, nothing):
        listener.pipe.fill()
    for number in range(40):
        await stage.commit(manifest({"a": flag(), **{f"f{n}": flag() for n in range(number)}}))
    for listener in (much, nothing):
        listener.pipe.drain()
    await settle(100)
    assert said(much)[1:] == [("billing", 41, "snapshot")]
    assert said(nothing)[1:] == []
    await much.mirrors()


async def test_a_slow_reader_of_what_takes_long_to_read_comes_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version was let go while it did not read. To read that again here would hold up everybody."""
    monkeypatch.setattr("seamark.flags.kept.FLAG_VERSIONS_WEIGHT_KEPT", 1)
    await stage.commit(manifest({"a": flag()}))
    slow, whole = await stage.watch("ns=billing:a"), await stage.watch("ns=billing:*")
    for listener in (slow, whole):
        listener.pipe.fill()
    await stage.commit(manifest({"a": flag(note="2")}))
    await stage.commit(manifest(), "growth")
    with monkeypatch.context() as patch:
        patch.setattr("seamark.flags.versions.LINT_SLICE_WEIGHT", 1)
        for listener in (slow, whole):
            listener.pipe.drain()
        await settle(100)
    assert slow.ended
    assert said(whole) == [("billing", 1, "snapshot"), ("billing", 2, "inline")]  # every file: nothing has to be read
    assert said(await stage.watch("ns=billing:a")) == [("billing", 2, "snapshot")]


async def test_a_reader_that_takes_nothing_is_closed(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    listener.pipe.fill()
    await stage.pass_time(STALL_SECONDS_MAX * 2 + limits.CLOSE_LINGER_SECONDS_MAX + 1)
    assert listener.ended
    assert stage.count("seamark_stream_closed_total", Close.SLOW) == 1


async def test_equal_subscriptions_share_one_difference_and_its_bytes(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag(), "b": flag()}))
    tokens = [await stage.mint("namespace-read", namespace="billing") for _ in range(10)]
    alike = [
        await stage.watch(f"ns=billing:{('a,b', 'b,a', 'a,b,a')[n % 3]}", token=tokens[n // 10]) for n in range(90)
    ]
    others = [await stage.watch("ns=billing:a", token=tokens[9]) for _ in range(5)]
    await stage.commit(manifest({"a": flag(note="2"), "b": flag()}))
    assert stage.count("seamark_flags_deltas_total") == 2
    assert len({id(listener.pipe.blocks[-1]) for listener in alike}) == 1
    assert len({id(listener.pipe.blocks[-1]) for listener in others}) == 1
    assert {listener.last.kind for listener in alike} == {"version"}
    assert stage.count("seamark_flags_events_total", "inline") == 95


async def test_snapshots_are_everybodys_own(stage: Stage) -> None:
    """Each address names whom it was made for."""
    other = await stage.mint("namespace-read", namespace="billing")
    await stage.commit(manifest({"a": flag()}))
    urls = [(await stage.watch(token=token)).last.body["snapshot_url"] for token in (None, other)]
    assert len(set(urls)) == 2
    assert stage.count("seamark_flags_archives_total") == 0
    assert await stage.fetch(urls[0]) == await stage.fetch(urls[1])
    assert stage.count("seamark_flags_archives_total") == 1


async def test_what_is_kept_of_differences_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.deltas.FLAG_DELTA_BYTES_KEPT", 4_000)
    listener = await stage.watch()
    for number in range(20):
        await stage.commit(manifest({"a": flag(note=str(number))}))
    assert len(stage.streaming.deltas) < 5
    await listener.mirrors()


# -- silence and the end


async def test_silence_is_broken_every_30_seconds(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    await stage.pass_time(29)
    assert len(listener.frames) == 1
    await stage.pass_time(5)
    assert listener.raw.endswith(b"}\n\n:keepalive\n\n")
    await stage.commit(manifest({"a": flag(note="2")}))
    await stage.pass_time(28)
    assert [frame.kind for frame in listener.frames] == ["version", ":keepalive", "version"]


async def test_how_long_silence_lasts_is_a_setting(rig: LogRig) -> None:
    stage = await Stage.opened(rig, flags_keepalive_seconds="2")
    listener = await stage.watch()
    await stage.pass_time(10)
    assert 3 <= listener.raw.count(b":keepalive\n\n") <= 5
    stage.close()


async def test_a_revoked_token_ends_its_streams_at_once(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    other = await stage.mint("namespace-read", namespace="billing")
    mine = [await stage.watch(), await stage.watch("ns=billing:a")]
    theirs = await stage.watch(token=other)
    before = [listener.raw for listener in mine]
    holder = stage.directory.find(stage.reader)
    assert holder is not None
    await stage.directory.revoke(holder.name, AUTHOR)
    assert [listener.ended for listener in mine] == [True, True]
    assert not theirs.ended
    await stage.commit(manifest({"a": flag(note="2")}))
    assert [listener.raw for listener in mine] == before, "the end is all that is said"
    assert len(theirs.frames) == 2
    assert (await stage.refused("ns=billing:*"))[:2] == (401, "unauthorized")
    with pytest.raises(AssertionError, match="401"):
        await mine[0].mirrors()


async def test_a_token_that_expires_ends_its_streams(stage: Stage) -> None:
    expires_at = stage.clock.now_ns() + 10 * 1_000_000_000
    token = await stage.mint("namespace-read", namespace="billing", expires_at=expires_at)
    listener = await stage.watch(token=token)
    await stage.pass_time(9.5)
    assert not listener.ended
    await stage.pass_time(1)
    assert listener.ended
    assert listener.raw == b""


@pytest.mark.parametrize("by", ["commit", "silence"])
async def test_a_token_that_expires_by_a_clock_that_is_set_hears_nothing_more(stage: Stage, by: str) -> None:
    """Time did not pass, so no deadline came."""
    await stage.commit(manifest({"a": flag()}))
    expires_at = stage.clock.now_ns() + 3_600 * 1_000_000_000
    token = await stage.mint("namespace-read", namespace="billing", expires_at=expires_at)
    listeners = [await stage.watch(token=token) for _ in range(3)]
    stage.clock.step(3_600)
    if by == "commit":
        await stage.commit(manifest({"a": flag(note="2")}))
    else:
        await stage.pass_time(35)
    for listener in listeners:
        assert listener.ended
        assert len(listener.frames) == 1
    assert stage.count("seamark_stream_closed_total", Close.REVOKED) == 3


async def test_a_token_that_expires_while_its_stream_is_prepared_gets_none(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    expires_at = stage.clock.now_ns() + 10 * 1_000_000_000
    token = await stage.mint("namespace-read", namespace="billing", expires_at=expires_at)
    begin = stage.streaming.streams.prepare

    async def prepare(parts: object) -> object:
        stage.clock.advance(11)
        return await begin(parts)  # type: ignore[arg-type]

    stage.streaming.streams.prepare = prepare  # type: ignore[method-assign, assignment]
    assert (await stage.refused("ns=billing:*", token=token))[:2] == (401, "unauthorized")


async def test_a_stream_whose_namespace_is_gone_ends(stage: Stage) -> None:
    """So that its reader comes again and begins anew, instead of being told nothing for ever."""
    token = await stage.mint("tenant-admin")
    for slug in ("billing", "growth"):
        await stage.commit(manifest({"a": flag()}), slug)
    listener = await stage.watch("ns=billing:*&ns=growth:*", token=token)
    await stage.rig.log.drop("flags:acme/billing")
    await settle()
    assert listener.ended
    assert len(listener.frames) == 2


async def test_all_is_told_before_the_server_stops(stage: Stage) -> None:
    await stage.commit(manifest({"a": flag()}))
    listener = await stage.watch()
    stage.hub.drain()
    assert listener.ended
    assert (await stage.refused("ns=billing:*"))[:2] == (503, "unavailable")


async def test_a_stream_that_never_began_gives_its_room_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(parts: object) -> object:
        raise OSError("disk")

    prepare = stage.streaming.streams.prepare
    monkeypatch.setattr(stage.streaming.streams, "prepare", broken)
    for _ in range(20):
        with pytest.raises(OSError, match="disk"):
            await stage.ask("ns=billing:*")
    monkeypatch.setattr(stage.streaming.streams, "prepare", prepare)
    assert await stage.watch()
