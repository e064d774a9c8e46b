from __future__ import annotations

import pytest

from seamark.client.address import Origin
from seamark.client.proxy import Proxy, proxy_for

PLAIN, SECURE = Origin("http", "exd.example.com", 80), Origin("https", "exd.example.com", 443)
THERE = "http://proxy.example:3128"


def test_each_scheme_has_its_own_and_the_small_name_wins() -> None:
    assert proxy_for(PLAIN, {}) is None
    assert proxy_for(PLAIN, {"http_proxy": THERE}) == Proxy("proxy.example", 3128)
    assert proxy_for(SECURE, {"http_proxy": THERE}) is None
    assert proxy_for(SECURE, {"HTTPS_PROXY": THERE}) == Proxy("proxy.example", 3128)
    assert proxy_for(SECURE, {"HTTPS_PROXY": "http://x", "https_proxy": THERE}) == Proxy("proxy.example", 3128)
    assert proxy_for(SECURE, {"ALL_PROXY": "proxy.example"}) == Proxy("proxy.example", 80)
    assert proxy_for(SECURE, {"all_proxy": THERE, "https_proxy": ""}) == Proxy("proxy.example", 3128)


def test_what_came_with_a_request_is_no_setting() -> None:
    environ = {"HTTP_PROXY": THERE}
    assert proxy_for(PLAIN, environ) == Proxy("proxy.example", 3128)
    assert proxy_for(PLAIN, {**environ, "REQUEST_METHOD": "GET"}) is None


@pytest.mark.parametrize(
    "name",
    [
        "*",
        "exd.example.com",
        "example.com",
        ".example.com",
        "*.example.com",
        "EXAMPLE.com",
        "a b,example.com",
        "exd.example.com:443",
    ],
)
def test_who_is_spared(name: str) -> None:
    assert proxy_for(SECURE, {"https_proxy": THERE, "no_proxy": name}) is None


@pytest.mark.parametrize("name", ["", "xample.com", "com.example", "other.example.com", "exd.example.com:444"])
def test_who_is_not(name: str) -> None:
    assert proxy_for(SECURE, {"https_proxy": THERE, "NO_PROXY": name}) is not None


def test_a_name_and_a_password() -> None:
    found = proxy_for(PLAIN, {"http_proxy": "http://us%40er:p%3Aw@proxy.example"})
    assert found == Proxy("proxy.example", 80, "Basic dXNAZXI6cDp3")


@pytest.mark.parametrize("said", ["https://proxy.example", "socks5://proxy.example", "http://"])
def test_a_proxy_that_is_not_spoken_to(said: str) -> None:
    with pytest.raises(ValueError):
        proxy_for(PLAIN, {"http_proxy": said})
