from __future__ import annotations

import pytest

from seamark.clock import ManualClock
from seamark.flags.links import Base, Links
from seamark.flags.signing import Claim, Signer
from seamark.manifest.subscription import parse_flag_list
from tests.flags.stage import Request


def test_an_address() -> None:
    signer = Signer(bytes(32), ManualClock())
    links = Links(signer, base="https://exd.example.com", principal="tok_1")
    token = signer.sign(Claim("tok_1", "acme", "billing", 42, "a,b"))
    assert links.snapshot("flags:acme/billing", 42, parse_flag_list("b,a")) == (
        "https://exd.example.com/api/v1/tenants/acme/namespaces/billing/closure"
        f"?version=42&subscription=YSxi&token={token}"
    )


@pytest.mark.parametrize(
    ("public_url", "scheme", "host", "base"),
    [
        ("https://exd.example.com", "http", "10.0.0.1:8000", "https://exd.example.com"),
        ("", "http", "10.0.0.1:8000", "http://10.0.0.1:8000"),
        ("", "https", "exd.local", "https://exd.local"),
        ("", "http", "[::1]:8000", "http://[::1]:8000"),
        ("", "http", None, "http://127.0.0.1:9"),
        ("", "http", "", "http://127.0.0.1:9"),
        ("", "http", "evil/@x", "http://127.0.0.1:9"),
        ("", "http", "evil?x", "http://127.0.0.1:9"),
        ("", "http", "user@evil", "http://127.0.0.1:9"),
    ],
)
def test_where_clients_find_the_server(public_url: str, scheme: str, host: str | None, base: str) -> None:
    request = Request("", None, {} if host is None else {"host": host}, {})
    assert Base(public_url=public_url, scheme=scheme, listening="127.0.0.1:9").of(request) == base
