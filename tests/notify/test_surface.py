"""The surface in a real process, which is killed: what was answered is there, and readers go on where they stood."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import httpx
import pytest
import yaml

from seamark.testing.server import ServerProcess
from tests.notify.example import SCHEMA
from tests.notify.rig import POLYGON

IDENTIFIER = {"date": "20250706", "time": "1200", "polygon": POLYGON}
WANTED = {"event_type": "test_polygon", "identifier": {"time": "1200", "polygon": POLYGON}}


def numbers(text: str) -> list[int]:
    return [int(found) for found in re.findall(r'"id":"test_polygon@([0-9]+)"', text)]


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    config = tmp_path / "notify.yaml"
    config.write_text(yaml.safe_dump({"notification_schema": SCHEMA}))
    answered: list[int] = []
    many = threading.Event()

    def publish(base_url: str) -> None:
        with httpx.Client(base_url=base_url) as client:
            for number in range(100_000):
                try:
                    answer = client.post(
                        "/api/v1/notification",
                        json={"event_type": "test_polygon", "identifier": IDENTIFIER, "payload": number},
                    )
                except httpx.TransportError:
                    return
                assert answer.status_code == 200
                answered.append(number)
                if len(answered) >= 200:
                    many.set()

    with ServerProcess(tmp_path, "--config", str(config)) as server:
        publisher = threading.Thread(target=publish, args=(server.base_url,))
        publisher.start()
        assert many.wait(30)
        server.kill()
        publisher.join(30)
        server.start()
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            text = client.post("/api/v1/replay", json={**WANTED, "from_id": "1"}).text
            payloads = [json.loads(found) for found in re.findall(r'"payload":([0-9]+)', text)]
            assert numbers(text) == list(range(1, len(payloads) + 1))
            assert payloads[: len(answered)] == answered
            assert len(payloads) <= len(answered) + 1  # one may have been stored and not answered
            assert "history_gap" not in text
            client.post("/api/v1/notification", json={"event_type": "test_polygon", "identifier": IDENTIFIER})
            following = client.post("/api/v1/replay", json={**WANTED, "from_id": str(len(payloads) + 1)}).text
            assert numbers(following) == [len(payloads) + 1]
        assert server.stop() == 0
