"""Pushing, and what stands in the way of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark.manifest.archive import pack
from tests.cli.flags.desk import Desk
from tests.flags.manifests import flag, manifest, segment

ONE = manifest({"a": flag()})
TWO = manifest({"a": flag(segment="s"), "b": flag()}, {"s": segment()})
WRONG = manifest({"a": flag(segment="nowhere")})


def test_a_folder_becomes_a_version(desk: Desk) -> None:
    pushed = desk.run("push", desk.write(ONE)).lines
    assert len(pushed) == 1
    assert pushed[0].pop("uploaded_at")
    namespace = pushed[0].pop("namespace")
    assert namespace.endswith("/billing")
    assert pushed[0] == {"event": "pushed", "version": 1, "flag_count": 1, "segment_count": 0, "warnings": 1}
    said = desk.run("push", desk.write(TWO), "--text")
    assert said.out == f"{namespace} is at version 2: 2 flags, 1 segment, 1 warning\n"


def test_an_archive_will_do(desk: Desk) -> None:
    (desk.folder / "m.tar.gz").write_bytes(pack(ONE))
    assert desk.run("push", str(desk.folder / "m.tar.gz")).lines[0]["version"] == 1


def test_errors_are_found_before_anything_is_sent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXD_URL", "http://127.0.0.1:9")  # nobody is there
    said = desk.run("push", desk.write(WRONG), "--text", status=1)
    assert said.out.startswith("error[E005]")
    assert "at flags/a.toml" in said.out
    assert [one["code"] for one in desk.run("push", desk.write(WRONG), status=1).lines] == ["E005"]
    found = desk.run("push", desk.write(ONE), "--deny-warnings", status=1).lines
    assert [one["code"] for one in found] == ["W003"]


def test_a_version_that_is_not_the_current_one(desk: Desk) -> None:
    folder = desk.write(ONE)
    desk.run("push", folder, "--if-version", "0")
    said = desk.run("push", folder, "--if-version", "0", status=1)
    assert "the current version is 1, not 0" in said.err
    assert said.out == ""
    desk.run("push", folder, "--if-version", "1")
    assert [one["version"] for one in desk.run("versions").lines] == [2, 1]


def test_what_the_server_knows_better(desk: Desk) -> None:
    files = {path: content.replace(b'"0.1"', b'"7.0"') for path, content in ONE.items()}
    said = desk.run("push", desk.write(files), status=2)
    assert "schema_version 7.0" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("push", "absent"), "absent is not there"),
        (("push", ".", "--namespace", "acme"), "--namespace TENANT/NAMESPACE"),
        (("push", ".", "--namespace", "acme/Billing"), "--namespace TENANT/NAMESPACE"),
        (("push", ".", "--url", "ftp://x"), "ftp://x"),
        (("push", ".", "--token-file", "empty"), "empty does not hold"),
        (("versions", "--namespace", "no/where"), "there is no namespace where"),
    ],
)
def test_what_cannot_be_begun(desk: Desk, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str) -> None:
    monkeypatch.chdir(desk.folder)
    Path("empty").touch()
    said = desk.run(*words, status=2)
    assert says in said.err
    assert said.err.count("\n") == 1


def test_a_proxy_is_not_asked_for_this_machine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    desk.run("push", desk.write(ONE))


def test_no_token_no_server_and_the_wrong_token(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = desk.write(ONE)
    monkeypatch.setenv("EXD_TOKEN", "exd_write_" + "x" * 38)
    assert "not known here" in desk.run("push", folder, status=3).err
    monkeypatch.delenv("EXD_TOKEN")
    assert "EXD_TOKEN" in desk.run("push", folder, status=2).err
    (desk.folder / "token").write_text("exd_write_x\n")
    said = desk.run("push", folder, "--token-file", str(desk.folder / "token"), "--url", "http://127.0.0.1:9", status=3)
    assert "cannot be reached" in said.err
