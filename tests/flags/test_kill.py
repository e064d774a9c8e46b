"""kill -9 while manifests are pushed: every acknowledged version is there, whole, with its line in the audit log, once."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark.manifest.archive import pack, unpack
from seamark.testing.server import ServerProcess
from tests.flags.house import ACME, BASE
from tests.flags.manifests import flag, manifest

pytestmark = pytest.mark.slow

KILLS = 5
SEED = 20261119


def files_of(number: int) -> dict[str, bytes]:
    """Each push is told apart from every other, and most of its files are those of the one before."""
    return manifest({"changing": flag(note=f"push {number}"), **{f"f{n}": flag() for n in range(20)}})


class Pusher(threading.Thread):
    """Pushes until the server is gone."""

    def __init__(self, base_url: str, headers: dict[str, str], first: int) -> None:
        super().__init__()
        self.acknowledged: dict[int, int] = {}  # version -> push
        self.enough = threading.Event()
        self.next = first
        self._base_url = base_url
        self._headers = headers

    def run(self) -> None:
        with httpx.Client(base_url=f"{self._base_url}/api/v1", headers=self._headers, timeout=10) as client:
            while True:
                self.next += 1
                try:
                    answer = client.put(f"{BASE}/manifest", files={"archive": pack(files_of(self.next))})
                except httpx.HTTPError:
                    return
                self.acknowledged[answer.raise_for_status().json()["version"]] = self.next
                if len(self.acknowledged) > 8:
                    self.enough.set()


def every(client: httpx.Client, path: str, name: str) -> list[Any]:
    rows: list[Any] = []
    cursor = ""
    while True:
        page = client.get(path, params={"limit": "200", "cursor": cursor}).raise_for_status().json()
        rows += page[name]
        if page.get("caught_up", page["next_cursor"] is None):
            return rows
        cursor = page["next_cursor"]


def test_versions_and_their_lines_are_whole(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    acknowledged: dict[int, int] = {}
    pushed = 0
    with ServerProcess(tmp_path, "--superadmin-token-file", str(tmp_path / "token")) as server:
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}
        with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers) as client:
            client.post("/tenants", json=ACME).raise_for_status()
            client.post("/tenants/acme/namespaces", json={"slug": "billing"}).raise_for_status()
        for _ in range(KILLS):
            pusher = Pusher(server.base_url, headers, pushed)
            pusher.start()
            assert pusher.enough.wait(30)
            threading.Event().wait(chance.random() / 50)
            server.kill()
            pusher.join()
            acknowledged |= pusher.acknowledged
            pushed = pusher.next
            server.start()
        with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers) as client:
            versions = [one["version"] for one in every(client, f"{BASE}/manifest/versions", "versions")]
            assert versions == [*range(len(versions), 0, -1)]
            lines = [one["subject"] for one in every(client, "/audit", "entries") if one["action"] == "manifest.push"]
            assert sorted(lines) == sorted(f"acme/billing@{version}" for version in versions)
            for version, number in acknowledged.items():
                query = {"version": str(version), "subscription": "Kg"}
                archive = client.get(f"{BASE}/closure", params=query).raise_for_status().content
                assert unpack(archive).files == files_of(number)
    assert len(acknowledged) > KILLS * 8
