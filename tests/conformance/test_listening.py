"""What the contract's own client hears: live, from a number, from a date, to an end, up to the limit, and of losses."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyaviso
import pytest
from pyaviso import Notification, Trigger

from seamark.testing.server import ServerProcess
from tests.conformance.rig import (
    HISTORY_MAX,
    Listener,
    connect,
    listening,
    measured,
    replay,
    sequences,
    serving,
    tick,
    wait_for_watches,
    wait_until,
)

pytestmark = pytest.mark.slow  # processes of their own


def time_of(notification: Notification) -> datetime:
    assert notification.cloudevent is not None
    return datetime.fromisoformat(notification.cloudevent["time"])


def test_a_live_listener_hears_what_comes_and_nothing_older(
    server: ServerProcess, client: pyaviso.AvisoClient, ticks: str
) -> None:
    tick(client, ticks, 1, 2)
    with listening(client.listen(ticks)) as listener:
        wait_for_watches(server.base_url, ticks)
        tick(client, ticks, 3, 4, 5)
        heard = listener.until(3)
        assert [(one.sequence, one.identifier, one.payload) for one in heard] == [
            (3, {"n": "3"}, None),
            (4, {"n": "4"}, None),
            (5, {"n": "5"}, None),
        ]
    wait_for_watches(server.base_url, ticks, 0)  # the server notices that it left


def test_every_listener_hears_everything(server: ServerProcess, client: pyaviso.AvisoClient, ticks: str) -> None:
    others = [connect(server.base_url) for _ in range(3)]
    with (
        listening(others[0].listen(ticks)) as a,
        listening(others[1].listen(ticks)) as b,
        listening(others[2].listen(ticks, filter={"n": {"gt": 2}})) as c,
    ):
        wait_for_watches(server.base_url, ticks, 3)
        tick(client, ticks, *range(6))
        a.until(6)
        b.until(6)
        c.until(3)
        assert (a.sequences, b.sequences, c.sequences) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [4, 5, 6])


@pytest.mark.parametrize("after", [0, 1, 19, 20])
def test_from_an_id_history_is_followed_by_what_comes(
    server: ServerProcess, client: pyaviso.AvisoClient, ticks: str, after: int
) -> None:
    tick(client, ticks, *range(20))
    with listening(client.listen(ticks, start_from=after)) as listener:
        listener.until(20 - after)
        wait_for_watches(server.base_url, ticks)
        tick(client, ticks, 20, 21)
        listener.until(22 - after)
        assert listener.sequences == list(range(after + 1, 23))


@pytest.mark.slow
def test_the_hand_over_to_live_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Listeners come in while somebody publishes as fast as one connection can, each from a little before the newest."""
    count = 450
    published = 0

    def publish(base_url: str) -> None:
        nonlocal published
        publisher = connect(base_url)
        for number in range(count):
            tick(publisher, "ticks0", number)
            published = number + 1

    with serving(tmp_path / "server", watch_endpoint={}) as server, ExitStack() as stack:
        publisher = threading.Thread(target=publish, args=[server.base_url])
        publisher.start()
        listeners: list[tuple[int, Listener]] = []
        for some in range(0, count, 30):
            wait_until(lambda some=some: published >= some, f"{some} are published")
            after = max(0, published - 20)
            notifications = connect(server.base_url).listen("ticks0", start_from=after)
            listeners.append((after, stack.enter_context(listening(notifications))))
        publisher.join()
        for after, listener in listeners:
            listener.until(count - after)
            assert listener.sequences == list(range(after + 1, count + 1))


