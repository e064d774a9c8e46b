from __future__ import annotations

import pytest

from seamark.client.address import Address, Origin, read_address


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://h", Origin("http", "h", 80), "/"),
        ("https://H.Example", Origin("https", "h.example", 443), "/"),
        ("http://h:8000/a/b?c=d&e", Origin("http", "h", 8000), "/a/b?c=d&e"),
        ("http://[::1]:8000/x", Origin("http", "::1", 8000), "/x"),
        ("http://127.0.0.1?x", Origin("http", "127.0.0.1", 80), "/?x"),
        ("http://b\u00fccher.example/", Origin("http", "xn--bcher-kva.example", 80), "/"),
        ("http://h/x#part", Origin("http", "h", 80), "/x"),
    ],
)
def test_what_an_address_says(url: str, origin: Origin, target: str) -> None:
    assert read_address(url) == Address(origin, target)


def test_as_it_stands_in_a_request() -> None:
    assert Origin("http", "h", 80).authority == "h"
    assert Origin("http", "h", 443).authority == "h:443"
    assert Origin("https", "::1", 443).authority == "[::1]"
    assert read_address("https://h:8443/a?b").url == "https://h:8443/a?b"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "ftp://h",
        "http://",
        "http:///x",
        "http://user@h",
        "http://:secret@h",
        "http://h:99999",
        "http://h:x",
        "http://h/\u00e9",
        "http://h/a b",
    ],
)
def test_what_is_none(url: str) -> None:
    with pytest.raises(ValueError):
        read_address(url)
