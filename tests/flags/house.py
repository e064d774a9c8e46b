"""The flags surface without sockets: a whole server's wiring in this process, with a clock that moves only when told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from seamark import config
from seamark.clock import ManualClock
from seamark.flags import superadmin
from seamark.flags.directory import Directory
from seamark.http.app import Assembly
from seamark.http.asgi import build_asgi

ACME = {"slug": "acme", "login_mode": "sso", "sso_provider": "okta"}
BASE = "/tenants/acme/namespaces/billing"


class FlagsHouse:
    """Make it with `opened`, inside a running loop; `close` it there. With `data` its engine is the embedded one."""

    def __init__(self, environment: Mapping[str, str] | None = None, *, data: Path | None = None) -> None:
        self.clock = ManualClock()
        flags = {"engine": "memory"} if data is None else {"engine": "embedded", "data": str(data)}
        settings = config.load(flags, environ=environment or {}, directory=Path(__file__).parent)
        self.assembly = Assembly(settings, clock=self.clock)
        self.assembly.readiness.started()
        transport = httpx.ASGITransport(build_asgi(self.assembly.front))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://house")
        self.root = ""  # a superadmin's secret

    @classmethod
    async def opened(cls, environment: Mapping[str, str] | None = None, *, data: Path | None = None) -> FlagsHouse:
        house = cls(environment, data=data)
        while house.assembly.flags.unloaded():
            await asyncio.sleep(0)
        _, house.root = await superadmin.bootstrap(house.directory, another=True)
        return house

    @property
    def directory(self) -> Directory:
        return self.assembly.flags.directory

    async def close(self) -> None:
        await self.client.aclose()
        await self.assembly.close()

    # -- what a client asks

    async def ask(self, method: str, path: str, *, token: str | None = None, **more: Any) -> httpx.Response:
        """The whole answer; with the superadmin's token unless another, or "" for none, is named."""
        secret = self.root if token is None else token
        headers = {**({"Authorization": f"Bearer {secret}"} if secret else {}), **more.pop("headers", {})}
        return await self.client.request(method, f"/api/v1{path}", headers=headers, **more)

    async def call(
        self, method: str, path: str, body: object = None, *, token: str | None = None, status: int = 0
    ) -> Any:
        """The answer's JSON; `status` is what it must be, 0 for any success."""
        more = {} if body is None else {"json": body}
        answer = await self.ask(method, path, token=token, **more)
        assert answer.status_code == status if status else answer.is_success, f"{answer.status_code} {answer.text}"
        assert len(answer.json()["request_id"]) == 26
        return answer.json()

    async def refused(
        self, status: int, code: str, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> Any:
        """The error, which must have this status and code."""
        error = (await self.call(method, path, body, token=token, status=status))["error"]
        assert error["code"] == code, error
        return error

    async def furnish(self) -> None:
        """Tenant `acme` with the namespace `billing`."""
        await self.call("POST", "/tenants", ACME, status=201)
        await self.call("POST", "/tenants/acme/namespaces", {"slug": "billing"}, status=201)

    async def mint(self, kind: str, *, token: str | None = None, **more: Any) -> str:
        """The secret of a new token: for `acme`, and its `billing` where the type is bound to a namespace."""
        bound: dict[str, object] = {}
        if kind != "superadmin":
            bound["tenant"] = "acme"
        if kind.startswith("namespace-"):
            bound["namespace"] = "billing"
        if kind == "namespace-client":
            bound["environment"] = "production"
        body = {"type": kind, "name": f"a {kind}", **bound, **more}
        made = await self.call("POST", "/tokens", body, token=token, status=201)
        secret: str = made["secret"]
        return secret
