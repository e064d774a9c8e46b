"""Taking notifications out, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.notify.rig import NotifyRig, options, running


async def delete(rig: NotifyRig, given: str) -> httpx.Response:
    return await rig.client.delete(f"/api/v1/admin/notification/{given}")


async def wipe(rig: NotifyRig, body: Any) -> httpx.Response:
    return await rig.client.request("DELETE", "/api/v1/admin/wipe/stream", json=body)


async def left(rig: NotifyRig) -> list[str]:
    said = await rig.replay(from_id="1")
    return [data.partition('"id":"')[2].partition('"')[0] for name, data in said.frames if name == "replay"]


@pytest.mark.parametrize("given", ["test_polygon@2", "TEST_POLYGON@2", "polygon@2", "POLYGON@02", " test_polygon @ 2 "])
async def test_one_is_deleted_by_its_id(rig: NotifyRig, given: str) -> None:
    for _ in range(3):
        await rig.notify()
    answer = await delete(rig, given)
    request_id = answer.headers["x-request-id"]
    assert answer.text == (
        f'{{"success":true,"message":"Notification deleted","notification_id":"{given}","request_id":"{request_id}"}}'
    )
    assert await left(rig) == ["test_polygon@1", "test_polygon@3"]
    again = await delete(rig, given)
    assert again.status_code == 404
    assert again.text == (
        f'{{"success":false,"message":"Notification not found","notification_id":"{given}",'
        f'"request_id":"{again.headers["x-request-id"]}"}}'
    )


@pytest.mark.parametrize(
    ("given", "status", "says"),
    [
        ("test_polygon", 400, "notification_id must be in '<stream>@<sequence>' format"),
        ("@1", 400, "notification_id must be in '<stream>@<sequence>' format"),
        ("test_polygon@", 400, "notification_id must be in '<stream>@<sequence>' format"),
        ("test_polygon@x", 400, "notification_id sequence must be a positive integer"),
        ("test_polygon@1@2", 400, "notification_id sequence must be a positive integer"),
        ("test_polygon@-1", 400, "notification_id sequence must be a positive integer"),
        ("test_polygon@18446744073709551616", 400, "notification_id sequence must be a positive integer"),
        ("test_polygon@0", 400, "notification_id sequence must be greater than zero"),
        ("test_polygon@18446744073709551615", 404, "Notification not found"),
        ("nobody@1", 404, "Notification not found"),
    ],
)
async def test_ids_that_name_nothing(rig: NotifyRig, given: str, status: int, says: str) -> None:
    answer = await delete(rig, given)
    assert answer.status_code == status
    assert answer.json() == {
        "success": False,
        "message": says,
        "notification_id": given,
        "request_id": answer.headers["x-request-id"],
    }


@pytest.mark.parametrize("name", ["test_polygon", "Test_Polygon", "polygon", "POLYGON"])
async def test_a_stream_is_wiped_by_either_name(each: NotifyRig, name: str) -> None:
    for _ in range(3):
        await each.notify()
    await each.notify("fires", number=1, area="(0,0,0,1,1,1,0,0)")
    async with each.watch() as watching:
        await watching.until("heartbeat")
        answer = await wipe(each, {"stream_name": name, "other": 1})
        request_id = answer.headers["x-request-id"]
        assert answer.text == (
            f'{{"success":true,"message":"Successfully wiped stream: {name}","request_id":"{request_id}"}}'
        )
        assert await left(each) == []
        await each.notify()
        await watching.until("test_polygon@4")  # numbers go on, and so do watches
    assert await left(each) == ["test_polygon@4"]
    fires = await each.replay("fires", identifier={"number": 1, "area": "(0,0,0,1,1,1,0,0)"}, from_id="1")
    assert fires.names.count("replay") == 1
    assert "history_gap" not in fires.text


async def test_wiping_what_is_not_there(rig: NotifyRig) -> None:
    answer = await wipe(rig, {"stream_name": "nope"})
    assert answer.status_code == 404
    body = answer.json()
    assert list(body) == ["success", "message", "request_id"]
    assert body["success"] is False
    assert "mars" in body["message"]
    assert (await wipe(rig, {"stream_name": "mars"})).status_code == 200  # empty, but there


async def test_a_wipe_whose_body_cannot_be_read(each: NotifyRig) -> None:
    for content, media in (
        (b"", "application/json"),
        (b"{", "application/json"),
        (b'{"stream_name":1}', "application/json"),
        (b"{}", "application/json"),
        (b'{"stream_name":"mars"}', "text/plain"),
    ):
        answer = await each.client.request(
            "DELETE", "/api/v1/admin/wipe/stream", content=content, headers={"Content-Type": media}
        )
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert not answer.text.startswith("{")
        assert answer.headers["x-request-id"]


async def test_everything_is_wiped() -> None:
    async with running(options(strict=False)) as rig:
        await rig.notify()
        await rig.notify("Storm", n=1)
        answer = await rig.client.delete("/api/v1/admin/wipe/all")
        request_id = answer.headers["x-request-id"]
        assert answer.text == f'{{"success":true,"message":"Successfully wiped all data","request_id":"{request_id}"}}'
        assert await left(rig) == []
        assert (await rig.replay("Storm", identifier={"n": 1}, from_id="1")).names.count("replay") == 0
        await rig.notify("Storm", n=1)
        assert (await delete(rig, "storm@2")).status_code == 200
        assert (await wipe(rig, {"stream_name": "STORM"})).status_code == 200


async def test_the_prefixes_of_a_key_hold_for_taking_out_too() -> None:
    keys = {"SEAMARK_API_KEYS": "boss,tenant:admin:test_"}
    async with running(options(strict=False), environment=keys) as rig:
        rig.client.headers["Authorization"] = "Bearer boss"
        await rig.notify()
        await rig.notify()
        await rig.notify("fires", number=1, area="(0,0,0,1,1,1,0,0)")
        await rig.notify("storm", n=1)
        rig.client.headers["Authorization"] = "Bearer tenant"
        for given in ("fires@1", "FIRES@1", "fires@9", "storm@1", "nope@1"):
            answer = await delete(rig, given)
            assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN"), given
        for name in ("fires", "storm", "nope", ""):
            assert (await wipe(rig, {"stream_name": name})).json()["code"] == "FORBIDDEN"
        assert (await rig.client.delete("/api/v1/admin/wipe/all")).json()["code"] == "FORBIDDEN"
        assert (await delete(rig, "polygon@1")).status_code == 200  # the base of test_polygon
        assert (await delete(rig, "test_polygon@0")).status_code == 400
        assert (await wipe(rig, {"stream_name": "TEST_POLYGON"})).status_code == 200
        rig.client.headers["Authorization"] = "Bearer boss"
        assert await left(rig) == []
        assert (await rig.replay("storm", identifier={"n": 1}, from_id="1")).names.count("replay") == 1
        assert (await rig.client.delete("/api/v1/admin/wipe/all")).status_code == 200
