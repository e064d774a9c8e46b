from __future__ import annotations

import pytest

from seamark.access.keys import ACTIONS, ANYONE, NOBODY, KeyHolder, KeyRing, parse_keys
from seamark.errors import BadConfig, Unauthenticated


def ring(text: str) -> KeyRing:
    return parse_keys(text, place="test")


def holder(text: str, secret: str = "k") -> KeyHolder:
    principal = ring(text).authenticate([(b"authorization", f"Bearer {secret}".encode())])
    assert isinstance(principal, KeyHolder)
    return principal


@pytest.mark.parametrize(
    ("text", "scopes", "prefixes"),
    [
        ("k", ACTIONS, ()),
        ("k:", ACTIONS, ()),
        ("k:read", {"read"}, ()),
        ("k:R+W", {"read", "write"}, ()),
        ("k:rw", {"read", "write"}, ()),
        ("k:del+a", {"delete", "admin"}, ()),
        ("k:d:tenant42:", {"delete"}, ("tenant42:",)),
        ("k::a|b:c", ACTIONS, ("a", "b:c")),
        (" k : r : a | ", {"read"}, ("a",)),
        ("x, ,k:r,", {"read"}, ()),
    ],
)
def test_entries(text: str, scopes: set[str], prefixes: tuple[str, ...]) -> None:
    found = holder(text)
    assert found.scopes == scopes
    assert found.prefixes == prefixes


@pytest.mark.parametrize("text", ["k:root", "k:r:|", "k:: | ", "k:+", "k:r+", ":read", "k,k", "k:r w"])
def test_bad_entries_stop_the_start(text: str) -> None:
    with pytest.raises(BadConfig) as caught:
        ring(text)
    assert caught.value.fields["name"] == "api_keys"
    assert caught.value.fields["place"] == "test"


def test_may_needs_scope_and_prefix() -> None:
    found = holder("k:read:tenant42:|demo")
    assert found.may("read", "tenant42:jobs")
    assert found.may("read", "demo-1")
    assert not found.may("read", "tenant4")
    assert not found.may("write", "tenant42:jobs")
    assert found.can("read")
    assert not found.can("write")


def test_without_keys_everyone_is_welcome() -> None:
    principal = ring("").authenticate([(b"authorization", b"Basic nonsense")])
    assert principal is ANYONE
    assert principal.may("admin", "x")
    assert principal.can("admin")
    assert not NOBODY.may("read", "x")
    assert not NOBODY.can("read")


@pytest.mark.parametrize("header", [b"", b"Bearer", b"Bearer wrong", b"bearer k", b"Basic k", b"k"])
def test_wrong_credentials(header: bytes) -> None:
    with pytest.raises(Unauthenticated):
        ring("k").authenticate([(b"authorization", header)])


def test_a_key_in_the_query_does_only_where_it_is_allowed() -> None:
    assert ring("k:r").authenticate([], b"token=k", in_query=True).can("read")
    with pytest.raises(Unauthenticated):
        ring("k:r").authenticate([], b"token=k")


def test_names_do_not_give_the_key_away() -> None:
    assert "secret" not in holder("secret", "secret").name
