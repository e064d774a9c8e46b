"""The topics surface without sockets: a whole server's wiring in this process, with a clock that moves only when told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from seamark import config
from seamark.clock import ManualClock
from seamark.http.app import Assembly
from seamark.http.asgi import build_asgi
from seamark.log.protocol import Log
from seamark.topics.surface import TopicsSurface


class TopicsRig:
    """Make it inside a running loop; `close` it there. `environment` is that of the server; with `data` its engine is
    the embedded one, in that directory. With `clock` time goes on from where another rig's was."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        data: Path | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        flags = {"engine": "memory"} if data is None else {"engine": "embedded", "data": str(data)}
        settings = config.load(flags, environ=environment or {}, directory=Path(__file__).parent)
        self.assembly = Assembly(settings, clock=self.clock)
        self.assembly.readiness.started()
        transport = httpx.ASGITransport(build_asgi(self.assembly.front))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://rig")

    @property
    def surface(self) -> TopicsSurface:
        return self.assembly.topics

    @property
    def log(self) -> Log:
        return self.assembly.log

    async def close(self) -> None:
        await self.client.aclose()
        await self.assembly.close()

    # -- what a client asks

    async def call(self, method: str, path: str, body: object = None, *, key: str = "", status: int = 0) -> Any:
        """The answer's JSON; `status` is what it must be, 0 for any success."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        answer = await self.client.request(method, f"/v0{path}", json=body, headers=headers)
        assert answer.status_code == status if status else answer.is_success, f"{answer.status_code} {answer.text}"
        return answer.json()

    async def write(self, name: str, *data: object, **more: object) -> Any:
        return await self.call("POST", f"/topics/{name}", {"records": [{"data": one} for one in data], **more})

    async def diff(self, name: str, from_seq: int = 0, **more: object) -> Any:
        return await self.call("POST", f"/topics/{name}/diff", {"from_seq": from_seq, **more})

    async def state(self, name: str) -> Any:
        return await self.call("GET", f"/topics/{name}?touch=false")
