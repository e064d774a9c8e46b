"""Routers over HTTP: what is answered, what is refused, in which order, and to whom."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.topics.rig import TopicsRig

ONE = "/routers/jobs-%3Eaudit"
ENDS = {"source": "jobs", "dest": "audit"}
DEFINITION = {
    **ENDS, "preserve_node": True, "preserve_tag": True, "filter": None, "allow_cycle": False, "guarantee": "at_least_once",
}  # fmt: skip


async def refusal(rig: TopicsRig, status: int, path: str, body: object, **more: Any) -> Any:
    return (await rig.call("PUT", path, body, status=status, **more))["error"]


def without_time(answer: Any) -> Any:
    assert answer.pop("performance").keys() == {"server_total_ms"}
    return answer


async def test_a_router_is_made_and_put_again(rig: TopicsRig) -> None:
    made = without_time(await rig.call("PUT", ONE, ENDS, status=201))
    assert made == {"router": "jobs->audit", "created": True, **DEFINITION}
    assert list(made) == ["router", "created", *DEFINITION]
    again = await rig.call("PUT", ONE, ENDS, status=200)
    assert without_time(again) == {**made, "created": False}
    for topic in ("jobs", "audit"):
        assert (await rig.state(topic))["config"]["durability"] == "disk"


async def test_a_router_tells_what_it_made_up_to_now(rig: TopicsRig) -> None:
    await rig.call("PUT", ONE, ENDS)
    await rig.write("jobs", 1, 2, 3)
    told = without_time(await rig.call("GET", ONE))
    assert told == {"router": "jobs->audit", **DEFINITION, "forwarded_total": 3}


async def test_a_router_behind_others_tells_what_it_made_up_to_now(rig: TopicsRig) -> None:
    await rig.call("PUT", "/routers/1", {"source": "a", "dest": "b"})
    await rig.call("PUT", "/routers/2", {"source": "b", "dest": "c"})
    await rig.write("a", 1)
    assert (await rig.call("GET", "/routers/2"))["forwarded_total"] == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["tag", "Eq", "x"], ["tag", "Eq", "x"]),
        (["tag", "Glob", "x*"], ["tag", "Glob", "x*"]),
        ("x", ["tag", "Eq", "x"]),
        ("x*", ["tag", "Glob", "x*"]),
        ("*", ["tag", "Glob", "*"]),
        (None, None),
    ],
)
async def test_a_filter_is_told_as_a_tuple(rig: TopicsRig, given: object, told: object) -> None:
    made = await rig.call("PUT", ONE, {**ENDS, "filter": given})
    assert made["filter"] == told
    assert (await rig.call("GET", ONE))["filter"] == told


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": "jobs"},
        {"source": "jobs", "dest": "jobs"},
        {"source": "jobs", "dest": "-"},
        {"source": "a>b", "dest": "audit"},
        {"source": 1, "dest": "audit"},
        {**ENDS, "filter": ["tag", "Glob", "x"]},
        {**ENDS, "filter": ["node", "Eq", "x"]},
        {**ENDS, "filter": ["tag", "Eq"]},
        {**ENDS, "filter": 7},
        {**ENDS, "preserve_node": 1},
        {**ENDS, "guarantee": "at_most_once"},
        [],
    ],
)
async def test_what_makes_no_sense_is_refused_and_makes_nothing(rig: TopicsRig, body: object) -> None:
    assert (await refusal(rig, 400, ONE, body))["code"] == "invalid_request"
    assert (await rig.call("GET", "/topics"))["topics"] == []
    assert (await rig.call("GET", "/routers"))["routers"] == []


async def test_a_name_is_checked_when_a_router_is_made(rig: TopicsRig) -> None:
    assert (await refusal(rig, 400, "/routers/%3Ex", ENDS))["code"] == "invalid_request"
    missing = await rig.call("GET", "/routers/%3Ex", status=404)
    assert missing["error"]["code"] == "router_not_found"
    assert missing["error"]["detail"] == {"router": ">x"}
    assert without_time(await rig.call("DELETE", "/routers/%3Ex")) == {"router": ">x", "deleted": False}


async def test_other_media_are_refused_before_the_body_is_read(rig: TopicsRig) -> None:
    answer = await rig.client.put(f"/v0{ONE}", content=b"{", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    answer = await rig.client.put(f"/v0{ONE}")
    assert answer.status_code == 415


async def test_unknown_fields_are_passed_over(rig: TopicsRig) -> None:
    await rig.call("PUT", ONE, {**ENDS, "colour": "blue"}, status=201)


async def test_a_dest_that_is_not_to_be_made_must_be_there(rig: TopicsRig) -> None:
    error = await refusal(rig, 404, ONE, {**ENDS, "create_dest": False})
    assert (error["code"], error["detail"]) == ("topic_not_found", {"topic": "audit"})
    assert (await rig.call("GET", "/topics"))["topics"] == [], "the source was not made either"
    await rig.call("PUT", "/topics/audit", {"durable": True})
    await rig.call("PUT", ONE, {**ENDS, "create_dest": False}, status=201)
    assert (await rig.state("audit"))["config"]["durable"] is True, "a topic that is there stays as it is"


async def test_conflicts_say_what_is_in_the_way_and_leave_no_topics(rig: TopicsRig) -> None:
    await rig.call("PUT", "/routers/r1", {"source": "a", "dest": "b"})
    await rig.call("PUT", "/routers/r2", {"source": "b", "dest": "c"})
    fan_in = await refusal(rig, 409, "/routers/r3", {"source": "new", "dest": "b"})
    assert (fan_in["code"], fan_in["detail"]) == (
        "topic_exists_incompatible",
        {"topic": "b", "reason": "router_dest_fan_in"},
    )
    moved = await refusal(rig, 409, "/routers/r1", {"source": "a", "dest": "new"})
    assert (moved["code"], moved["detail"]["reason"]) == ("topic_exists_incompatible", "router_repoint_forbidden")
    cycle = await refusal(rig, 409, "/routers/r3", {"source": "c", "dest": "a"})
    assert (cycle["code"], cycle["detail"]) == ("router_cycle", {"cycle": ["c", "a", "b", "c"]})
    assert [row["topic"] for row in (await rig.call("GET", "/topics"))["topics"]] == ["a", "b", "c"]
    await rig.call("PUT", "/routers/r3", {"source": "c", "dest": "a", "allow_cycle": True}, status=201)


async def test_only_so_many_routers_and_topics_may_be_made() -> None:
    rig = TopicsRig({"SEAMARK_MAX_ROUTERS": "1", "SEAMARK_MAX_TOPICS": "3"})
    await rig.call("PUT", "/routers/r1", {"source": "a", "dest": "b"})
    assert (await refusal(rig, 429, "/routers/r2", {"source": "a", "dest": "c"}))["detail"] == {
        "limit": "max_routers",
        "max": 1,
    }
    await rig.call("PUT", "/routers/r1", {"source": "a", "dest": "b", "preserve_tag": False}, status=200)
    await rig.call("DELETE", "/routers/r1")
    error = await refusal(rig, 429, "/routers/r2", {"source": "x", "dest": "y"})
    assert error["detail"] == {"limit": "max_topics", "max": 3}
    assert len((await rig.call("GET", "/topics"))["topics"]) == 2
    await rig.call("PUT", "/routers/r2", {"source": "a", "dest": "c"}, status=201)
    await rig.close()


async def test_a_list_is_in_order_filtered_and_in_pages(rig: TopicsRig) -> None:
    for name, source, dest in [("b", "s1", "d1"), ("a->x", "s1", "d2"), ("c", "s2", "d3"), ("ab", "s2", "d4")]:
        await rig.call("PUT", f"/routers/{name}", {"source": source, "dest": dest, "guarantee": "exactly_once"})
    await rig.write("s1", 1)
    await rig.call("GET", "/routers/b")
    rows = (await rig.call("GET", "/routers"))["routers"]
    assert [row["router"] for row in rows] == ["a->x", "ab", "b", "c"]
    assert rows[2] == {
        "router": "b", "source": "s1", "dest": "d1", "guarantee": "exactly_once", "forwarded_total": 1,
    }  # fmt: skip
    for query, names in {
        "prefix=a": ["a->x", "ab"],
        "source=s1": ["a->x", "b"],
        "dest=d3": ["c"],
        "source=s2&prefix=a": ["ab"],
        "source=none": [],
    }.items():
        found = await rig.call("GET", f"/routers?{query}")
        assert [row["router"] for row in found["routers"]] == names
        assert "next_cursor" not in found
    names, cursor = [], ""
    while True:
        page = await rig.call("GET", f"/routers?page_size=1&cursor={cursor}")
        names += [row["router"] for row in page["routers"]]
        if "next_cursor" not in page:
            break
        cursor = page["next_cursor"]
    assert names == ["a->x", "ab", "b", "c"]
    assert (await rig.call("GET", "/routers?cursor=!!!", status=400))["error"]["code"] == "invalid_request"


async def test_copies_outlive_their_router(rig: TopicsRig) -> None:
    await rig.call("PUT", ONE, ENDS)
    await rig.write("jobs", 1)
    assert [record["data"] for record in (await rig.diff("audit"))["records"]] == [1]
    assert without_time(await rig.call("DELETE", ONE)) == {"router": "jobs->audit", "deleted": True}
    await rig.call("GET", ONE, status=404)
    await rig.write("jobs", 2)
    assert [record["data"] for record in (await rig.diff("audit"))["records"]] == [1]
    await rig.call("PUT", ONE, ENDS, status=201)
    await rig.write("jobs", 3)
    assert [record["data"] for record in (await rig.diff("audit"))["records"]] == [1, 3], "nothing older is fetched"


async def test_a_topic_takes_its_routers_along(rig: TopicsRig) -> None:
    for name, source, dest in [("z", "a", "b"), ("y", "b", "c"), ("x", "c", "d")]:
        await rig.call("PUT", f"/routers/{name}", {"source": source, "dest": dest})
    assert (await rig.call("DELETE", "/topics/b"))["routers_removed"] == ["y", "z"]
    assert [row["router"] for row in (await rig.call("GET", "/routers"))["routers"]] == ["x"]
    await rig.write("a", 1)
    await rig.call("GET", "/topics/b", status=404)
    await rig.write("c", 1)
    assert (await rig.diff("d"))["head_seq"] == 1


async def test_state_diff_and_claim_read_what_was_written(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/work", {"type": "queue"})
    await rig.call("PUT", "/routers/1", {"source": "a", "dest": "b"})
    await rig.call("PUT", "/routers/2", {"source": "b", "dest": "work"})
    await rig.write("a", "job")
    claimed = await rig.call("POST", "/topics/work/claim", {"node": "w"})
    assert [job["data"] for job in claimed["claimed"]] == ["job"]
    await rig.write("a", "more")
    assert (await rig.state("b"))["count"] == 2
    await rig.write("a", "again")
    assert (await rig.diff("work", 2))["records"][0]["data"] == "again"


async def test_a_long_poll_on_a_dest_hears_of_a_copy(rig: TopicsRig) -> None:
    await rig.call("PUT", ONE, ENDS)
    await rig.write("jobs", 1)
    first = await rig.diff("audit")
    waiting = rig.diff("audit", first["next_from_seq"], wait_ms=20_000)
    task = asyncio.create_task(waiting)
    await asyncio.sleep(0.01)
    await rig.write("jobs", 2)
    assert [record["data"] for record in (await task)["records"]] == [2]


async def test_a_full_dest_takes_more_as_soon_as_records_are_deleted(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/audit", {"discard": "reject", "cap_records": 2})
    await rig.call("PUT", ONE, ENDS)
    await rig.write("jobs", 1, 2, 3)
    assert (await rig.state("audit"))["head_seq"] == 2
    watching = asyncio.create_task(rig.diff("audit", 2, wait_ms=20_000))
    await rig.call("POST", "/topics/audit/delete", {"before_seq": 2})
    assert [record["data"] for record in (await watching)["records"]] == [3]


async def test_readers_of_a_dest_are_told_what_its_source_lost(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/jobs", {"cap_records": 2})
    await rig.call("PUT", ONE, ENDS)
    await rig.write("jobs", 1)
    assert (await rig.diff("audit"))["next_from_seq"] == 1
    await rig.write("jobs", *range(2, 8))  # four of them are over the cap before a router can see them
    page = await rig.diff("audit", 1)
    assert page["tombstone"] == {
        "gap_from": 2, "gap_to": 5, "reason": "source_trim", "missed_estimate": 4, "earliest_seq": 1, "head_seq": 7,
    }  # fmt: skip
    assert [record["data"] for record in page["records"]] == [6, 7]
    assert [record["data"] for record in (await rig.diff("audit"))["records"]] == [1], "what came before is not hidden"


async def test_nothing_of_hops_or_subjects_is_shown(rig: TopicsRig) -> None:
    await rig.call("PUT", "/routers/there", {"source": "a", "dest": "b", "allow_cycle": True})
    await rig.call("PUT", "/routers/back", {"source": "b", "dest": "a", "allow_cycle": True})
    await rig.write("a", 1, node="n")
    for topic in ("a", "b"):
        for record in (await rig.diff(topic, include_tags=True))["records"]:
            assert set(record) == {"$seq", "$ts", "$node", "data"}


@pytest.fixture
def keys() -> dict[str, str]:
    return {"SEAMARK_API_KEYS": "all,one::t1:,reader:read:t1:,admin:admin:t1:"}


async def test_a_key_needs_all_three_names(keys: dict[str, str]) -> None:
    rig = TopicsRig(keys)
    mine = {"source": "t1:a", "dest": "t1:b"}
    await rig.call("PUT", "/routers/t1:r", mine, key="one", status=201)
    for path, body, detail in [
        ("/routers/r", mine, None),
        ("/routers/t1:r2", {"source": "t2:a", "dest": "t1:c"}, {"topic": "t2:a"}),
        ("/routers/t1:r2", {"source": "t1:a", "dest": "t2:c"}, {"topic": "t2:c"}),
        ("/routers/t1:r2", {"source": "t2:a", "dest": "-"}, {"topic": "t2:a"}),
    ]:
        error = await refusal(rig, 403, path, body, key="one")
        assert (error["code"], error.get("detail")) == ("forbidden", detail)
    await rig.call("PUT", "/routers/t1:across", {"source": "t1:a", "dest": "t2:x"}, key="all")
    await rig.call("PUT", "/routers/x", {"source": "t1:a", "dest": "t1:y"}, key="all")
    assert [row["router"] for row in (await rig.call("GET", "/routers", key="one"))["routers"]] == ["t1:r"]
    assert len((await rig.call("GET", "/routers", key="all"))["routers"]) == 3
    for path in ("/routers/t1:across", "/routers/x"):
        await rig.call("GET", path, key="one", status=403)
        await rig.call("DELETE", path, key="one", status=403)
    await rig.call("GET", "/routers/t1:none", key="one", status=404)
    await rig.call("GET", "/routers/t1%3Ar", key="one", status=200)
    await rig.close()


async def test_scopes_of_the_routes(keys: dict[str, str]) -> None:
    rig = TopicsRig(keys)
    mine = {"source": "t1:a", "dest": "t1:b"}
    await rig.call("PUT", "/routers/t1:r", mine, status=401)
    await rig.call("PUT", "/routers/t1:r", mine, key="reader", status=403)
    await rig.call("PUT", "/routers/t1:r", mine, key="admin", status=201)
    await rig.call("GET", "/routers/t1:r", key="admin", status=403)
    await rig.call("GET", "/routers/t1:r", key="reader")
    await rig.call("DELETE", "/routers/t1:r", key="reader", status=403)
    await rig.call("DELETE", "/routers/t1:r", key="one")
    await rig.close()


def test_the_same_over_sockets(client: httpx.Client) -> None:
    made = client.put("/v0/routers/s-%3Ed", json={"source": "sock", "dest": "sock.copy"})
    assert (made.status_code, made.json()["router"]) == (201, "s->d")
    client.post("/v0/topics/sock", json={"records": [{"data": 1}]})
    assert client.post("/v0/topics/sock.copy/diff", json={}).json()["records"][0]["data"] == 1
    assert client.post("/v0/routers/s-%3Ed", json={}).status_code == 405
