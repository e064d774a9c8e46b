"""Every sequence of the contract, byte for byte, on our own server and as plain ASGI."""

from __future__ import annotations

from seamark.stream.dialect import Close
from tests.notify.rig import POLYGON, NotifyRig, options, running

T = "2023-11-14T22:13:20Z"
HEARTBEAT = f'event: heartbeat\ndata: {{"timestamp":"{T}","topic":"polygon.*.1200"}}\n\n'
COMPLETED = f'event: replay-control\ndata: {{"timestamp":"{T}","topic":"polygon.*.1200","type":"replay_completed"}}\n\n'
HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "access-control-allow-origin": "*",
    "x-accel-buffering": "no",
}


def established(seconds: int = 3600) -> str:
    return (
        f'event: live-notification\ndata: {{"connection_will_close_in_seconds":{seconds},"request_id":"<id>","timestamp":"{T}",'
        '"topic":"polygon.*.1200","type":"connection_established"}\n\n'
    )


def started(*, seq: str = "null", date: str = "null", batch_size: int = 100, end: str = "") -> str:
    return (
        f'event: replay-control\ndata: {{"batch_size":{batch_size},{end}"from_date":{date},"from_sequence":{seq},"request_id":"<id>",'
        f'"timestamp":"{T}","topic":"polygon.*.1200","type":"replay_started"}}\n\n'
    )


def event(seq: int, payload: str, *, name: str = "replay", time: str = T) -> str:
    return (
        f'event: {name}\ndata: {{"data":{{"identifier":{{"date":"20250706","polygon":"{POLYGON}","time":"1200"}},"payload":{payload}}},'
        '"datacontenttype":"application/json","dataschema":"http://localhost/schema/test_polygon",'
        f'"id":"test_polygon@{seq}","sequence":{seq},"source":"http://localhost","specversion":"1.0","time":"{time}",'
        '"type":"int.ecmwf.aviso.test_polygon"}\n\n'
    )


def live(seq: int, payload: str, *, time: str = T) -> str:
    return event(seq, payload, name="live-notification", time=time)


def closing(reason: str, message: str, *, at: str = T) -> str:
    return (
        f'event: connection-closing\ndata: {{"message":"{message}","reason":"{reason}","request_id":"<id>","timestamp":"{at}",'
        '"topic":"polygon.*.1200"}\n\n'
    )


END = closing("end_of_stream", "Stream completed")
SHUTDOWN = closing("server_shutdown", "Server is shutting down gracefully")


async def test_the_answer_to_a_notification(each: NotifyRig) -> None:
    body = {"event_type": "test_polygon", "identifier": {"date": "20250706", "time": "1200", "polygon": POLYGON}}
    answer = await each.ask("notification", body)
    request_id = answer.headers["x-request-id"]
    assert answer.text == f'{{"status":"success","request_id":"{request_id}","processed_at":"{T}"}}'
    assert answer.headers["content-type"] == "application/json"


async def test_a_live_watch(each: NotifyRig) -> None:
    await each.notify(payload="before")
    async with each.watch() as watching:
        for name, value in HEADERS.items():
            assert watching.response.headers[name] == value
        await watching.until("heartbeat")
        assert watching.text == established() + HEARTBEAT
        await each.notify(payload={"b": 1, "a": [1.0, None]})
        await watching.until("test_polygon@2")
        each.pass_time(30)
        await watching.until("event: heartbeat", 2)
        await each.notify(payload="å\u2028")
        await watching.until("test_polygon@3")
        later = "2023-11-14T22:13:50Z"
        assert watching.text == (
            established()
            + HEARTBEAT
            + live(2, '{"a":[1.0,null],"b":1}')
            + HEARTBEAT.replace(T, later)
            + live(3, '"å\u2028"', time=later)
        )


async def test_a_watch_with_a_start(each: NotifyRig) -> None:
    await each.notify(payload=1)
    await each.notify(time="0600")
    await each.notify(payload=3)
    async with each.watch(from_id="1") as watching:
        await watching.until("replay_completed")
        await each.notify(payload=4)
        await watching.until("test_polygon@4")
        assert watching.text == (
            started(seq="1") + HEARTBEAT + event(1, "1") + event(3, "3") + COMPLETED + live(4, "4")
        )


async def test_a_watch_from_a_date(each: NotifyRig) -> None:
    await each.notify(payload=1)
    each.clock.advance(0.000001)
    await each.notify(payload=2)
    async with each.watch(from_date="2023-11-14T23:13:20.000001+01:00") as watching:
        await watching.until("replay_completed")
    assert watching.text == (
        started(date=f'"{T}"') + HEARTBEAT + event(2, "2", time="2023-11-14T22:13:20.000001Z") + COMPLETED
    )


async def test_a_watch_whose_history_is_empty(each: NotifyRig) -> None:
    await each.notify()
    async with each.watch(from_id="99") as watching:
        await watching.until("replay_completed")
        await each.notify(payload=2)
        await watching.until("test_polygon@2")
    assert watching.text == started(seq="99") + HEARTBEAT + COMPLETED + live(2, "2")


async def test_a_replay(each: NotifyRig) -> None:
    await each.notify(payload={"note": "x"})
    await each.notify()
    said = await each.replay(from_id="1")
    assert said.text == started(seq="1") + event(1, '{"note":"x"}') + event(2, "null") + COMPLETED + END


async def test_a_replay_of_nothing(each: NotifyRig) -> None:
    said = await each.replay(from_date="1740509903710")
    assert said.text == started(date='"2025-02-25T18:58:23Z"') + COMPLETED + END


