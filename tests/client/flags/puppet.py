"""A server that says what a test tells it to: what no server of ours ever says, clients have to stand all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple

from seamark.manifest.archive import pack
from seamark.manifest.closure import closure_hash, index_of
from tests.client.flags.test_mirror import delta

PATH = "/api/v1/tenants/acme/namespaces/{slug}/closure?version={version}&subscription=Kg"


class Asked(NamedTuple):
    target: str
    headers: dict[str, str]


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


def tagged(files: Mapping[str, bytes], version: int) -> Reply:
    """A closure as our servers give it."""
    tag = f'"v{version}-{closure_hash(index_of(dict(files)))}"'
    return Reply(200, pack(files), {"ETag": tag, "Content-Type": "application/x-tar"})


class Puppet:
    """Event streams stay open until they are cut. `replies` are taken in turn by requests for closures, and the last one stays."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.refusals: list[Reply] = []  # of event streams; when there is none left, they open
        self.hold = asyncio.Event()  # closures are answered while it is set
        self.hold.set()
        self.streams: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def opened(self) -> int:
        """Event streams that were asked for."""
        return len([one for one in self.asked if one.target.startswith("/api/v1/events")])

    @property
    def fetches(self) -> list[Asked]:
        return [one for one in self.asked if "/closure" in one.target]

    async def __aenter__(self) -> Puppet:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.hold.set()
        self.cut()
        await self._server.wait_closed()
        await asyncio.sleep(0)

    # -- what it says

    def snapshot(self, files: Mapping[str, bytes], version: int, *, slug: str = "ns", **wrong: Any) -> None:
        body = {
            "protocol": "v2",
            "namespace": slug,
            "version": version,
            "prev_version": None,
            "prev_closure_hash": None,
            "closure_hash": closure_hash(index_of(dict(files))),
            "delivery": "snapshot",
            "snapshot_url": self.url + PATH.format(slug=slug, version=version) + "&token=t",
            "snapshot_size_bytes": 1,
        }
        self.say("version", {**body, **wrong}, f"{slug}:{version}")

    def inline(self, before: dict[str, bytes], after: dict[str, bytes], version: int, /, **wrong: Any) -> None:
        event = delta(before, after, version)
        files = [
            {"path": change.path, "op": change.op}
            | ({"sha256": change.sha256, "content_b64": str(change.content_b64)} if change.sha256 else {})
            for change in event.changes
        ]
        body = {
            "protocol": "v2",
            "namespace": "ns",
            "version": version,
            "prev_version": version - 1,
            "prev_closure_hash": event.before,
            "closure_hash": event.after,
            "delivery": "inline",
            "files": files,
        }
        self.say("version", {**body, **wrong}, f"ns:{version}")

    def resync(self, version: int, reason: str = "unknown_since") -> None:
        url = self.url + PATH.format(slug="ns", version=version) + "&token=t"
        body = {"protocol": "v2", "namespace": "ns", "current_version": version, "reason": reason, "snapshot_url": url}
        self.say("resync", body, f"ns:{version}")

    def say(self, event: str, body: Any, name: str) -> None:
        self.write(f"event: {event}\nid: {name}\ndata: {json.dumps(body)}\n\n".encode())

    def write(self, raw: bytes) -> None:
        """As a chunk on the newest stream."""
        self.streams[-1].write(b"%x\r\n%b\r\n" % (len(raw), raw))

    def cut(self) -> None:
        for stream in self.streams:
            stream.transport.abort()

    async def streaming(self, count: int) -> None:
        """Until so many event streams have opened."""
        async with asyncio.timeout(20):
            while len(self.streams) < count:
                self._news.clear()
                await self._news.wait()

    # -- inside

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        line, *fields = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        target = line.split(" ")[1]
        self.asked.append(Asked(target, headers))
        if target.startswith("/api/v1/events") and not self.refusals:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.streams.append(writer)
            self._news.set()
            return
        if target.startswith("/api/v1/events"):
            reply = self.refusals.pop(0)
        else:
            await self.hold.wait()
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        fields = [
            f"{name}: {value}\r\n" for name, value in {**reply.headers, "Content-Length": len(reply.body)}.items()
        ]
        writer.write(f"HTTP/1.1 {reply.status} X\r\n{''.join(fields)}\r\n".encode() + reply.body)
        writer.close()
