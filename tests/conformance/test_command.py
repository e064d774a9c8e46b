"""The `aviso` command: publishing, listener files with their triggers, a place that is kept, replays, administration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from seamark.testing.server import ServerProcess
from tests.conformance.command import Aviso
from tests.conformance.receiver import receiving
from tests.conformance.rig import POLYGON, SCHEMA, wait_until

pytestmark = pytest.mark.slow  # many processes


@pytest.fixture
def aviso(server: ServerProcess, tmp_path: Path) -> Aviso:
    return Aviso(server.base_url, tmp_path)


def listener_file(aviso: Aviso, *listeners: dict[str, Any], name: str = "listeners.yaml") -> str:
    (aviso.place / name).write_text(yaml.safe_dump({"listeners": listeners}), encoding="utf-8")
    return name


def numbers(notifications: list[dict[str, Any]]) -> list[int]:
    return [notification["sequence"] for notification in notifications]


def test_what_is_published_is_replayed(aviso: Aviso, ticks: str) -> None:
    for number in (1, 2, 3):
        (answer,) = aviso.lines("notify", f'event={ticks},n={number},data={{"n":{number}}}')
        assert (answer["event_type"], answer["status"]) == (ticks, "success")
    assert aviso.lines("replay", "--event", ticks, "--identifiers", "{}", "--from", "0") == [
        {"event_type": ticks, "sequence": number, "identifier": {"n": str(number)}, "payload": {"n": number}}
        for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("arguments", "heard"),
    [
        (["--from", "0"], [1, 2, 3, 4]),
        (["--from", "2"], [3, 4]),
        (["--from", "1", "--until", "3"], [2, 3]),
        (["--from", "2026-01-01"], [1, 2, 3, 4]),
        (["--from", "2020-01-01T00:00:00Z", "--until", "2020-01-02T00:00:00Z"], []),
        (["--from", "2020-01-01T00:00:00Z", "--until", "3"], [1, 2, 3]),
    ],
    ids=str,
)
def test_a_replay_goes_from_here_to_there(aviso: Aviso, ticks: str, arguments: list[str], heard: list[int]) -> None:
    aviso.publish(ticks, 1, 2, 3, 4)
    assert numbers(aviso.lines("replay", "--event", ticks, "--identifiers", "{}", *arguments)) == heard


def test_a_listener_file_runs_its_triggers(server: ServerProcess, aviso: Aviso, ticks: str) -> None:
    with receiving() as receiver:
        file = listener_file(
            aviso,
            {
                "name": "everything",
                "event": ticks,
                "identifiers": {"n": {"gte": 2}},
                "triggers": [
                    {"type": "echo"},
                    {"type": "log", "path": "all.log"},
                    {"type": "command", "command": "echo {{ notification.sequence }} $AVISO_IDENTIFIER_N >> commands"},
                    {"type": "post", "url": f"{receiver.url}/posted"},
                    {
                        "type": "webhook",
                        "url": f"{server.base_url}/v0/topics/{ticks}",
                        "headers": {"Content-Type": "application/json"},
                        "body_template": '{"records":[{"data":{{ notification.payload }}}]}',
                    },
                ],
            },
        )
        with aviso.listening(file) as listener:
            aviso.publish(ticks, 1, 2, 3)
            heard = listener.until(2)
            wait_until(lambda: len(receiver.received) == 2, "both are posted")
    assert numbers(heard) == [2, 3]
    assert [json.loads(line) for line in (aviso.place / "all.log").read_text().splitlines()] == heard
    assert (aviso.place / "commands").read_text() == "2 2\n3 3\n"
    assert [(path, json.loads(body)["id"]) for path, body in receiver.received] == [
        ("/posted", f"{ticks}@2"),
        ("/posted", f"{ticks}@3"),
    ]
    stored = httpx.post(f"{server.base_url}/v0/topics/{ticks}/diff", json={"from_seq": 0}).json()
    assert [record["data"] for record in stored["records"]] == [{"n": 2}, {"n": 3}]


def test_what_is_posted_on_is_what_the_server_said(server: ServerProcess, aviso: Aviso, ticks: str) -> None:
    aviso.publish(ticks, 1)
    asked = httpx.post(f"{server.base_url}/api/v1/replay", json={"event_type": ticks, "identifier": {}, "from_id": "1"})
    ((_, said),) = (frame.split("\n") for frame in asked.text.split("\n\n") if frame.startswith("event: replay\n"))
    with receiving() as receiver:
        file = listener_file(
            aviso, {"event": ticks, "identifiers": {}, "triggers": [{"type": "post", "url": receiver.url}]}
        )
        assert aviso.lines("replay", file, "--from", "0") == []
    ((_, body),) = receiver.received
    assert json.loads(body) == json.loads(said.removeprefix("data: "))


def test_a_listener_keeps_its_place_between_runs(aviso: Aviso, ticks: str) -> None:
    file = listener_file(aviso, {"event": ticks, "identifiers": {}, "triggers": [{"type": "echo"}]})
    state = ["--state-file", str(aviso.place / "state.json")]
    with aviso.listening(file, *state) as listener:
        aviso.publish(ticks, 1, 2)
        assert numbers(listener.until(2)) == [1, 2]
    aviso.publish(ticks, 3, 4)
    with aviso.listening(file, *state) as listener:
        aviso.publish(ticks, 5)
        assert numbers(listener.until(3)) == [3, 4, 5]
    with aviso.listening(file, *state, "--from", "1") as listener:
        assert numbers(listener.until(4)) == [2, 3, 4, 5]


def test_several_listeners_run_side_by_side(aviso: Aviso, ticks: str, unused_ticks: Any) -> None:
    other = next(unused_ticks)
    echo = [{"type": "echo"}]
    first = listener_file(aviso, {"name": "low", "event": ticks, "identifiers": {"n": {"lt": 3}}, "triggers": echo})
    second = listener_file(
        aviso,
        {
            "name": "high",
            "event": ticks,
            "identifiers": {"n": {"gte": 3}},
            "triggers": [{"type": "log", "path": "high"}],
        },
        {"name": "other", "event": other, "identifiers": {}, "triggers": echo},
        name="more.yaml",
    )
    with aviso.listening(first, second, "--no-state-store", listeners=3) as listener:
        aviso.publish(ticks, 1, 5, 2)
        aviso.publish(other, 9)
        heard = listener.until(3)
        high = aviso.place / "high"
        wait_until(lambda: high.exists() and high.read_text().endswith("\n"), "the high one is logged")
    assert sorted((one["event_type"], one["payload"]["n"]) for one in heard) == sorted(
        [(ticks, 1), (ticks, 2), (other, 9)]
    )
    assert json.loads(high.read_text())["payload"] == {"n": 5}


def test_a_polygon_of_a_listener_file(aviso: Aviso) -> None:
    ring = json.dumps(POLYGON)
    aviso.lines("notify", f'event=areas,date=20260101,polygon={ring},data="here"')
    aviso.lines("notify", 'event=areas,date=20260101,data="there",polygon="1,1,1,2,2,2,1,1"')
    for wanted, heard in (
        ({"polygon": POLYGON}, ["here"]),
        ({"polygon": "(1.5,1.6,1.5,1.8,1.7,1.8,1.5,1.6)"}, ["there"]),
        ({"point": [52.5, 13.5]}, ["here"]),
    ):
        file = listener_file(aviso, {"event": "areas", "identifiers": wanted, "triggers": [{"type": "echo"}]})
        assert [one["payload"] for one in aviso.lines("replay", file, "--from", "0")] == heard


def test_a_refused_listener_says_why_and_the_command_fails(aviso: Aviso, ticks: str) -> None:
    done = aviso.run("listen", "--event", "weather", "--identifiers", "{}")
    assert done.returncode == 1
    assert "Required field 'date' missing for watch operation" in done.stderr
    done = aviso.run("notify", "event=nothing,n=1")
    assert done.returncode == 1
    assert "UNKNOWN_EVENT_TYPE" in done.stderr
    done = aviso.run("replay", "--event", ticks, "--identifiers", '{"n":{"near":3}}', "--from", "0")
    assert done.returncode == 1
    assert "INVALID_REPLAY_REQUEST" in done.stderr


def test_schemas_are_listed_and_shown(aviso: Aviso) -> None:
    assert [line["event_type"] for line in aviso.lines("schema", "list")] == sorted(SCHEMA)
    shown = json.loads(aviso.run("schema", "get", "weather").stdout)
    assert shown["schema"]["identifier"]["severity"] == {"range": [0, 10], "required": False, "type": "IntHandler"}
    assert aviso.run("schema", "get", "nothing").returncode == 1


def test_administration(aviso: Aviso, ticks: str) -> None:
    aviso.publish(ticks, 1, 2, 3)
    whole = ("replay", "--event", ticks, "--identifiers", '{"n":{"gte":0}}', "--from", "0")
    assert aviso.lines("admin", "delete", f"{ticks}@2", "--yes")[0]["status"] == "ok"
    assert numbers(aviso.lines(*whole)) == [1, 3]
    assert aviso.run("admin", "delete", f"{ticks}@2", "--yes").returncode == 1
    assert aviso.lines("admin", "wipe-stream", ticks, "--yes")[0]["status"] == "ok"
    assert aviso.lines(*whole) == []
    aviso.publish(ticks, 4)
    assert numbers(aviso.lines(*whole)) == [4]
    assert aviso.lines("admin", "wipe-all", "--yes")[0]["status"] == "ok"
    assert aviso.lines(*whole) == []
