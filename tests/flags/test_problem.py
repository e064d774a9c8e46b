"""Errors in the words of the flags surface."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from seamark import errors
from seamark.errors import SeamarkError
from seamark.flags.problem import flags_problem

REQUEST = "00000000-0000-0000-0000-000000000020"
ULID = "0" * 24 + "10"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.BadRequest("m"), 400, "invalid_request"),
        (errors.BadFilter("m"), 400, "invalid_request"),
        (errors.InvalidSubscription("m", reason="malformed"), 400, "invalid_subscription"),
        (errors.Unauthenticated("m"), 401, "unauthorized"),
        (errors.ClosureTokenInvalid("m"), 401, "closure_token_invalid"),
        (errors.Forbidden("m"), 403, "forbidden"),
        (errors.NamespaceNotFound("m"), 404, "namespace_not_found"),
        (errors.RouteNotFound("m"), 404, "not_found"),
        (errors.MethodNotAllowed("m", allow=("GET",)), 405, "method_not_allowed"),
        (errors.NamespaceExists("m"), 409, "namespace_exists"),
        (errors.VersionConflict("m"), 409, "version_conflict"),
        (errors.ClosureUnavailable("m"), 410, "closure_unavailable"),
        (errors.ArchiveTooLarge("m"), 413, "archive_too_large"),
        (errors.LintFailed("m"), 422, "manifest_lint_failed"),
        (errors.SchemaVersionMismatch("m"), 422, "schema_version_mismatch"),
        (errors.Busy("m"), 429, "rate_limit_exceeded"),
        (errors.WriteFailed("m"), 503, "unavailable"),
    ],
)
def test_kinds_and_their_codes(error: SeamarkError, status: int, code: str) -> None:
    said, body, _ = flags_problem(error, REQUEST)
    assert said == status
    whole = msgspec.json.decode(body)
    assert list(whole) == ["error", "request_id"]
    assert (whole["error"]["code"], whole["error"]["message"], whole["request_id"]) == (code, "m", ULID)


def test_facts_that_are_told() -> None:
    conflict = errors.VersionConflict("m", current_version=7, secret="s")
    assert msgspec.json.decode(flags_problem(conflict, REQUEST)[1])["error"]["details"] == {"current_version": 7}
    assert "details" not in msgspec.json.decode(flags_problem(errors.Forbidden("m", action="x"), REQUEST)[1])["error"]


def test_headers() -> None:
    for error in (errors.Unauthenticated("m"), errors.ClosureTokenInvalid("m")):  # HTTP wants one with every 401
        assert flags_problem(error, REQUEST)[2] == [(b"WWW-Authenticate", b"Bearer")]
    assert flags_problem(errors.Busy("m", retry_after_seconds=3), REQUEST)[2] == [(b"Retry-After", b"3")]
    assert flags_problem(errors.NotReady("m"), REQUEST)[2] == [(b"Retry-After", b"1")]


def test_a_query_that_is_too_long_has_no_body() -> None:
    assert flags_problem(errors.QueryTooLong("m"), REQUEST) == (414, b"", ())


@pytest.mark.parametrize("error", [ValueError("secret"), errors.Corrupt("secret"), SeamarkError("secret")])
def test_what_is_our_fault_says_nothing_of_itself(error: Exception) -> None:
    status, body, _ = flags_problem(error, REQUEST)
    assert (status, msgspec.json.decode(body)["error"]["code"]) == (500, "internal")
    assert b"secret" not in body


def test_every_kind_has_a_word_of_its_own_class() -> None:
    """The nearest listed kind speaks for a kind, and never for one of another status class."""
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, SeamarkError) and kind is not errors.QueryTooLong:
            status, body, _ = flags_problem(kind("m"), REQUEST)
            assert status // 100 == kind.status // 100, kind
            assert msgspec.json.decode(body)["error"]["code"]
