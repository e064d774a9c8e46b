"""The route table: from a method and a path to a row and its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from seamark import limits
from seamark.errors import BadRequest, MethodNotAllowed, RouteNotFound
from seamark.wire.exchange import Route

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PARAMETER = re.compile(r"\{([a-z_][a-z0-9_]*)(:path)?\}")


class Match(NamedTuple):
    """A request's row. `params` and `path` are percent-decoded; `params` is shared between requests: do not change."""

    route: Route
    params: Mapping[str, str]
    path: str


class _Node:
    """One segment's choices: exact words first, then a parameter, then a tail that takes the rest."""

    __slots__ = ("parameter", "routes", "tail", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, tuple[Route, tuple[str, ...]]] = {}
        self.tail: dict[str, tuple[Route, tuple[str, ...]]] = {}


class RouteTable:
    """All routes. Paths are compared segment by segment before decoding, so an escaped slash never splits one."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        self._found: dict[tuple[str, str], Match] = {}
        for route in self.routes:
            self._add(route)

    def find(self, method: str, raw_path: str) -> Match | None:
        """The row that answers, or None. Raises BadRequest for a path that cannot be decoded."""
        key = (method, raw_path)
        match = self._found.get(key)
        if match is None:
            match = self._search(method, raw_path)
            if match is not None and len(raw_path) <= limits.ROUTE_CACHE_PATH_BYTES:
                if len(self._found) >= limits.ROUTE_CACHE_MAX:
                    self._found.clear()
                self._found[key] = match
        return match

    def resolve(self, method: str, raw_path: str) -> Match:
        """Like `find`, but says what is wrong: RouteNotFound, or MethodNotAllowed with the methods that would do."""
        match = self.find(method, raw_path)
        if match is not None:
            return match
        allow = self.allowed(raw_path)
        if allow:
            raise MethodNotAllowed(f"{method} is not served here", allow=allow)
        raise RouteNotFound("there is nothing at this path")

    def allowed(self, raw_path: str) -> tuple[str, ...]:
        """Methods that this path serves, in order; empty when the path is unknown."""
        methods = {method for routes, _ in self._places(_segments(raw_path)) for method in routes}
        if "GET" in methods:
            methods.add("HEAD")
        return (*sorted(methods - {"OPTIONS"}), "OPTIONS") if methods else ()

    def neighbour(self, raw_path: str) -> Route | None:
        """Any row of this path, whatever its method: its surface owns the answer to a wrong method."""
        for routes, _ in self._places(_segments(raw_path)):
            for route, _ in routes.values():
                return route
        return None

    def _add(self, route: Route) -> None:
        node = self._root
        names: list[str] = []
        segments = _segments(route.path)
        for position, segment in enumerate(segments):
            parameter = _PARAMETER.fullmatch(segment)
            if parameter is None:
                assert "{" not in segment, f"{route.path}: a parameter spans a whole segment"
                node = node.words.setdefault(segment, _Node())
                continue
            names.append(parameter[1])
            if parameter[2]:
                assert position == len(segments) - 1, f"{route.path}: a tail comes last"
                assert route.method not in node.tail, f"{route.method} {route.path} is there twice"
                node.tail[route.method] = (route, tuple(names))
                return
            if node.parameter is None:
                node.parameter = _Node()
            node = node.parameter
        assert route.method not in node.routes, f"{route.method} {route.path} is there twice"
        node.routes[route.method] = (route, tuple(names))

    def _search(self, method: str, raw_path: str) -> Match | None:
        for routes, values in self._places(_segments(raw_path)):
            found = routes.get(method)
            if found is None and method == "HEAD":
                found = routes.get("GET")
            if found is not None:
                route, names = found
                decoded = [percent_decoded(value) for value in values]
                return Match(route, dict(zip(names, decoded, strict=True)), percent_decoded(raw_path))
        return None

    def _places(
        self, segments: list[str]
    ) -> Iterable[tuple[dict[str, tuple[Route, tuple[str, ...]]], tuple[str, ...]]]:
        """Every node the path can mean, best first, with the raw values of its parameters."""
        waiting: list[tuple[_Node, int, tuple[str, ...]]] = [(self._root, 0, ())]
        tails = []
        while waiting:
            node, at, values = waiting.pop()
            if node.tail and at < len(segments):
                tails.append((node.tail, (*values, "/".join(segments[at:]))))
            if at == len(segments):
                if node.routes:
                    yield node.routes, values
                continue
            segment = segments[at]
            if node.parameter is not None and segment:
                waiting.append((node.parameter, at + 1, (*values, segment)))
            word = node.words.get(segment)
            if word is None and "%" in segment and not _BAD_ESCAPE.search(segment):
                word = node.words.get(unquote_to_bytes(segment).decode("utf-8", "replace"))
            if word is not None:
                waiting.append((word, at + 1, values))
        yield from reversed(tails)


def percent_decoded(text: str) -> str:
    """Strict: a broken escape or broken UTF-8 is refused instead of guessed at."""
    if "%" not in text:
        return text
    if _BAD_ESCAPE.search(text):
        raise BadRequest("the path holds a broken percent escape")
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]