async def test_the_longest_a_watch_may_take(each: NotifyRig) -> None:
    async with each.watch(from_id="1") as watching:
        await watching.until("replay_completed")
        each.pass_time(3_600)
        await watching.to_the_end()
    message = "Connection reached maximum duration"
    late = "2023-11-14T23:13:20Z"
    assert watching.text.endswith(closing("max_duration_reached", message, at=late))
    assert watching.text.startswith(started(seq="1") + HEARTBEAT + COMPLETED)


async def test_a_shutdown_ends_every_stream(each: NotifyRig) -> None:
    async with each.watch() as first, each.watch(from_id="1") as second:
        await first.until("heartbeat")
        await second.until("replay_completed")
        await each.assembly.drain()
        await first.to_the_end()
        await second.to_the_end()
    assert first.text == established() + HEARTBEAT + SHUTDOWN
    assert second.text == started(seq="1") + HEARTBEAT + COMPLETED + SHUTDOWN


async def test_more_history_than_a_request_is_given() -> None:
    limit = (
        'event: replay-control\ndata: {"max_allowed":2,"message":"Historical replay limited to 2 messages. Additional historical '
        f'messages may be available but were not retrieved.","timestamp":"{T}","topic":"polygon.*.1200",'
        '"type":"notification_replay_limit_reached"}\n\n'
    )
    async with running(options(history_max=2, batch_size=7)) as rig:
        for payload in (1, 2):
            await rig.notify(payload=payload)
        exactly = started(seq="1", batch_size=7) + event(1, "1") + event(2, "2")
        assert (await rig.replay(from_id="1")).text == exactly + COMPLETED + END
        await rig.notify(time="0600")  # filtered out: not counted
        assert (await rig.replay(from_id="1")).text == exactly + COMPLETED + END
        await rig.notify(payload=4)
        assert (await rig.replay(from_id="1")).text == exactly + limit + END
        async with rig.watch(from_id="1") as watching:
            await watching.to_the_end()
        assert watching.text == exactly.replace("event: replay\n", HEARTBEAT + "event: replay\n", 1) + limit + END
        assert (await rig.replay(from_id="1", to_id="2")).names[-2:] == ["replay-control", "connection-closing"]


async def test_the_end_of_a_replay_is_told_when_it_was_asked_for(rig: NotifyRig) -> None:
    for payload in range(1, 5):
        await rig.notify(payload=payload)
    said = await rig.replay(from_id="2", to_id="3")
    assert said.text == (started(seq="2", end='"end_sequence":3,') + event(2, "2") + event(3, "3") + COMPLETED + END)
    assert '"end_sequence":4,' in (await rig.replay(from_id="2", to_id="99")).text


async def test_what_a_bound_took_is_said() -> None:
    schema = {
        "test_polygon": {
            "topic": {"base": "polygon", "key_order": ["date", "time"]},
            "identifier": {
                "date": {"type": "DateHandler", "required": False},
                "time": {"type": "TimeHandler", "required": True},
                "polygon": {"type": "PolygonHandler", "required": True},
            },
            "storage_policy": {"max_messages": 2},
        }
    }
    gap = (
        'event: replay-control\ndata: {"first_sequence":1,"last_sequence":3,"message":"Notifications 1 to 3 are no longer stored.",'
        f'"reason":"cap","timestamp":"{T}","topic":"polygon.*.1200","type":"history_gap"}}\n\n'
    )
    async with running(options(schema)) as rig:
        for payload in range(1, 6):
            await rig.notify(payload=payload)
        rest = event(4, "4") + event(5, "5") + COMPLETED + END
        assert (await rig.replay(from_id="1")).text == started(seq="1") + gap + rest
        assert (await rig.replay(from_id="4")).text == started(seq="4") + rest
        assert gap in (await rig.replay(from_date="1600000000")).text


async def test_a_log_that_cannot_be_read_ends_the_stream_out_loud(rig: NotifyRig) -> None:
    async with rig.watch() as watching:
        await watching.until("heartbeat")
        (session,) = rig.assembly.hub.sessions
        session.fail(RuntimeError("a broken disk"))
        await watching.to_the_end()
    error = (
        'event: error\ndata: {"error":"stream_processing_failed","message":"the stored notifications could not be read",'
        '"request_id":"<id>","topic":"polygon.*.1200"}\n\n'
    )
    assert watching.text == established() + HEARTBEAT + error + END
    metrics = (await rig.client.get("/metrics")).text
    assert 'aviso_sse_stream_errors_total{event_type="test_polygon",route="/api/v1/watch"} 1.0' in metrics


async def test_a_stream_that_is_removed_says_so(rig: NotifyRig) -> None:
    async with rig.watch() as watching:
        await watching.until("heartbeat")
        await rig.log.drop("notify:polygon")
        await watching.to_the_end()
    assert '"message":"the stream was removed"' in watching.text
    assert watching.text.endswith(END)


async def test_every_reason_ends_in_one_that_clients_know(rig: NotifyRig) -> None:
    known = {"end_of_stream", "max_duration_reached", "server_shutdown"}
    for reason in Close:
        async with rig.watch() as watching:
            await watching.until("heartbeat")
            (session,) = rig.assembly.hub.sessions
            session.close(reason)
            await watching.to_the_end()
        assert any(f'"reason":"{word}","request_id":"<id>"' in watching.frames[-1][1] for word in known)
        assert watching.names[-1] == "connection-closing"
