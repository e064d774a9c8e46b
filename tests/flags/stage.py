"""The event streams of a server without its sockets: real parts on a real log, a clock that moves when told, and pipes whose
far end can stop taking bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from seamark import config
from seamark.access.keys import NOBODY
from seamark.access.principal import Principal
from seamark.errors import SeamarkError
from seamark.flags.audit import Author
from seamark.flags.caller import Callers
from seamark.flags.directory import Directory, Grant
from seamark.flags.problem import flags_problem
from seamark.flags.streaming import Streaming
from seamark.flags.tenancy import Namespace, Tenant
from seamark.flags.versions import Versions
from seamark.manifest.archive import unpack
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.delta import FileChange, apply_changes
from seamark.stream.hub import Hub
from seamark.stream.pipe import Pipe
from seamark.stream.sse import Comment, Event, Parser
from seamark.stream.wheel import Wheel
from seamark.telemetry.metrics import Metrics
from seamark.testing.rig import LogRig
from seamark.wire.exchange import Headers
from tests.flags.manifests import passed
from tests.stream.conftest import TapPipe

AUTHOR = Author("tests")
SETTINGS = {"public_url": "https://exd.example.com"}


class Frame(NamedTuple):
    """One event; `kind` is `:keepalive` for a comment."""

    kind: str
    id: str = ""
    body: Any = None


def frames_of(raw: bytes) -> list[Frame]:
    frames = []
    for event in Parser(comments=True).feed(raw):
        if isinstance(event, Comment):
            frames.append(Frame(f":{event.text}"))
        else:
            assert isinstance(event, Event)
            frames.append(Frame(event.event, event.id, json.loads(event.data)))
    return frames


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def error(self) -> tuple[int, str, Any]:
        """Status, code and details."""
        error = json.loads(self.body)["error"]
        return self.status, error["code"], error.get("details")


class Request:
    """An exchange that keeps its answer, or its pipe."""

    method = "GET"
    body = b""
    principal: Principal = NOBODY
    request_id = str(UUID(int=7))

    def __init__(self, query: str, token: str | None, headers: Mapping[str, str], params: Mapping[str, str]) -> None:
        self.path = "/"
        self.query = query.encode("latin-1")
        self.params = params
        given = {**({"authorization": f"Bearer {token}"} if token is not None else {}), **headers}
        self.headers: Headers = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        self.answer: Answer | None = None
        self.pipe: TapPipe | None = None
        self.stream_headers: Headers = ()

    def header(self, name: bytes) -> bytes | None:
        return next((value for one, value in self.headers if one == name), None)

    def respond(self, status: int, body: bytes, *, media: bytes = b"application/json", headers: Headers = ()) -> None:
        assert self.answer is None, "a request is answered once"
        told = {name.decode().lower(): value.decode() for name, value in headers}
        self.answer = Answer(status, body, {**told, "content-type": media.decode()})

    def stream(self, *, headers: Headers, status: int = 200) -> Pipe:
        self.pipe = TapPipe()
        self.stream_headers = headers
        return self.pipe


class Listener:
    """One open event stream, and what a client makes of it: every event is checked as clients check it."""

    def __init__(self, stage: Stage, pipe: TapPipe) -> None:
        self.stage = stage
        self.pipe = pipe
        self._seen = 0
        self._files: dict[str, dict[str, bytes]] = {}
        self._at: dict[str, tuple[int, str]] = {}

    @property
    def raw(self) -> bytes:
        return b"".join(self.pipe.taken)

    @property
    def frames(self) -> list[Frame]:
        return frames_of(self.raw)

    @property
    def last(self) -> Frame:
        return self.frames[-1]

    @property
    def ended(self) -> bool:
        return self.pipe.ended

    def forget(self) -> None:
        """What was said so far is not looked at again."""
        self.pipe.taken.clear()
        self.pipe.blocks.clear()
        self._seen = 0

    async def mirrors(self) -> dict[str, dict[str, bytes]]:
        """The files of each namespace, after all that was said since this was asked before; every hash and every chain of
        hashes must hold."""
        frames = self.frames
        fresh, self._seen = frames[self._seen :], len(frames)
        for frame in fresh:
            if frame.kind == "version":
                await self._apply(frame)
        return self._files

    async def _apply(self, frame: Frame) -> None:
        body, slug = frame.body, frame.body["namespace"]
        if body["prev_version"] is not None:
            assert self._at[slug] == (body["prev_version"], body["prev_closure_hash"])
            assert body["prev_version"] < body["version"]
        if body["delivery"] == "snapshot":
            self._files[slug] = await self.stage.fetch(body["snapshot_url"])
        else:
            changes = [FileChange(**entry) for entry in body["files"]]
            assert changes
            self._files[slug] = apply_changes(self._files[slug], changes)
        assert closure_hash(index_of(self._files[slug])) == body["closure_hash"]
        assert frame.id == f"{slug}:{body['version']}"
        self._at[slug] = body["version"], body["closure_hash"]


class Stage:
    """Make it with `opened`, inside a running loop; `close` it there."""

    def __init__(self, rig: LogRig, **settings: str) -> None:
        self.rig = rig
        self.clock = rig.clock
        self.metrics = Metrics()
        self.wheel = Wheel(self.clock)
        self.hub = Hub(rig.log, self.wheel, self.metrics)
        self.versions = Versions(rig.log, self.clock)
        self.directory = Directory(rig.log, self.clock)
        self.callers = Callers(self.directory, self.metrics)
        environ = {f"SEAMARK_{name.upper()}": value for name, value in {**SETTINGS, **settings}.items()}
        self.streaming = Streaming(
            rig.log,
            self.hub,
            self.versions,
            directory=self.directory,
            callers=self.callers,
            clock=self.clock,
            metrics=self.metrics,
            settings=config.load({"engine": "memory"}, environ=environ, directory=Path(__file__).parent),
            key=bytes(range(32)),
        )
        events, closure = self.streaming.table()
        self._events, self._closure = events.handler, closure.handler
        self.reader = ""  # the secret of a token for acme/billing

    @classmethod
    async def opened(cls, rig: LogRig, *namespaces: str, **settings: str) -> Stage:
        stage = cls(rig, **settings)
        await stage.directory.load()
        for tenant in ("acme", "other"):
            await stage.directory.create_tenant(Tenant(slug=tenant, login_mode="sso", created_at=0), AUTHOR)
        for slug in namespaces or ("billing",):
            await stage.found(slug)
        stage.reader = await stage.mint("namespace-read", namespace="billing")
        return stage

    def close(self) -> None:
        self.hub.close()
        self.wheel.close()

    def count(self, name: str, *labels: str) -> float:
        return self.metrics.counter(name, *labels).value

    async def found(self, slug: str, tenant: str = "acme") -> None:
        await self.directory.create_namespace(Namespace(tenant=tenant, slug=slug, created_at=0), AUTHOR)

    async def mint(self, kind: str, *, tenant: str = "acme", **more: Any) -> str:
        bound: dict[str, Any] = {} if kind == "superadmin" else {"tenant": tenant}
        return (await self.directory.mint(Grant(type=kind, **bound, **more), AUTHOR))[1]

    async def commit(self, files: Mapping[str, bytes], slug: str = "billing", tenant: str = "acme") -> int:
        committed = await self.versions.commit(tenant, slug, files, passed(dict(files), slug), by="tests")
        await settle()
        return committed.version.number

    # -- what clients ask

    async def ask(self, query: str, *, token: str | None = None, **headers: str) -> Request:
        """`GET /api/v1/events`; with the reader's token unless another, or "" for none, is named."""
        return await self._ask(self._events, query, token, headers, {})

    async def watch(self, query: str = "ns=billing:*", *, token: str | None = None, **headers: str) -> Listener:
        request = await self.ask(query, token=token, **headers)
        assert request.pipe is not None, request.answer
        await settle()
        return Listener(self, request.pipe)

    async def refused(self, query: str, *, token: str | None = None, **headers: str) -> tuple[int, str, Any]:
        request = await self.ask(query, token=token, **headers)
        assert request.answer is not None, "it was not refused"
        return request.answer.error

    async def closure(
        self, query: str, *, token: str | None = None, tenant: str = "acme", namespace: str = "billing", **headers: str
    ) -> Answer:
        """`GET .../closure`; with the reader's token unless another, or "" for none, is named."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        params = {"tenant": tenant, "namespace": namespace}
        answer = (await self._ask(self._closure, query, token, named, params)).answer
        assert answer is not None
        return answer

    async def fetch(self, url: str) -> dict[str, bytes]:
        """What a snapshot's address leads to, for one who shows nothing but the address."""
        parts = urlsplit(url)
        words = parts.path.split("/")
        answer = await self.closure(parts.query, token="", tenant=words[4], namespace=words[6])
        assert answer.status == 200, answer
        unpacked = unpack(answer.body)
        assert not unpacked.found
        version = dict(parse_qsl(parts.query))["version"]
        assert answer.headers["etag"] == f'"v{version}-{closure_hash(index_of(unpacked.files))}"'
        return unpacked.files

    async def _ask(
        self, handler: Any, query: str, token: str | None, headers: Mapping[str, str], params: Mapping[str, str]
    ) -> Request:
        secret = self.reader if token is None else token or None
        request = Request(query, secret, {name.replace("_", "-"): value for name, value in headers.items()}, params)
        try:
            await handler(request)
        except SeamarkError as error:
            status, body, lines = flags_problem(error, request.request_id)
            request.respond(status, body, headers=lines)
        return request

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            self.wheel.advance()
            await settle(3)


async def settle(turns: int = 40) -> None:
    """Let the loop turn until nothing is left to do."""
    for _ in range(turns):
        await asyncio.sleep(0)
