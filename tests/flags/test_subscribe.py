from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadRequest, InvalidSubscription, QueryTooLong
from seamark.flags.subscribe import read_hints, read_parts, read_query


def parts(*values: str, tenant: str = "acme") -> list[tuple[str, str, str]]:
    return [(part.tenant, part.namespace, part.wanted.canonical) for part in read_parts(values, tenant)]


def refused(*values: str, tenant: str = "acme") -> dict[str, object]:
    with pytest.raises(InvalidSubscription) as caught:
        read_parts(values, tenant)
    return caught.value.fields


# -- the query


def test_the_parameters_in_their_order() -> None:
    query = read_query(b"ns=billing:a,b&x=1&since=billing:1&ns=growth:%2A&since=growth:2")
    assert query == (["billing:a,b", "growth:*"], ["billing:1", "growth:2"])


def test_it_is_decoded_before_it_is_read() -> None:
    assert read_query(quote("billing:a,b").encode().join([b"ns=", b""])).ns == ["billing:a,b"]
    assert read_query(b"%6es=billing%3Aa%2cb").ns == ["billing:a,b"]


def test_8192_bytes_and_no_more() -> None:
    assert read_query(b"x" * 8_192) == ([], [])
    with pytest.raises(QueryTooLong):
        read_query(b"x" * 8_193)


@given(st.binary(max_size=60))
def test_any_query_can_be_read(raw: bytes) -> None:
    query = read_query(raw)
    assert all(isinstance(value, str) for value in query.ns + query.since)


@pytest.mark.parametrize("raw", [b"ns=billing:%FF", b"ns=billing:\xff", b"ns=billing:a+b", b"ns=billing:%00"])
def test_what_is_no_text_is_no_subscription(raw: bytes) -> None:
    assert refused(*read_query(raw).ns) == {"reason": "malformed"}


# -- the subscription


def test_namespaces_of_a_tenant() -> None:
    assert parts("billing:b,a,b", "growth:*") == [("acme", "billing", "a,b"), ("acme", "growth", "*")]


def test_a_token_without_a_tenant_names_it() -> None:
    assert parts("acme/billing:a", "acme/growth:*", tenant="") == [("acme", "billing", "a"), ("acme", "growth", "*")]


def test_nothing_to_subscribe_to() -> None:
    with pytest.raises(BadRequest):
        read_parts([], "acme")


@pytest.mark.parametrize(
    "value",
    [
        "", ":", "billing", "billing:", ":a", "Billing:a", "bil_ling:a", "1billing:a", "billing :a", "billing:a,",
        "billing:,a", "billing:a,,b", "billing:*,a", "billing:a,*", "billing:A", "billing:a b", "billing:a:b",
        "acme/billing:a", "/billing:a", "billing:a/b", "b" * 64 + ":a", "billing:" + "a" * 64, "b\n:a", "billing:*\n",
    ],
)  # fmt: skip
def test_malformed(value: str) -> None:
    assert refused(value) == {"reason": "malformed"}


@pytest.mark.parametrize(
    "value", ["", ":a", "/:a", "acme/:a", "/billing:a", "a/b/c:a", "Acme/billing:a", "acme/billing"]
)
def test_malformed_for_one_who_names_the_tenant(value: str) -> None:
    assert refused(value, tenant="") == {"reason": "malformed"}


def test_one_who_has_no_tenant_must_name_it() -> None:
    assert refused("billing:a", tenant="") == {"reason": "tenant_required", "namespace": "billing"}


def test_a_stream_serves_one_tenant() -> None:
    assert refused("acme/billing:a", "other/growth:a", tenant="") == {"reason": "multiple_tenants"}
    assert refused("acme/billing:a", "other/billing:a", tenant="") == {"reason": "multiple_tenants"}


def test_a_namespace_is_named_once() -> None:
    assert refused("billing:a", "billing:b") == {"reason": "duplicate_namespace", "namespace": "billing"}


def test_32_namespaces_and_no_more() -> None:
    values = [f"n{number}:*" for number in range(33)]
    assert len(parts(*values[:32])) == 32
    assert refused(*values) == {"reason": "too_many_namespaces"}


def test_64_flags_and_no_more() -> None:
    keys = [f"f{number}" for number in range(65)]
    assert parts("billing:" + ",".join(keys[:64] * 2))
    assert refused("growth:a", "billing:" + ",".join(keys)) == {"reason": "too_many_flags", "namespace": "billing"}


# -- hints


@pytest.mark.parametrize(
    ("since", "header", "hints"),
    [
        ([], None, {}),
        (["billing:41"], None, {"billing": 41}),
        (["billing:41,growth:7"], None, {"billing": 41, "growth": 7}),
        (["billing:41", "growth:7"], None, {"billing": 41, "growth": 7}),
        (["billing:41,growth:7"], b"billing:40", {"billing": 40, "growth": 7}),
        ([], b"billing:40", {"billing": 40}),
        (["billing:0", "billing:-1", "billing:x", "billing", "Billing:1", "", ",", "a:1:2", "billing:01"], None, {}),
        (["billing:99999999999999999999"], b"\xff", {}),
        (["billing:1, growth:2"], None, {"billing": 1}),
        (["billing:1"], b"nonsense", {"billing": 1}),
    ],
)
def test_hints(since: list[str], header: bytes | None, hints: dict[str, int]) -> None:
    assert read_hints(since, header) == hints
