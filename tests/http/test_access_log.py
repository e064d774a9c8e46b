from __future__ import annotations

import structlog

from seamark.http.access_log import AccessLog


def test_every_request_or_one_in_n_and_every_failure() -> None:
    for every, expected in ((1, 9), (4, 3)):
        log = AccessLog(every=every)
        with structlog.testing.capture_logs() as lines:
            for status in (200, 200, 200, 200, 500, 200, 200, 200, 200):
                log.record(method="GET", path="/a", status=status, seconds=0.25, request_id="r")
        assert len(lines) == expected
        assert 500 in [line["status"] for line in lines]


def test_a_line_says_what_was_asked_and_what_came_of_it() -> None:
    with structlog.testing.capture_logs() as lines:
        AccessLog().record(method="GET", path="/a", status=200, seconds=0.25, request_id="r")
    line = lines[0]
    assert (line["event"], line["method"], line["path"], line["ms"]) == ("http.request", "GET", "/a", 250.0)
