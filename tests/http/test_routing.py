from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadRequest, MethodNotAllowed, RouteNotFound
from seamark.http.routing import RouteTable, percent_decoded
from seamark.wire.exchange import Exchange, Route
from seamark.wire.problem import plain_problem


def nothing(exchange: Exchange) -> None:
    exchange.respond(204, b"")


def row(method: str, path: str) -> Route:
    return Route(method, path, nothing, path, "", plain_problem, 0)


TABLE = RouteTable(
    [
        row("GET", "/"),
        row("GET", "/raw"),
        row("GET", "/raw/{stream}/records"),
        row("POST", "/raw/{stream}/records"),
        row("GET", "/raw/all/records"),
        row("DELETE", "/raw/{stream}"),
        row("PUT", "/raw/{stream}/{part}"),
        row("GET", "/files/{rest:path}"),
        row("GET", "/files/index"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "pattern", "params"),
    [
        ("GET", "/", "/", {}),
        ("GET", "/raw", "/raw", {}),
        ("GET", "/raw/a/records", "/raw/{stream}/records", {"stream": "a"}),
        ("HEAD", "/raw/a/records", "/raw/{stream}/records", {"stream": "a"}),
        ("POST", "/raw/a/records", "/raw/{stream}/records", {"stream": "a"}),
        ("GET", "/raw/all/records", "/raw/all/records", {}),
        ("POST", "/raw/all/records", "/raw/{stream}/records", {"stream": "all"}),
        ("GET", "/raw/a%2Fb/records", "/raw/{stream}/records", {"stream": "a/b"}),
        ("GET", "/raw/%C3%A9/records", "/raw/{stream}/records", {"stream": "é"}),
        ("GET", "/r%61w", "/raw", {}),
        ("DELETE", "/raw/a", "/raw/{stream}", {"stream": "a"}),
        ("PUT", "/raw/a/b", "/raw/{stream}/{part}", {"stream": "a", "part": "b"}),
        ("GET", "/files/a/b/c.txt", "/files/{rest:path}", {"rest": "a/b/c.txt"}),
        ("GET", "/files/index", "/files/index", {}),
        ("GET", "/files/", "/files/{rest:path}", {"rest": ""}),
    ],
)
def test_paths_find_their_rows(method: str, path: str, pattern: str, params: dict[str, str]) -> None:
    for _ in range(2):  # searched, then remembered
        match = TABLE.find(method, path)
        assert match is not None
        assert (match.route.path, match.params) == (pattern, params)


@pytest.mark.parametrize("path", ["", "/Raw", "/raw/", "//raw", "/raw//records", "/raw/a/records/", "/raw/a/b/c", "/x"])
def test_unknown_paths_are_not_guessed_at(path: str) -> None:
    assert TABLE.find("GET", path) is None
    with pytest.raises(RouteNotFound):
        TABLE.resolve("GET", path)


def test_a_wrong_method_names_the_right_ones() -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        TABLE.resolve("PATCH", "/raw/a/records")
    assert caught.value.fields["allow"] == ("GET", "HEAD", "POST", "PUT", "OPTIONS")
    neighbour = TABLE.neighbour("/raw/a")
    assert neighbour is not None
    assert neighbour.method == "DELETE"


@pytest.mark.parametrize("path", ["/raw/a%/records", "/raw/a%2/records", "/raw/%zz/records", "/raw/%ff/records"])
def test_broken_escapes_are_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        TABLE.find("GET", path)


def test_a_path_is_in_the_table_once() -> None:
    with pytest.raises(AssertionError):
        RouteTable([row("GET", "/a/{b}"), row("GET", "/a/{c}")])


def test_remembered_paths_are_bounded() -> None:
    table = RouteTable([row("GET", "/a/{b}")])
    for number in range(limits.ROUTE_CACHE_MAX + 10):
        assert table.find("GET", f"/a/{number}") is not None
    table.find("GET", "/a/" + "x" * limits.ROUTE_CACHE_PATH_BYTES)
    assert len(table._found) == 10


@given(st.text(min_size=1, max_size=40))
def test_any_parameter_comes_back_as_it_was(text: str) -> None:
    try:
        escaped = quote(text, safe="")
    except UnicodeEncodeError:
        return
    match = TABLE.find("GET", f"/raw/{escaped}/records")
    assert match is not None
    assert match.params == {"stream": text} or text == "all"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_any_path_is_matched_missed_or_refused(text: str) -> None:
    try:
        match = TABLE.find("GET", "/" + text)
    except BadRequest:
        return
    if match is not None:
        assert match.path == percent_decoded("/" + text)


def test_options_is_allowed_once_also_where_a_row_answers_it() -> None:
    table = RouteTable([row("POST", "/page"), row("OPTIONS", "/page")])
    assert table.allowed("/page") == ("POST", "OPTIONS")
    assert table.resolve("OPTIONS", "/page").route.method == "OPTIONS"
