"""Tokens: which count, which do not, and who they are about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.access.jwt import INVALID, Tokens
from seamark.access.user import User
from seamark.clock import NS_PER_SECOND, ManualClock
from seamark.errors import BadConfig, Unauthenticated
from seamark.kinds import Secret
from tests.access.tokens import SECRET, encoded, signed

NOW = 1_800_000_000
CLAIMS: dict[str, Any] = {"username": "alice", "exp": NOW + 100}


@pytest.fixture
def tokens() -> Tokens:
    return Tokens(Secret(SECRET), ManualClock(NOW * NS_PER_SECOND))


def refused(tokens: Tokens, token: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        tokens.user(token)
    assert caught.value.message == INVALID


def test_the_user_of_a_token(tokens: Tokens) -> None:
    claims = CLAIMS | {
        "sub": "other",
        "realm": "ocean",
        "roles": ["a", "b", "a"],
        "attributes": {"x": [1]},
        "aud": "x",
        "iat": 1,
    }
    user = tokens.user(signed(claims))
    assert user == User(name="alice", realm="ocean", roles=frozenset("ab"), attributes={"x": [1]})
    assert not user.can("read")
    assert not user.may("read", "anything")


def test_who_it_is_about_is_the_username_else_the_subject(tokens: Tokens) -> None:
    assert tokens.user(signed({"sub": "bob", "exp": NOW})).name == "bob"
    assert tokens.user(signed({"sub": "bob", "username": None, "exp": NOW})).name == "bob"
    for claims in ({}, {"username": ""}, {"username": "", "sub": "bob"}, {"sub": 7}, {"username": ["alice"]}):
        refused(tokens, signed({"exp": NOW, **claims}))


def test_what_is_missing_of_realm_and_roles_is_nothing(tokens: Tokens) -> None:
    assert tokens.user(signed(CLAIMS)) == tokens.user(signed(CLAIMS | {"realm": None})) == User(name="alice")
    refused(tokens, signed(CLAIMS | {"roles": "admin"}))
    refused(tokens, signed(CLAIMS | {"roles": [1]}))


def test_a_token_ends_a_minute_after_it_says_so(tokens: Tokens) -> None:
    last = NOW - limits.TOKEN_LEEWAY_SECONDS
    assert tokens.user(signed(CLAIMS | {"exp": last})).name == "alice"
    assert tokens.user(signed(CLAIMS | {"exp": float(last) + 0.5})).name == "alice"
    refused(tokens, signed(CLAIMS | {"exp": last - 1}))


def test_a_token_without_an_end_does_not_count(tokens: Tokens) -> None:
    refused(tokens, signed({"username": "alice"}))
    ends: tuple[Any, ...] = (None, True, str(NOW + 100), [], -1)
    for end in ends:
        refused(tokens, signed(CLAIMS | {"exp": end}))


def test_there_is_one_algorithm(tokens: Tokens) -> None:
    good = signed(CLAIMS)
    head, body, signature = good.split(".")
    for algorithm in ("none", "None", "", "HS512", "RS256", "ES256", None, 5):
        refused(tokens, signed(CLAIMS, header={"alg": algorithm}))
        bare = encoded(f'{{"alg":"{algorithm}"}}'.encode())
        refused(tokens, f"{bare}.{body}.")
        refused(tokens, f"{bare}.{body}.{signature}")
    refused(tokens, signed(CLAIMS, header={"typ": "JWT"}))
    refused(tokens, f"{head}.{body}.")
    refused(tokens, f"{head}.{body}")
    refused(tokens, signed(CLAIMS, secret="guessed"))
    refused(tokens, f"{head}.{encoded(b'{}')}.{signature}")


def test_a_public_key_is_no_secret() -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"
    for secret in (pem, '{"kty":"oct","k":"YQ"}', ""):
        with pytest.raises(BadConfig, match=r"auth\.jwt_secret \(file x\)") as caught:
            Tokens(Secret(secret), ManualClock(), place="file x")
        assert not secret or secret not in str(caught.value)


def test_what_is_no_token_is_refused_and_not_more(tokens: Tokens) -> None:
    for text in ("", ".", "..", "a.b.c", "é", signed(b"[1]"), signed(b"{"), signed(b"[" * 5000), "a" * 100_000):
        refused(tokens, text)


@given(st.text(max_size=40), st.binary(max_size=40))
def test_no_text_and_no_signed_bytes_raise_anything_else(text: str, claims: bytes) -> None:
    tokens = Tokens(Secret(SECRET), ManualClock(NOW * NS_PER_SECOND))
    refused(tokens, text)
    refused(tokens, signed(claims))
