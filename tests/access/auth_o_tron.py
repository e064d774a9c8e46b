"""A stand-in for auth-o-tron in a process of its own. What it answers depends on what it is shown, and it remembers that.

`python -m tests.access.auth_o_tron PORT_FILE`
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.access.tokens import signed

LATER = int(time.time()) + 3600  # when the process began; tests take less than an hour
USERS: dict[str, dict[str, Any]] = {
    "alice": {"username": "alice", "realm": "ocean", "roles": ["reader"]},
    "bob": {"username": "bob", "realm": "ocean", "roles": ["writer", "reader"]},
    "carol": {"username": "carol", "realm": "ocean", "roles": ["admin"]},
    "dave": {"sub": "dave", "realm": "desert", "roles": ["reader"]},
    "erin": {"username": "erin", "roles": ["reader"]},
}
Answer = tuple[int, dict[str, str], bytes]


def token_of(name: str, **more: Any) -> str:
    return signed({**USERS[name], "exp": LATER, "aud": "somebody else", **more})


def answer_to(shown: str) -> Answer:
    """Basic NAME:secret is a user by name; Bearer NAME, or NAME.FORM for the several forms of an answer, or NUMBER for a status."""
    scheme, _, secret = shown.partition(" ")
    if scheme == "Basic":
        name, _, password = base64.b64decode(secret).decode().partition(":")
        return (200, {"Authorization": f"Bearer {token_of(name)}"}, b"") if password == "secret" else (401, {}, b"no")
    name, _, form = secret.partition(".")
    if name.isdigit():
        return int(name), {"Location": "/elsewhere"}, b""
    if name not in USERS:
        return 401, {}, b"who is that?"
    return _in_form(token_of(name), form)


def _in_form(token: str, form: str) -> Answer:
    bodies = {
        "string": json.dumps(token),
        "raw": f" {token}\n",
        "garbage": '{"message":"hello"}',
        "list": json.dumps([token]),
        "empty": "",
        "huge": "x" * 100_000,
        "binary": "",
        "expired": signed({"username": "alice", "exp": LATER - 7200}),
        "forged": signed({"username": "alice", "exp": LATER}, secret="guessed"),
    }
    if form in {"token", "jwt", "access_token"}:
        return 200, {}, json.dumps({"other": 1, form: token}).encode()
    if form == "both":
        return 200, {"Authorization": f"Bearer {token}"}, b'{"token":"not this one"}'
    if form == "binary":
        return 200, {}, b"\xff\xfe"
    return (200, {}, bodies[form].encode()) if form in bodies else (200, {"Authorization": f"bearer {token}"}, b"")


class Service:
    """GET /authenticate, and GET /seen for what was asked so far."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while line := await reader.readline():
                headers = await self._headers(reader)
                writer.write(await self._answer(line.decode().split(" ")[1], headers))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _headers(self, reader: asyncio.StreamReader) -> dict[str, str]:
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).decode().strip()) != "":
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return headers

    async def _answer(self, target: str, headers: dict[str, str]) -> bytes:
        if target == "/seen":
            body = json.dumps({"shown": self.seen, "connections": self.connections - 1}).encode()
            return _rendered(200, {"Connection": "close"}, body)
        if target != "/authenticate":
            return _rendered(404, {}, b"")
        shown = headers.get("authorization", "")
        self.seen.append(shown)
        if shown.endswith(".slow"):
            await asyncio.sleep(3600)
        return _rendered(*answer_to(shown))


def _rendered(status: int, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@contextmanager
def auth_o_tron(place: Path) -> Iterator[str]:
    """Its address, while it runs."""
    file = place / "auth-o-tron.port"
    with subprocess.Popen([sys.executable, "-m", "tests.access.auth_o_tron", str(file)]) as process:
        try:
            while not file.exists():
                assert process.poll() is None, "it ended before it began"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{file.read_text()}"
        finally:
            process.kill()


async def main(file: Path) -> None:
    server = await asyncio.start_server(Service().serve, "127.0.0.1", 0)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(str(server.sockets[0].getsockname()[1]))
    os.replace(fresh, file)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
