"""What the contract's own client publishes, asks about schemas, and deletes."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pyaviso
import pytest

from tests.conformance.rig import SCHEMA, connect, replay, sequences, tick

pytestmark = pytest.mark.slow  # processes of their own

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def refusal(error: pyaviso.HttpError) -> dict[str, Any]:
    """The body of an error, which carries the id that the client took from the header."""
    body: dict[str, Any] = json.loads(error.body)
    assert body["request_id"] == error.request_id
    return body


def test_a_notification_is_answered_as_the_client_expects(client: pyaviso.AvisoClient, ticks: str) -> None:
    answer = client.notify(event_type=ticks, identifier={"n": 7})
    assert answer.status == "success"
    assert UUID.fullmatch(answer.request_id)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer.processed_at)


@pytest.mark.parametrize(
    "payload",
    [None, "text", "", 42, -1.5, True, [], {}, [1, [2, None]], {"b": {"é": "☃"}, "a": [1.5, "x\n"]}],
    ids=repr,
)
def test_payloads_come_back_as_they_went_in(client: pyaviso.AvisoClient, ticks: str, payload: Any) -> None:
    client.notify(event_type=ticks, identifier={"n": 1}, payload=payload)
    (notification,) = replay(client, ticks)
    assert notification.payload == payload
    assert type(notification.payload) is type(payload)


def test_a_payload_may_be_large_and_not_larger(client: pyaviso.AvisoClient, ticks: str) -> None:
    text = "é" * 100_000
    client.notify(event_type=ticks, identifier={"n": 1}, payload=text)
    with pytest.raises(pyaviso.HttpError) as raised:
        client.notify(event_type=ticks, identifier={"n": 2}, payload="x" * 300_000)
    assert raised.value.status == 413
    assert [one.payload for one in replay(client, ticks)] == [text]


def test_the_envelope_is_a_cloud_event(client: pyaviso.AvisoClient, ticks: str) -> None:
    client.notify(event_type=ticks, identifier={"n": "+07"}, payload={"file": "a"})
    (notification,) = replay(client, ticks)
    assert (notification.event_type, notification.sequence) == (ticks, 1)
    assert notification.identifier == {"n": "7"}
    envelope = notification.cloudevent
    assert envelope is not None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}){1,3})?Z", envelope.pop("time"))
    assert envelope == {
        "data": {"identifier": {"n": "7"}, "payload": {"file": "a"}},
        "datacontenttype": "application/json",
        "dataschema": f"https://aviso.example/schema/{ticks}",
        "id": f"{ticks}@1",
        "sequence": 1,
        "source": "https://aviso.example",
        "specversion": "1.0",
        "type": f"int.ecmwf.aviso.{ticks}",
    }


def test_many_are_published_over_kept_connections(client: pyaviso.AvisoClient, ticks: str) -> None:
    wanted = [{"event_type": ticks, "identifier": {"n": number}} for number in range(40)]
    wanted[11] = {"event_type": ticks, "identifier": {"n": "eleven"}}
    results = client.notify_many(wanted, concurrency=8)
    assert [result.index for result in results if not result.ok] == [11]
    refused = results[11].error
    assert isinstance(refused, pyaviso.HttpError)
    assert refusal(refused)["code"] == "INVALID_NOTIFICATION_REQUEST"
    stored = replay(client, ticks)
    assert sequences(stored) == list(range(1, 40))
    assert sorted(int(one.identifier["n"]) for one in stored) == [n for n in range(40) if n != 11]


@pytest.mark.parametrize(
    ("event_type", "identifier", "payload", "code"),
    [
        ("nothing", {}, None, "UNKNOWN_EVENT_TYPE"),
        ("weather", {"date": "20260101"}, 1, "INVALID_NOTIFICATION_REQUEST"),
        ("weather", {"date": "x", "severity": 1, "anomaly": 1, "region": "north"}, 1, "INVALID_NOTIFICATION_REQUEST"),
        ("weather", {"date": "20260101", "severity": 11, "anomaly": 1, "region": "north"}, 1, "INVALID_NOTIFICATION_REQUEST"),
        ("weather", {"date": "20260101", "severity": 1, "anomaly": 1, "region": "north"}, None, "INVALID_NOTIFICATION_REQUEST"),
        ("areas", {"date": "20260101", "polygon": "1,1,2,2,1,1"}, None, "INVALID_NOTIFICATION_REQUEST"),
        ("areas", {"date": "20260101", "polygon": [[1, 1]], "point": "1,1"}, None, "INVALID_NOTIFICATION_REQUEST"),
    ],
)  # fmt: skip
def test_refusals_reach_the_caller_with_their_code(
    client: pyaviso.AvisoClient, event_type: str, identifier: dict[str, Any], payload: Any, code: str
) -> None:
    with pytest.raises(pyaviso.HttpError) as raised:
        client.notify(event_type=event_type, identifier=identifier, payload=payload)
    assert raised.value.status == 400
    assert refusal(raised.value)["code"] == code


def test_the_catalogue_is_read_whole_and_by_type(client: pyaviso.AvisoClient) -> None:
    catalogue = client.schema()
    assert catalogue.status == "success"
    assert sorted(catalogue.event_types) == sorted(SCHEMA) == sorted(catalogue.schema)
    assert catalogue.total_schemas == len(SCHEMA)
    one = client.schema_for("weather")
    assert (one.status, one.event_type) == ("success", "weather")
    assert one.schema == catalogue.schema["weather"]
    assert one.schema["payload"] == {"required": True}
    assert one.schema["identifier"]["region"] == {
        "type": "EnumHandler",
        "required": False,
        "values": ["north", "south", "west"],
    }
    with pytest.raises(pyaviso.HttpError) as raised:
        client.schema_for("nothing")
    assert raised.value.status == 404
    assert refusal(raised.value)["available_types"] == sorted(SCHEMA)


def test_one_notification_is_deleted_by_its_id(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, 1, 2, 3)
    client.delete_notification(f"{ticks}@2")
    assert sequences(replay(client, ticks, filter={"n": {"gte": 0}})) == [1, 3]
    with pytest.raises(pyaviso.HttpError) as raised:
        client.delete_notification(f"{ticks}@2")
    assert raised.value.status == 404
    assert refusal(raised.value)["success"] is False


def test_a_stream_is_wiped_and_its_numbers_go_on(client: pyaviso.AvisoClient, ticks: str) -> None:
    tick(client, ticks, 1, 2)
    client.wipe_stream(ticks)
    assert replay(client, ticks) == []
    tick(client, ticks, 3)
    assert sequences(replay(client, ticks, start_from=2)) == [3]
    client.wipe_all()
    assert replay(client, ticks) == []


def test_where_there_is_no_server_nothing_is_stored() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        client = connect(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(pyaviso.TransportError):
            client.notify(event_type="ticks0", identifier={"n": 1})
