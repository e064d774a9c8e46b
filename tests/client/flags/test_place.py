from __future__ import annotations

import pytest

from seamark.client.address import read_address
from seamark.client.flags.place import NoPlace, Server
from seamark.client.flags.track import Fetch
from seamark.manifest.subscription import EVERY_FLAG

SIGNED = "/api/v1/tenants/acme/namespaces/billing/closure?version=42&subscription=Kg&token=abc"


def fetch(url: str | None) -> Fetch:
    return Fetch(42, "sha256:0", url)


def place(server: Server, url: str | None) -> str:
    return server.closure(fetch(url), "billing", EVERY_FLAG).url


def test_an_address_is_taken_as_it_was_told() -> None:
    server = Server("https://exd.example.com", "secret", None)
    assert place(server, f"https://exd.example.com{SIGNED}") == f"https://exd.example.com{SIGNED}"


def test_a_secret_is_told_to_the_server_that_was_named_and_nobody_else() -> None:
    server = Server("https://exd.example.com:443/", "secret", None)
    for url in ("https://exd.example.com/x", "https://EXD.example.com:443/x"):
        assert server.headers(read_address(url), Accept="*/*") == {"Authorization": "Bearer secret", "Accept": "*/*"}
    for url in (
        "http://exd.example.com/x",
        "https://exd.example.com:444/x",
        "https://exd.example.com.evil.com/x",
        "https://evil.com/?https://exd.example.com",
        "https://xexd.example.com/",
    ):
        assert server.headers(read_address(url), Accept="*/*") == {"Accept": "*/*"}


def test_what_is_encrypted_is_not_fetched_in_the_open() -> None:
    server = Server("https://exd.example.com/base", "secret", "acme")
    expected = "https://exd.example.com/base/api/v1/tenants/acme/namespaces/billing/closure?version=42&subscription=Kg"
    assert place(server, f"http://exd.example.com{SIGNED}") == expected
    plain = Server("http://exd.example.com", "secret", "acme")
    assert place(plain, f"https://cdn.example.com{SIGNED}") == f"https://cdn.example.com{SIGNED}"


def test_without_an_address_a_closure_is_asked_for_by_the_tenant_that_was_given_or_seen() -> None:
    expected = "http://h:8000/api/v1/tenants/acme/namespaces/billing/closure?version=42&subscription=Kg"
    assert place(Server("http://h:8000", "secret", "acme"), None) == expected
    server = Server("http://h:8000", "secret", None)
    with pytest.raises(NoPlace):
        place(server, None)
    place(server, f"http://h:8000/other/base{SIGNED}")
    assert place(server, None) == expected


@pytest.mark.parametrize("url", ["ftp://h/x", "nothing", "http://", "http://u:p@h/x", "http://h/a b", "http://h:0x/"])
def test_an_address_that_is_none_leads_nowhere(url: str) -> None:
    with pytest.raises(NoPlace):
        place(Server("http://h", "secret", "acme"), url)
