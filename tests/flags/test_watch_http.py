"""Event streams and closures over real connections: what is on the wire, byte for byte, on our data plane and as plain ASGI."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from seamark.limits import EVENT_STREAMS_PER_TOKEN_MAX
from seamark.manifest.archive import pack, unpack
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.delta import FileChange, apply_changes
from seamark.testing.server import SERVE, ServerProcess
from tests.flags.manifests import flag, manifest
from tests.flags.stage import Frame, frames_of
from tests.manifest import vectors
from tests.served import SERVED
from tests.topics.test_watch_http import Stream

pytestmark = pytest.mark.slow  # processes of their own

_NUMBERS = count(1)


def started(place: Path, *args: str, command: tuple[str, ...] = SERVE) -> ServerProcess:
    return ServerProcess(place, "--superadmin-token-file", str(place / "token"), *args, command=command)


class Office:
    """A tenant with one namespace, and the tokens for them."""

    def __init__(self, server: ServerProcess, place: Path, slug: str = "billing") -> None:
        self.server = server
        self.tenant, self.slug = f"t{next(_NUMBERS)}", slug
        self.root = (place / "token").read_text().strip()
        self.call("POST", "/api/v1/tenants", {"slug": self.tenant, "login_mode": "sso", "sso_provider": "okta"})
        self.base = f"/api/v1/tenants/{self.tenant}/namespaces/{slug}"
        self.call("POST", f"/api/v1/tenants/{self.tenant}/namespaces", {"slug": slug})
        self.reader_id, self.reader = self.mint("namespace-read")

    def call(self, method: str, path: str, body: object = None) -> Any:
        answer = httpx.request(
            method, self.server.base_url + path, json=body, headers={"Authorization": f"Bearer {self.root}"}
        )
        assert answer.is_success, answer.text
        return answer.json()

    def mint(self, kind: str) -> tuple[str, str]:
        body = {"type": kind, "name": kind, "tenant": self.tenant, "namespace": self.slug}
        made = self.call("POST", "/api/v1/tokens", body)
        return made["token"]["id"], made["secret"]

    def push(self, files: dict[str, bytes], client: httpx.Client | None = None) -> int:
        answer = (client or httpx).put(
            f"{self.server.base_url}{self.base}/manifest",
            files={"archive": ("m.tar.gz", pack(files), "application/gzip")},
            headers={"Authorization": f"Bearer {self.root}"},
        )
        assert answer.status_code == 200, answer.text
        return int(answer.json()["version"])

    def open(self, flags: str = "*", *headers: str, token: str | None = None, version: str = "1.1") -> Stream:
        key = f"Authorization: Bearer {self.reader if token is None else token}"
        target = f"/api/v1/events?ns={self.slug}:{flags}"
        return Stream(self.server.address, target, key, *headers, version=version)

    def fetch(self, url: str, **headers: str) -> httpx.Response:
        """What an address leads to, wherever it says that the server is."""
        parts = urlsplit(url)
        return httpx.get(f"{self.server.base_url}{parts.path}?{parts.query}", headers=headers)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flags")


@pytest.fixture(scope="module", params=SERVED)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, Path]]:
    place = tmp_path_factory.mktemp("flags")
    with started(place, "--flags-keepalive-seconds", "1", command=request.param) as process:
        yield process, place


@pytest.fixture
def office(server: tuple[ServerProcess, Path]) -> Office:
    return Office(*server)


def frames(stream: Stream) -> list[Frame]:
    return frames_of(stream.body)


def unsigned(raw: bytes) -> bytes:
    return re.sub(rb"token=[A-Za-z0-9_-]+\.[0-9a-f]{64}", b"token=T", raw)


def test_the_transcript(office: Office) -> None:
    office.push(vectors.A)
    with closing(office.open("checkout-redesign")) as stream:
        stream.until(b"event: version", b"\n\n")
        office.push(vectors.B)
        raw = unsigned(stream.until(b"inline", b":keepalive\n\n"))
    inline = vectors.WORKED_EVENT.replace(b":42", b":2").replace(b":41", b":1")
    silent = raw.replace(b":keepalive\n\n", b"")  # how often it was silent before depends on the machine
    assert silent == (
        b"event: version\n"
        b"id: billing:1\n"
        b'data: {"protocol":"v2","namespace":"billing","version":1,"prev_version":null,"prev_closure_hash":null,'
        b'"closure_hash":"sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771",'
        b'"delivery":"snapshot","snapshot_url":"http://test/api/v1/tenants/%b/namespaces/billing/closure'
        b'?version=1&subscription=Y2hlY2tvdXQtcmVkZXNpZ24&token=T","snapshot_size_bytes":4096}\n\n'
        % office.tenant.encode()
        + inline
    )
    assert raw.endswith(inline + b":keepalive\n\n")


def test_the_headers(office: Office) -> None:
    """Told at once, while there is nothing to say yet; and nothing that would let a page read it."""
    with closing(office.open("*", "Origin: https://shop.example")) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert not {"content-length", "content-encoding"} & set(stream.headers)
        assert not [name for name in stream.headers if name.startswith("access-control-")]


def test_nothing_allows_a_page_to_ask(office: Office) -> None:
    for method in ("OPTIONS", "GET"):
        answer = httpx.request(
            method,
            f"{office.server.base_url}/api/v1/events",
            headers={"Origin": "https://shop.example", "Access-Control-Request-Method": "GET"},
        )
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_before_chunks_a_stream_ends_with_its_connection(office: Office) -> None:
    office.push(vectors.A)
    with closing(office.open(version="1.0")) as stream:
        stream.until(b"event: version", b"\n\n")
        office.push(vectors.B)
        stream.until(b"inline", b"\n\n")
        office.call("DELETE", f"/api/v1/tokens/{office.reader_id}")
        assert [frame.id for frame in frames_of(stream.rest()) if frame.id] == ["billing:1", "billing:2"]


def test_what_cannot_be_is_refused_in_words(office: Office) -> None:
    answer = httpx.get(f"{office.server.base_url}/api/v1/events?ns={office.slug}:*,a")
    assert answer.status_code == 401
    headers = {"Authorization": f"Bearer {office.reader}"}
    answer = httpx.get(f"{office.server.base_url}/api/v1/events?ns={office.slug}:*,a", headers=headers)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert (body["error"]["code"], body["error"]["details"]) == ("invalid_subscription", {"reason": "malformed"})
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", body["request_id"])


@pytest.mark.parametrize("size", [8_193, 12_000])
def test_a_query_that_is_too_long_has_an_empty_answer(office: Office, size: int) -> None:
    answer = httpx.get(f"{office.server.base_url}/api/v1/events?" + "x" * size)
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (414, b"", "0")


def test_a_target_beyond_any_bound_has_one_as_well(tmp_path: Path) -> None:
    """The server refuses it before it knows what is asked for, in the words of whoever owns the path."""
    with started(tmp_path) as server:
        for path, words in (("/api/v1/events", False), ("/v0/topics", True)):
            answer = httpx.get(f"{server.base_url}{path}?" + "x" * 20_000)
            assert (answer.status_code, bool(answer.content)) == (414, words)


def test_an_address_over_the_wire(office: Office) -> None:
    office.push(vectors.A)
    with closing(office.open("checkout-redesign")) as stream:
        stream.until(b"event: version", b"\n\n")
        (first,) = [frame for frame in frames(stream) if frame.id]
    answer = office.fetch(first.body["snapshot_url"])
    assert answer.status_code == 200
    assert unpack(answer.content).files == vectors.A
    assert answer.headers["content-type"] == "application/x-tar"
    assert "content-encoding" not in answer.headers
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["cache-control"] == "private, max-age=60"
    tag = f'"v1-{first.body["closure_hash"]}"'
    assert answer.headers["etag"] == tag
    same = office.fetch(first.body["snapshot_url"], **{"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    forged = office.fetch(first.body["snapshot_url"][:-1] + "x", Authorization=f"Bearer {office.reader}")
    assert (forged.status_code, forged.json()["error"]["code"]) == (401, "closure_token_invalid")


def test_a_revoked_token_ends_the_stream(office: Office) -> None:
    office.push(vectors.A)
    with closing(office.open()) as stream:
        stream.until(b"event: version", b"\n\n")
        office.call("DELETE", f"/api/v1/tokens/{office.reader_id}")
        assert [frame.id for frame in frames_of(stream.rest()) if frame.id] == ["billing:1"]
    with closing(office.open()) as again:
        assert again.status == 401


def test_sixteen_streams_of_one_token(office: Office) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(closing(office.open())) for _ in range(EVENT_STREAMS_PER_TOKEN_MAX)]
        assert {stream.status for stream in streams} == {200}
        with closing(office.open()) as refused:
            assert refused.status == 429
            assert int(refused.headers["retry-after"]) >= 1
        with closing(office.open(token=office.mint("namespace-write")[1])) as other:
            assert other.status == 200


def test_asking_for_the_head_alone_takes_no_room(office: Office) -> None:
    headers = {"Authorization": f"Bearer {office.reader}"}
    for _ in range(EVENT_STREAMS_PER_TOKEN_MAX + 1):
        answer = httpx.head(f"{office.server.base_url}/api/v1/events?ns={office.slug}:*", headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    with closing(office.open()) as stream:
        assert stream.status == 200


def followed(office: Office, stream: Stream, version: int) -> dict[str, bytes]:
    """What a client holds that has followed a stream up to a version; every hash and their chain must hold."""
    files: dict[str, bytes] = {}
    before: tuple[int | None, str | None] = (None, None)
    for frame in frames_of(stream.until(f"id: {office.slug}:{version}\n".encode(), b"\n\n")):
        if frame.kind != "version":
            continue
        body = frame.body
        if body["prev_version"] is not None:
            assert (body["prev_version"], body["prev_closure_hash"]) == before
        if body["delivery"] == "snapshot":
            files = unpack(office.fetch(body["snapshot_url"]).content).files
        else:
            files = apply_changes(files, [FileChange(**entry) for entry in body["files"]])
        assert closure_hash(index_of(files)) == body["closure_hash"]
        before = body["version"], body["closure_hash"]
    return files


def test_a_reader_that_does_not_read_is_told_once_what_it_missed(office: Office) -> None:
    """Far more is committed than any buffer on the way holds, and far fewer events are said than versions were made."""
    chance = random.Random(1)
    versions = 240
    office.push(vectors.A)
    with closing(office.open()) as stream, httpx.Client() as client:
        stream.until(b"event: version", b"\n\n")
        files: dict[str, bytes] = {}
        for _ in range(versions):
            files = {**vectors.A, **manifest({"big": flag(note=chance.randbytes(22_000).hex())})}
            office.push(files, client)
        assert followed(office, stream, versions + 1) == files
        told = [frame for frame in frames(stream) if frame.id]
        assert told[-1].body["version"] == versions + 1
        assert len(told) < versions


def test_a_restart_begins_again_and_keeps_its_word(tmp_path: Path) -> None:
    """Addresses that were told before are good after it, and open the same bytes."""
    with started(tmp_path) as server:
        office = Office(server, tmp_path)
        office.push(vectors.A)
        office.push(vectors.B)
        with closing(office.open("checkout-redesign")) as stream:
            stream.until(b"event: version", b"\n\n")
            url = frames(stream)[0].body["snapshot_url"]
        first = office.fetch(url)
        server.stop()
        server.start()
        again = office.fetch(url)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["etag"] == first.headers["etag"]
        with closing(office.open("checkout-redesign", "Last-Event-ID: billing:2")) as stream:
            stream.until(b"event: version", b"\n\n")
            (frame,) = frames(stream)
            assert (frame.id, frame.body["delivery"], frame.body["prev_version"]) == ("billing:2", "snapshot", None)
            office.push(vectors.A)
            assert followed(office, stream, 3) == vectors.A
        assert (server.data / "signing.key").stat().st_mode & 0o777 == 0o600


def test_a_public_address_is_that_of_the_links(tmp_path: Path) -> None:
    with started(tmp_path, "--public-url", "https://exd.example.com/base/") as server:
        office = Office(server, tmp_path)
        office.push(vectors.A)
        with closing(office.open()) as stream:
            stream.until(b"event: version", b"\n\n")
            url = frames(stream)[0].body["snapshot_url"]
    assert url.startswith(f"https://exd.example.com/base/api/v1/tenants/{office.tenant}/namespaces/billing/closure?")


def test_the_key_of_the_addresses_is_a_setting(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "exd.key"
    with started(tmp_path, "--signing-key", str(key)) as server:
        office = Office(server, tmp_path)
        office.push(vectors.A)
        with closing(office.open()) as stream:
            stream.until(b"event: version", b"\n\n")
            assert office.fetch(frames(stream)[0].body["snapshot_url"]).status_code == 200
        assert not (server.data / "signing.key").exists()
    assert len(key.read_bytes()) == 32


def test_every_event_is_one_line_of_json(office: Office) -> None:
    office.push(vectors.A)
    with closing(office.open()) as stream:
        stream.until(b"event: version", b"\n\n")
        office.push(vectors.B)
        raw = stream.until(b"inline", b"\n\n")
    for block in raw.replace(b":keepalive\n\n", b"").strip().split(b"\n\n"):
        event, name, data = block.split(b"\n")
        assert (event, name[:4]) == (b"event: version", b"id: ")
        assert data == b"data: " + json.dumps(json.loads(data[6:]), separators=(",", ":")).encode()
