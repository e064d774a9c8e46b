"""What the OpenAPI document says about routers."""

from __future__ import annotations

from seamark.topics.docs import PERFORMANCE, Operation, body, json, query

_BODY = {"source": "orders", "dest": "orders.large", "filter": ["tag", "Glob", "large-*"], "guarantee": "exactly_once"}
_DEFINITION = {
    "source": "orders", "dest": "orders.large", "preserve_node": True, "preserve_tag": True,
    "filter": ["tag", "Glob", "large-*"], "allow_cycle": False, "guarantee": "exactly_once",
}  # fmt: skip
_PUT = {"router": "orders->large", "created": True, **_DEFINITION, "performance": PERFORMANCE}
_GET = {"router": "orders->large", **_DEFINITION, "forwarded_total": 17, "performance": PERFORMANCE}
_ROW = {
    "router": "orders->large", "source": "orders", "dest": "orders.large", "guarantee": "exactly_once",
    "forwarded_total": 17,
}  # fmt: skip

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("GET", "/v0/routers"): (
        "List routers in byte order of name",
        {
            "parameters": [
                query("prefix", "string", "only names that start with this"),
                query("source", "string", "only those that copy from this topic"),
                query("dest", "string", "only those that copy into this topic"),
                query("page_size", "integer", "names in a page, 1 to 1000"),
                query("cursor", "string", "`next_cursor` of the page before"),
            ],
            "responses": {
                "200": json(
                    {"routers": [_ROW], "next_cursor": "eyJhZnRlciI6Im9yZGVycy0-bGFyZ2UifQ==", "performance": PERFORMANCE},
                    "`next_cursor` when there are more",
                )
            },
        },
    ),
    ("PUT", "/v0/routers/{router}"): (
        "Copy what is written to one topic into another, from now on",
        {
            "requestBody": body(_BODY),
            "responses": {
                "201": json(_PUT, "made; missing topics were made as well"),
                "200": json({**_PUT, "created": False}, "it was there; how it copies is replaced, where it leads is not"),
            },
        },
    ),
    ("GET", "/v0/routers/{router}"): (
        "A router, and how many copies it made",
        {"responses": {"200": json(_GET, "brought up to date with its source first")}},
    ),
    ("DELETE", "/v0/routers/{router}"): (
        "Remove a router; its copies stay",
        {"responses": {"200": json({"router": "orders->large", "deleted": True, "performance": PERFORMANCE}, "also when there was none, with `deleted` false")}},
    ),
}  # fmt: skip
