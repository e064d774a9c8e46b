"""The OpenAPI 3.1 document, made from the same rows that route requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from seamark.errors import BadRequest
from seamark.http.problems import media_of
from seamark.wire.exchange import Route
from seamark.wire.shape import of_example

_PARAMETER = re.compile(r"\{([a-z_][a-z0-9_]*)(:path)?\}")
_SOME_ID = "67bef147-c8c1-4b30-807d-b809590232e9"
_METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """What the rows cannot know."""

    title: str
    version: str
    description: str = ""
    server_url: str = "/"


def document(routes: Iterable[Route], info: Info) -> bytes:
    """The whole document as JSON."""
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        if route.method in _METHODS:
            path = _PARAMETER.sub(r"{\1}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = operation(route)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": info.title, "version": info.version, "description": info.description},
            "servers": [{"url": info.server_url}],
            "paths": paths,
            "components": {
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def operation(route: Route) -> dict[str, object]:
    """One row as an operation object: what the row says, completed with what the path and the scope imply."""
    given = dict(route.openapi or {})
    parameters = list(given.pop("parameters", ()))  # type: ignore[call-overload]
    described = {(row.get("in"), row.get("name")) for row in parameters}
    implied = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name, _ in _PARAMETER.findall(route.path)
        if ("path", name) not in described
    ]
    made: dict[str, object] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "tags": [route.path.split("/")[1] or "server"],
        "security": [{"bearer": [route.action]}] if route.action else [],
        "responses": {"200": {"description": "OK"}},
        **given,
    }
    if implied or parameters:
        made["parameters"] = [*implied, *parameters]
    responses = made["responses"]
    assert isinstance(responses, dict)
    made["responses"] = {
        "default": _problem(route),
        **{status: _shaped(answer) for status, answer in responses.items()},
    }
    if "requestBody" in made:
        made["requestBody"] = _shaped(made["requestBody"])
    return made


def _problem(route: Route) -> dict[str, object]:
    """What the row answers when something is wrong, in the words of its surface."""
    _, body, headers = route.problem(BadRequest("what is wrong with it"), _SOME_ID)
    media = media_of(headers)[0].decode()
    example = msgspec.json.decode(body) if media.startswith("application/json") else body.decode()
    content = {media: {"schema": of_example(example), "example": example}}
    return {"description": "Not done; the body says why.", "content": content}


def _shaped(part: Any) -> Any:
    """A body or an answer whose schema is only that it is an object gets the members of its example."""
    content = {
        media: {**row, "schema": of_example(row["example"])}
        if row.get("schema") == {"type": "object"} and "example" in row
        else row
        for media, row in part.get("content", {}).items()
    }
    return {**part, "content": content} if content else part


def _operation_id(route: Route) -> str:
    words = re.findall(r"[A-Za-z0-9]+", _PARAMETER.sub(r"by \1", route.path))
    return "_".join([route.method.lower(), *words])
