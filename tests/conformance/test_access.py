"""Whom the contract's own client is to the server: users of auth-o-tron, bearers of signed tokens, holders of API keys."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyaviso
import pytest
import yaml

from seamark.testing.server import SERVE, ServerProcess
from tests.access.auth_o_tron import auth_o_tron, token_of
from tests.access.tokens import SECRET
from tests.certificate import make_pair
from tests.conformance.command import Aviso
from tests.conformance.rig import SCHEMA, connect, listening, replay, sequences, serving, tick, wait_for_watches

pytestmark = pytest.mark.slow  # many processes

ADMINS = {"ocean": ["admin"]}
ROLES = {
    "guarded": SCHEMA["ticks0"]
    | {
        "topic": {"base": "guarded", "key_order": ["n"]},
        "auth": {"required": True, "read_roles": {"ocean": ["reader"]}, "write_roles": {"ocean": ["writer"]}},
    },
    "open": SCHEMA["ticks0"] | {"topic": {"base": "open", "key_order": ["n"]}},
}


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks auth-o-tron."""
    place = tmp_path_factory.mktemp("direct")
    with auth_o_tron(place) as asked:
        auth = {
            "enabled": True,
            "mode": "direct",
            "auth_o_tron_url": asked,
            "jwt_secret": SECRET,
            "admin_roles": ADMINS,
        }
        with serving_guarded(place, auth) as server:
            yield server


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server behind a proxy that signs tokens."""
    auth = {"enabled": True, "mode": "trusted_proxy", "jwt_secret": SECRET, "admin_roles": ADMINS}
    with serving_guarded(tmp_path_factory.mktemp("proxied"), auth) as server:
        yield server


def serving_guarded(place: Path, auth: dict[str, Any]) -> ServerProcess:
    return serving(place / "server", auth=auth, notification_schema=ROLES)


def shown(name: str) -> pyaviso.Basic:
    return pyaviso.Basic(name, "secret")


def code_of(error: BaseException | None) -> str:
    assert isinstance(error, pyaviso.HttpError)
    return str(json.loads(error.body)["code"])


def test_users_do_what_their_roles_allow(direct: ServerProcess) -> None:
    reader, writer, admin = (connect(direct.base_url, auth=shown(name)) for name in ("alice", "bob", "carol"))
    tick(writer, "guarded", 1, 2)
    with pytest.raises(pyaviso.HttpError) as raised:
        tick(reader, "guarded", 3)
    assert (raised.value.status, code_of(raised.value)) == (403, "FORBIDDEN")
    with listening(reader.listen("guarded", start_from=0)) as listener:
        listener.until(2)
        wait_for_watches(direct.base_url, "guarded")
        tick(admin, "guarded", 3)
        listener.until(3)
        assert listener.sequences == [1, 2, 3]
    with pytest.raises(pyaviso.HttpError) as raised:
        writer.delete_notification("guarded@1")
    assert raised.value.status == 403
    admin.delete_notification("guarded@1")
    assert sequences(replay(reader, "guarded", start_from=1)) == [2, 3]


def test_who_is_unknown_is_told_to_show_something(direct: ServerProcess) -> None:
    with listening(connect(direct.base_url).listen("guarded")) as listener:
        error = listener.end()
    assert code_of(error) == "UNAUTHORIZED"
    with listening(connect(direct.base_url, auth=pyaviso.Basic("alice", "guess")).listen("guarded")) as listener:
        assert isinstance(listener.end(), pyaviso.AuthError)  # it asked twice
    with listening(connect(direct.base_url, auth=shown("dave")).listen("guarded")) as listener:
        assert code_of(listener.end()) == "FORBIDDEN"


def test_what_is_open_needs_no_credentials_but_refuses_wrong_ones(direct: ServerProcess) -> None:
    anyone = connect(direct.base_url)
    tick(anyone, "open", 1)
    assert sequences(replay(anyone, "open")) == [1]
    with pytest.raises(pyaviso.HttpError) as raised:
        tick(connect(direct.base_url, auth=pyaviso.Bearer("mallory")), "open", 2)
    assert raised.value.status == 401
    assert connect(direct.base_url, auth=pyaviso.Bearer("mallory")).schema().total_schemas == 2


def test_bearers_of_signed_tokens(proxied: ServerProcess, tmp_path: Path) -> None:
    tick(connect(proxied.base_url, auth=pyaviso.Bearer(token_of("bob"))), "guarded", 1)
    assert sequences(replay(connect(proxied.base_url, auth=pyaviso.Bearer(token_of("alice"))), "guarded")) == [1]
    with pytest.raises(pyaviso.HttpError) as raised:
        tick(connect(proxied.base_url, auth=pyaviso.Bearer(token_of("alice"))), "guarded", 2)
    assert raised.value.status == 403
    command = Aviso(proxied.base_url, tmp_path)
    command.environment["AVISO_TOKEN"] = token_of("alice")
    (heard,) = command.lines("replay", "--event", "guarded", "--identifiers", "{}", "--from", "0")
    assert heard["sequence"] == 1
    del command.environment["AVISO_TOKEN"]
    refused = command.run("replay", "--event", "guarded", "--identifiers", "{}", "--from", "0")
    assert refused.returncode == 1
    assert "UNAUTHORIZED" in refused.stderr


def test_everything_over_tls(tmp_path: Path) -> None:
    cert, key, file = (tmp_path / name for name in ("cert.pem", "key.pem", "config.yaml"))
    make_pair(cert, key)
    file.write_text(yaml.safe_dump({"notification_schema": {"open": ROLES["open"]}}), encoding="utf-8")
    command = [*SERVE, "--config", str(file), "--port", "0", "--engine", "memory"]
    command += ["--tls-cert", str(cert), "--tls-key", str(key)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            base_url = json.loads(process.stdout.readline())["url"]
            client = connect(base_url, danger_accept_invalid_certs=True)
            tick(client, "open", 1)
            with listening(client.listen("open", start_from=0)) as listener:
                listener.until(1)
                tick(client, "open", *range(2, 30))
                listener.until(29)
                assert listener.sequences == list(range(1, 30))
            with pytest.raises(pyaviso.TransportError):
                tick(connect(base_url), "open", 1)  # it does not trust just anybody
        finally:
            process.kill()


def test_holders_of_api_keys(tmp_path: Path) -> None:
    """Where the file knows no users, the keys of the server count."""
    keys = "reading:read:ticks1,writing:write+read"
    with serving(tmp_path / "server", {"SEAMARK_API_KEYS": keys}) as server:
        writer, reader = (connect(server.base_url, auth=pyaviso.Bearer(key)) for key in ("writing", "reading"))
        tick(writer, "ticks1", 1)
        assert sequences(replay(reader, "ticks1")) == [1]
        for refused, event_type in ((connect(server.base_url), "ticks1"), (reader, "ticks2")):
            with pytest.raises(pyaviso.HttpError) as raised:
                replay(refused, event_type)
            assert raised.value.status in {401, 403}
