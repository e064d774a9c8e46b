"""What stops a start although every setting is valid by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark.cli.checks.settings import check_settings, judge_settings
from seamark.config import load
from seamark.errors import BadConfig
from tests.certificate import make_pair


def refused(flags: dict[str, str], environ: dict[str, str] | None = None) -> BadConfig:
    settings = load(flags, environ=environ or {})
    with pytest.raises(BadConfig) as caught:
        check_settings(settings)
    outcome = judge_settings(settings)
    assert (outcome.level, outcome.found) == ("fail", str(caught.value))
    assert outcome.remedy
    return caught.value


def test_a_pair_that_belongs_together_is_fine(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_pair(cert, key)
    settings = load({"tls_cert": str(cert), "tls_key": str(key)})
    check_settings(settings)
    assert judge_settings(settings).level == "ok"


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_pair(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
    error = refused({"tls_cert": str(tmp_path / "a.pem"), "tls_key": str(tmp_path / "b.key")})
    assert "key values mismatch" in str(error)
    assert error.fields["name"] == "tls_cert"


def test_an_encrypted_key_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_pair(cert, key, passphrase="hunter2")
    error = refused({"tls_cert": str(cert), "tls_key": str(key)})
    assert "is encrypted" in str(error)
    assert error.fields["name"] == "tls_key"


def test_what_is_not_pem_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00\xff")
    error = refused({"tls_cert": str(tmp_path / "file"), "tls_key": str(tmp_path / "file")})
    assert "cannot be used" in str(error)


def test_keys_and_the_port_file_are_looked_at(tmp_path: Path) -> None:
    error = refused({}, {"SEAMARK_API_KEYS": "hunter2:everything"})
    assert "entry 1" in str(error)
    assert "hunter2" not in str(error)
    assert "is not a directory" in str(refused({"port_file": str(tmp_path / "gone" / "port")}))
    check_settings(load({"port_file": str(tmp_path / "port")}))


def test_a_door_that_stands_open_is_pointed_at() -> None:
    public = {"host": "0.0.0.0", "allow_insecure": "true"}
    outcome = judge_settings(load(public))
    assert (outcome.level, outcome.check) == ("warn", "settings")
    assert "SEAMARK_API_KEYS" in outcome.remedy
    assert judge_settings(load(public, environ={"SEAMARK_API_KEYS": "k"})).level == "ok"
    assert judge_settings(load({"allow_insecure": "true"})).level == "ok", "nobody else reaches a loopback address"
