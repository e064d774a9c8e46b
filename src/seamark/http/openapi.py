"""The OpenAPI 3.1 document, made from the same rows that route requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from seamark.wire.exchange import Route

_PARAMETER = re.compile(r"\{([a-z_][a-z0-9_]*)(:path)?\}")
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
                "schemas": {"Problem": _PROBLEM},
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
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    made["responses"] = {"default": {"description": "Not done; the body says why.", "content": problem}, **responses}
    return made


def _operation_id(route: Route) -> str:
    words = re.findall(r"[A-Za-z0-9]+", _PARAMETER.sub(r"by \1", route.path))
    return "_".join([route.method.lower(), *words])


_PROBLEM = {
    "type": "object",
    "description": "Surfaces with a contract of their own use that contract's envelope instead.",
    "required": ["error", "request_id"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "detail": {"type": "object"},
            },
        },
        "request_id": {"type": "string", "format": "uuid"},
    },
}
