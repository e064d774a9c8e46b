"""Ports, Java and NATS, with real sockets and real processes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seamark.cli.checks.reach import check_java, check_nats, check_port, java_version
from seamark.errors import BadInput


@contextmanager
def listening(greeting: bytes | None) -> Iterator[int]:
    """A listener on loopback that sends `greeting` to whoever connects, then closes; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]

        def serve() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(greeting or b"")

        thread = threading.Thread(target=serve)
        if greeting is not None:
            thread.start()
        yield port
        listener.close()
    if greeting is not None:
        thread.join()


def test_a_free_port_is_free_and_a_taken_one_is_not() -> None:
    with listening(None) as port:
        (taken,) = check_port("127.0.0.1", port)
    assert taken.level == "fail"
    assert "in use" in taken.found
    assert f":{port}" in taken.remedy
    assert check_port("127.0.0.1", port)[0].level == "ok"
    assert check_port("127.0.0.1", 0)[0].level == "ok"


def test_an_address_of_another_machine_fails() -> None:
    (outcome,) = check_port("192.0.2.1", 8000)
    assert outcome.level == "fail"
    assert "--host" in outcome.remedy
    assert check_port("no such host", 8000)[0].level == "fail"


def script(path: Path, text: str) -> Path:
    """An executable that answers as a `java` would."""
    (path / "bin").mkdir(parents=True)
    java = path / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{text}\n")
    java.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ("""echo 'openjdk version "21.0.8" 2026-01-01' >&2""", "ok"),
        ("""echo 'openjdk version "17" 2021-09-14' >&2""", "ok"),
        ("""echo 'java version "1.8.0_402"' >&2""", "warn"),
        ("""echo 'openjdk version "11.0.2"' >&2""", "warn"),
        ("echo nonsense", "warn"),
        ("exit 1", "warn"),
    ],
)
def test_java_is_asked_for_its_version(answer: str, level: str, tmp_path: Path) -> None:
    home = script(tmp_path / "jdk", answer)
    (outcome,) = check_java({"JAVA_HOME": str(home)})
    assert outcome.level == level
    assert ("seamark[lake]" in outcome.remedy) == (level == "warn")
    assert check_java({"PATH": str(home / "bin")})[0].level == level


def test_no_java_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    for environ in ({"JAVA_HOME": str(tmp_path)}, {"PATH": str(tmp_path)}):
        (outcome,) = check_java(environ)
        assert outcome.level == "warn"
        assert "openjdk-17-jre-headless" in outcome.remedy


def test_java_versions_old_and_new() -> None:
    assert java_version('openjdk version "17.0.15" 2025-04-15') == 17
    assert java_version('java version "1.8.0_402"') == 8
    assert java_version('openjdk version "22-ea" 2024-03-19') == 22
    assert java_version("none") is None


@pytest.mark.parametrize(
    ("greeting", "level", "says"),
    [
        (b'INFO {"version":"2.15.1","jetstream":true} \r\n', "ok", "2.15.1 with JetStream"),
        (b'INFO {"version":"2.15.1"} \r\n', "fail", "without JetStream"),
        (b"SSH-2.0-OpenSSH\r\n", "fail", "does not speak NATS"),
        (b"INFO not json\r\n", "fail", "does not speak NATS"),
        (b"INFO []\r\n", "fail", "does not speak NATS"),
        (b"", "fail", "does not speak NATS"),
    ],
)
def test_what_greets_as_nats_is_judged(greeting: bytes, level: str, says: str) -> None:
    with listening(greeting) as port:
        (outcome,) = check_nats(f"nats://127.0.0.1:{port}")
    assert outcome.level == level
    assert says in outcome.found


def test_nobody_there_is_a_failure_and_a_bad_address_is_bad_input() -> None:
    with listening(None) as port:
        pass
    (outcome,) = check_nats(f"127.0.0.1:{port}")
    assert outcome.level == "fail"
    assert "refused" in outcome.found
    for url in ("http://127.0.0.1", "nats://", "nats://h:99999"):
        with pytest.raises(BadInput, match="nats://host:port"):
            check_nats(url)
