from __future__ import annotations

import re
from typing import Any

import msgspec

from seamark.http.openapi import Info, document
from seamark.wire.exchange import Exchange, Headers, Route
from seamark.wire.problem import plain_problem


def nothing(exchange: Exchange) -> None:
    exchange.respond(204, b"")


ROUTES = [
    Route(
        "GET",
        "/raw/{stream}/records",
        nothing,
        "Read",
        "read",
        plain_problem,
        0,
        openapi={
            "parameters": [{"name": "after", "in": "query", "schema": {"type": "integer"}}],
            "responses": {"200": {"description": "A page."}},
        },
    ),
    Route("POST", "/raw/{stream}/records", nothing, "Append", "write", plain_problem, 0),
    Route("GET", "/files/{rest:path}", nothing, "Files", "", plain_problem, 0),
    Route("GET", "/", nothing, "Root", "", plain_problem, 0),
]


def made() -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(document(ROUTES, Info(title="T", version="1")))
    return decoded


def test_rows_become_operations() -> None:
    paths = made()["paths"]
    assert set(paths) == {"/raw/{stream}/records", "/files/{rest}", "/"}
    read = paths["/raw/{stream}/records"]["get"]
    assert [row["name"] for row in read["parameters"]] == ["stream", "after"]
    assert read["security"] == [{"bearer": ["read"]}]
    assert set(read["responses"]) == {"default", "200"}
    assert paths["/files/{rest}"]["get"]["security"] == []


def test_an_example_says_what_form_it_has_and_an_error_is_that_of_its_surface() -> None:
    def problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
        return 400, b'{"wrong":"' + str(error).encode() + b'"}', ()

    def spoken(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
        return 400, b"no", ((b"Content-Type", b"text/plain"),)

    said = {"application/json": {"schema": {"type": "object"}, "example": {"seqs": [1], "more": None}}}
    told = {"application/json": {"schema": {"type": "object", "title": "told"}, "example": {}}}
    operation = {"requestBody": {"content": told}, "responses": {"200": {"description": "A page.", "content": said}}}
    first, second = (
        Route("GET", "/a", nothing, "A", "", problem, 0, openapi=operation),
        Route("GET", "/b", nothing, "B", "", spoken, 0),
    )
    paths = msgspec.json.decode(document([first, second], Info(title="T", version="1")))["paths"]
    one, other = paths["/a"]["get"], paths["/b"]["get"]
    assert one["responses"]["200"]["content"]["application/json"]["schema"] == {
        "type": "object",
        "properties": {"seqs": {"type": "array", "items": {"type": "integer"}}, "more": {}},
    }
    assert one["requestBody"]["content"]["application/json"]["schema"] == {"type": "object", "title": "told"}
    error = one["responses"]["default"]["content"]["application/json"]
    assert error["schema"] == {"type": "object", "properties": {"wrong": {"type": "string"}}}
    assert other["responses"]["default"]["content"] == {"text/plain": {"schema": {"type": "string"}, "example": "no"}}


def test_the_document_keeps_the_rules_of_openapi_3_1() -> None:
    whole = made()
    assert whole["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(whole["info"])
    ids = []
    for path, item in whole["paths"].items():
        assert path.startswith("/")
        for method, operation in item.items():
            assert method in {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
            ids.append(operation["operationId"])
            assert operation["responses"]
            assert all(response["description"] for response in operation["responses"].values())
            declared = {row["name"] for row in operation.get("parameters", []) if row["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path))
            assert all(row["required"] for row in operation.get("parameters", []) if row["in"] == "path")
            for requirement in operation["security"]:
                assert set(requirement) <= set(whole["components"]["securitySchemes"])
    assert len(ids) == len(set(ids))
    assert b"$ref" not in document(ROUTES, Info(title="T", version="1"))