def test_a_date_selects_by_when_it_was_stored(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, *range(9))
    times = [time_of(one) for one in replay(client, ticks)]
    assert times == sorted(times)
    fifth = times[4].astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    after_fifth = sequences(replay(client, ticks, start_from=fifth))
    assert after_fifth == [n for n, time in enumerate(times, start=1) if time >= datetime.fromisoformat(fifth)]
    assert sequences(replay(client, ticks, start_from="2020-01-01T00:00:00Z")) == list(range(1, 10))
    assert sequences(replay(client, ticks, start_from="2020-01-01 02:00:00+02:00")) == list(range(1, 10))
    later = (times[-1] + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert replay(client, ticks, start_from=later) == []


def test_from_a_date_history_is_followed_by_what_comes(
    server: ServerProcess, client: pyaviso.AvisoClient, ticks: str
) -> None:
    tick(client, ticks, 1, 2, 3)
    with listening(client.listen(ticks, start_from="2020-01-01T00:00:00Z")) as listener:
        listener.until(3)
        wait_for_watches(server.base_url, ticks)
        tick(client, ticks, 4)
        listener.until(4)
        assert listener.sequences == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("after", "until", "heard"), [(0, 4, [1, 2, 3, 4]), (3, 4, [4]), (6, 99, [7, 8, 9]), (0, 9, [*range(1, 10)])]
)
def test_a_replay_has_an_end(client: pyaviso.AvisoClient, ticks: str, after: int, until: int, heard: list[int]) -> None:  # fmt: skip
    tick(client, ticks, *range(9))
    assert sequences(replay(client, ticks, start_from=after, until=until)) == heard


def test_a_replay_ends_at_a_date(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, 1, 2)
    assert replay(client, ticks, start_from="2020-01-01T00:00:00Z", until="2020-01-02T00:00:00Z") == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert sequences(replay(client, ticks, start_from=0, until=tomorrow)) == [1, 2]


def test_a_replay_of_nothing_ends(client: pyaviso.AvisoClient, ticks: str) -> None:
    assert replay(client, ticks) == []
    tick(client, ticks, 1)
    assert replay(client, ticks, start_from=1) == []
    assert replay(client, ticks, start_from=1000) == []


@pytest.mark.parametrize("mode", [pyaviso.WatchMode.REPLAY_ONLY, pyaviso.WatchMode.WATCH])
def test_history_up_to_the_limit_is_whole_and_more_is_an_error(
    server: ServerProcess, client: pyaviso.AvisoClient, ticks: str, mode: pyaviso.WatchMode
) -> None:
    tick(client, ticks, *range(HISTORY_MAX))
    with listening(client.listen(ticks, start_from=0, mode=mode)) as listener:
        listener.until(HISTORY_MAX)
        assert listener.error is None
        if mode is pyaviso.WatchMode.WATCH:
            wait_for_watches(server.base_url, ticks)
    tick(client, ticks, HISTORY_MAX)
    with listening(client.listen(ticks, start_from=0, mode=mode)) as listener:
        error = listener.end()
        assert isinstance(error, pyaviso.HistoryGapError)
        assert (error.reason, error.max_allowed) == ("replay_limit_reached", HISTORY_MAX)
        assert listener.sequences == list(range(1, HISTORY_MAX + 1))
    assert sequences(replay(client, ticks, start_from=1)) == list(range(2, HISTORY_MAX + 2))


def test_the_limit_counts_what_is_delivered(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, *range(HISTORY_MAX + 10))
    assert len(replay(client, ticks, filter={"n": {"gte": 10}})) == HISTORY_MAX
    with pytest.raises(pyaviso.HistoryGapError):
        replay(client, ticks, filter={"n": {"gte": 9}})


def test_what_a_bound_took_is_a_gap_to_whoever_wanted_it(client: pyaviso.AvisoClient) -> None:
    tick(client, "brief", *range(9))
    wait_until(lambda: len(replay(client, "brief", filter={"n": {"gte": 0}})) == 3, "three are kept")
    with pytest.raises(pyaviso.HistoryGapError) as raised:
        replay(client, "brief")
    assert (raised.value.reason, raised.value.expected, raised.value.observed) == ("sequence_jump", 1, 7)
    assert sequences(replay(client, "brief", start_from=6)) == [7, 8, 9]
    assert sequences(replay(client, "brief", filter={"n": {"gte": 0}})) == [7, 8, 9]


def test_what_somebody_deleted_is_a_gap_to_whoever_wanted_everything(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, 1, 2, 3)
    client.delete_notification(f"{ticks}@2")
    with pytest.raises(pyaviso.HistoryGapError) as raised:
        replay(client, ticks)
    assert (raised.value.reason, raised.value.expected, raised.value.observed) == ("sequence_jump", 2, 3)
    assert sequences(replay(client, ticks, filter={"n": {"gte": 0}})) == [1, 3]


