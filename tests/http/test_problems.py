from __future__ import annotations

import msgspec

from seamark.errors import MethodNotAllowed, StreamNotFound
from seamark.http.problems import media_of, refusal_body, with_http_headers


def test_http_gets_the_headers_it_asks_for() -> None:
    wrong = MethodNotAllowed("no", allow=("GET", "HEAD"))
    assert with_http_headers(wrong, ()) == ((b"Allow", b"GET, HEAD"),)
    assert with_http_headers(StreamNotFound("none"), ()) == ()


def test_what_a_surface_says_itself_stays() -> None:
    own = ((b"allow", b"GET"),)
    assert with_http_headers(MethodNotAllowed("no", allow=("PUT",)), own) == own


def test_a_refusal_has_the_plain_shape() -> None:
    assert msgspec.json.decode(refusal_body("c", "m", "r")) == {
        "error": {"code": "c", "message": "m"},
        "request_id": "r",
    }


def test_a_body_is_json_unless_the_surface_says_otherwise() -> None:
    assert media_of(()) == (b"application/json", ())
    headers = ((b"Retry-After", b"1"), (b"content-type", b"text/plain"))
    assert media_of(headers) == (b"text/plain", [(b"Retry-After", b"1")])
