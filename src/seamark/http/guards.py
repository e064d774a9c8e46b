"""What a request must look like before a route sees it. Pure checks on values; the connection says when to ask."""

from __future__ import annotations

import re
from typing import NamedTuple

from seamark import limits
from seamark.wire.exchange import Headers

GUARDED = frozenset({b"host", b"expect", b"transfer-encoding", b"content-length"})

_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")
_FIRST_LINE = re.compile(rb"[^ \r\n/]{1,32} (/[^ \r\n]*) HTTP/")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)([^#]*)", re.IGNORECASE)


_hosts: set[bytes] = set()  # seen and found good; the few names a server goes by
_HOSTS_MAX = 64


class Refusal(NamedTuple):
    """The connection's own answer to what it will not pass on. After it the connection ends."""

    status: int
    code: str
    message: str


MALFORMED = Refusal(400, "malformed_request", "this is not HTTP/1.1 as RFC 9112 has it")
HOST_MISSING = Refusal(400, "host_required", "HTTP/1.1 needs exactly one Host header")
HOST_INVALID = Refusal(400, "host_invalid", "the Host header is not a host")
TARGET_INVALID = Refusal(400, "target_invalid", "the request target is not a path or an absolute http URL")
FRAMING_INVALID = Refusal(400, "framing_invalid", "the length of the body is not clear")
CODING_UNKNOWN = Refusal(501, "transfer_coding_unknown", "the only transfer coding served is chunked")
CONNECT_REFUSED = Refusal(501, "not_a_proxy", "CONNECT is for proxies")
UPGRADE_WITH_BODY = Refusal(400, "upgrade_with_body", "a request with a body cannot ask for another protocol")
VERSION_UNKNOWN = Refusal(505, "version_unknown", "HTTP/1.1 and HTTP/1.0 are served")
EXPECTATION_UNKNOWN = Refusal(417, "expectation_unknown", "the only expectation met is 100-continue")
TARGET_TOO_LONG = Refusal(414, "target_too_long", "the request target is beyond its bound")
HEADERS_TOO_LARGE = Refusal(431, "headers_too_large", "the headers are beyond their bounds")
BODY_TOO_LARGE = Refusal(413, "body_too_large", "the body is beyond its bound")
HEADERS_TOO_SLOW = Refusal(408, "headers_too_slow", "the headers took too long to arrive")
BODY_TOO_SLOW = Refusal(408, "body_too_slow", "the body arrives too slowly")
CONNECTIONS_FULL = Refusal(503, "too_many_connections", "this server holds all the connections it can")
BROKEN = Refusal(500, "internal", "internal error")


class Refused(Exception):
    """Raised inside parser callbacks to stop the parser. Never leaves the connection."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class Guarded:
    """What the guarded headers of one request said. Made for every request, so the defaults live on the class."""

    hosts = 0
    length = 0
    chunked = False
    expects = False
    continues = False

    def see(self, name: bytes, value: bytes) -> None:
        """Take one guarded header. The parser has already refused conflicting framing; this refuses what it lets by."""
        if name == b"host":
            self.hosts += 1
            if value not in _hosts:
                _check_host(value.strip(b" \t"))
            return
        value = value.strip(b" \t")
        if name == b"content-length":
            self.length = int(value)
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked":
                raise Refused(CODING_UNKNOWN)
            self.chunked = True
        else:
            self.expects = True
            self.continues = value.lower() == b"100-continue"

    def judge(self, version: str) -> None:
        """Whether these headers make sense together."""
        if version != "1.1":
            if version != "1.0":
                raise Refused(VERSION_UNKNOWN)
            if self.chunked:
                raise Refused(FRAMING_INVALID)
            self.continues = self.expects = False  # RFC 9110 10.1.1: HTTP/1.0 clients cannot expect anything
        elif self.hosts != 1:
            raise Refused(HOST_MISSING)
        if self.hosts > 1:
            raise Refused(HOST_MISSING)
        if self.expects and not self.continues:
            raise Refused(EXPECTATION_UNKNOWN)
        self.continues = self.continues and (self.chunked or self.length > 0)

    def judge_upgrade(self, method: bytes) -> None:
        """We speak nothing else. Without a body the request is served as it is; with one, where it ends is unclear."""
        if method == b"CONNECT":
            raise Refused(CONNECT_REFUSED)
        if self.chunked or self.length:
            raise Refused(UPGRADE_WITH_BODY)


def judge_head(target: bytes, headers: Headers) -> None:
    """For a head that came in several slices, or has very many lines; any other cannot be too large."""
    if len(target) > limits.TARGET_BYTES_MAX:
        raise Refused(TARGET_TOO_LONG)
    if len(headers) > limits.HEADER_COUNT_MAX:
        raise Refused(HEADERS_TOO_LARGE)
    if sum(len(name) + len(value) + 4 for name, value in headers) > limits.HEADER_BYTES_MAX:
        raise Refused(HEADERS_TOO_LARGE)


def _check_host(value: bytes) -> None:
    if not _HOST.fullmatch(value):
        raise Refused(HOST_INVALID)
    if len(_hosts) < _HOSTS_MAX:
        _hosts.add(value)


def target_in(data: bytes | memoryview) -> bytes:
    """What a request that is refused unread seems to be about: good enough to choose the words, and for nothing else."""
    found = _FIRST_LINE.match(data)
    return found[1] if found else b""


def origin_form(method: bytes, target: bytes) -> bytes:
    """The path and query of a target in any of its forms. Only targets that do not begin with a slash get here."""
    if method == b"CONNECT":
        raise Refused(CONNECT_REFUSED)
    if target == b"*" and method == b"OPTIONS":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or not absolute[1] or not _HOST.fullmatch(absolute[1]):
        raise Refused(TARGET_INVALID)
    rest: bytes = absolute[2]
    return rest if rest.startswith(b"/") else b"/" + rest