def test_a_stream_that_keeps_the_latest_replays_the_latest(client: pyaviso.AvisoClient) -> None:
    tick(client, "latest", 1, 2, 1, 3, 2)
    kept = replay(client, "latest", filter={"n": {"gte": 0}})
    assert [(one.sequence, one.identifier["n"]) for one in kept] == [(3, "1"), (4, "3"), (5, "2")]


@pytest.mark.slow
def test_a_listener_that_does_not_read_for_a_while_misses_nothing(
    server: ServerProcess, client: pyaviso.AvisoClient, ticks: str
) -> None:
    """What is on the way to it is more than any buffer between takes."""
    count, text = 1_000, "x" * 20_000
    notifications = client.listen(ticks)
    wait_for_watches(server.base_url, ticks)
    wanted = [{"event_type": ticks, "identifier": {"n": n}, "payload": [n, text]} for n in range(count)]
    assert all(result.ok for result in connect(server.base_url).notify_many(wanted, concurrency=32))
    assert measured(server.base_url, "aviso_sse_events_sent_total", ticks) < count  # it has not taken them
    with listening(notifications) as listener:
        heard = listener.until(count)
        assert sequences(heard) == list(range(1, count + 1))
        assert {one.payload[0] for one in heard} == set(range(count))
        assert all(one.payload[1] == text for one in heard)


def test_a_listener_that_keeps_its_place_goes_on_after_it(server: ServerProcess, ticks: str, tmp_path: Path) -> None:
    """A state file survives the process; here, the client."""
    state = tmp_path / "state.json"

    def kept() -> pyaviso.AvisoClient:
        return connect(server.base_url, state_store=pyaviso.JsonFileStore(state), flush_cursor_on_exit=True)

    with listening(kept().listen(ticks)) as listener:
        wait_for_watches(server.base_url, ticks)
        tick(connect(server.base_url), ticks, 1, 2, 3)
        listener.until(3)
    wait_for_watches(server.base_url, ticks, 0)
    tick(connect(server.base_url), ticks, 4, 5)
    with listening(kept().listen(ticks)) as listener:
        listener.until(2)
        assert listener.sequences == [4, 5]


def test_several_listeners_share_a_client(server: ServerProcess, client: pyaviso.AvisoClient, ticks: str) -> None:
    wanted: dict[str, dict[str, Any]] = {
        "all": {"event_type": ticks},
        "even": {"event_type": ticks, "filter": {"n": {"in": [0, 2, 4]}}},
        "late": {"event_type": ticks, "filter": {"n": {"gte": 4}}},
    }
    with listening(client.listen_many(wanted, start_from=0)) as listener:
        wait_for_watches(server.base_url, ticks, 3)
        tick(client, ticks, *range(6))
        heard = listener.until(6 + 3 + 2)
    by_name = {name: [one.sequence for who, one in heard if who == name] for name in wanted}
    assert by_name == {"all": [1, 2, 3, 4, 5, 6], "even": [1, 3, 5], "late": [5, 6]}


def test_a_wrong_listener_stops_and_the_others_go_on(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, 1)
    wanted = {"good": {"event_type": ticks}, "bad": {"event_type": "weather"}}
    failed: list[tuple[str, BaseException]] = []
    notifications = client.listen_many(
        wanted, start_from=0, mode="replay_only", on_error=lambda name, error: failed.append((name, error))
    )
    with listening(notifications) as listener:
        assert listener.end() is None
        assert [(name, one.sequence) for name, one in listener.heard] == [("good", 1)]
    ((name, error),) = failed
    assert name == "bad"
    assert isinstance(error, pyaviso.HttpError)
    assert error.status == 400


def test_triggers_run_with_what_was_published(client: pyaviso.AvisoClient, ticks: str, tmp_path: Path) -> None:
    tick(client, ticks, 5, 6)
    called: list[int] = []
    triggers = [
        Trigger.log(tmp_path / "log"),
        Trigger.command(f"echo {{{{ notification.identifier.n }}}} >> {tmp_path}/numbers"),
        Trigger.function(lambda notification: called.append(notification.sequence)),
    ]
    assert sequences(replay(client, ticks, triggers=triggers)) == [1, 2]
    assert called == [1, 2]
    assert (tmp_path / "numbers").read_text() == "5\n6\n"
    assert (tmp_path / "log").read_text().count(f'"event_type":"{ticks}"') == 2
