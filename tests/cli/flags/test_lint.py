"""Linting on this machine."""

from __future__ import annotations

import pytest

from seamark.manifest.archive import pack
from tests.cli.flags.desk import Desk, clean_environment
from tests.cli.flags.test_push import ONE, WRONG
from tests.flags.manifests import HEAD, flag, manifest, segment

CLEAN = manifest({"a": flag(segment="s")}, {"s": segment()})


@pytest.fixture
def alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Without a token, a server or a namespace."""
    clean_environment(monkeypatch)
    return desk


def test_how_it_ends(alone: Desk) -> None:
    assert alone.run("lint", alone.write(CLEAN), "--deny-warnings").lines == [
        {"event": "linted", "passed": True, "files": 2, "errors": 0, "warnings": 0, "infos": 0}
    ]
    alone.run("lint", alone.write(ONE))
    alone.run("lint", alone.write(ONE), "--deny-warnings", status=1)
    found = alone.run("lint", alone.write(WRONG), status=1).lines
    assert [one.get("code") for one in found] == ["E005", None]
    assert found[0]["path"] == "flags/a.toml"
    assert (found[1]["passed"], found[1]["errors"]) == (False, 1)
    assert "1 error, 0 warnings" in alone.run("lint", alone.write(WRONG), "--text", status=1).out


def test_the_namespace_that_it_is_for(alone: Desk) -> None:
    named = f'{HEAD}\n[namespace]\nslug = "growth"\n'.encode()
    folder = alone.write({**CLEAN, "namespace.toml": named})
    alone.run("lint", folder)
    found = alone.run("lint", folder, "--slug", "billing", status=1).lines
    assert found[0]["code"] == "E901"


def test_what_is_beside_a_manifest(alone: Desk) -> None:
    folder = alone.write({**CLEAN, "flags/nested/x.toml": b""})
    assert [one.get("code") for one in alone.run("lint", folder).lines] == ["W009", None]
    (alone.folder / "m.tgz").write_bytes(pack(CLEAN))
    alone.run("lint", str(alone.folder / "m.tgz"), "--deny-warnings")
    (alone.folder / "junk").write_bytes(b"junk")
    assert alone.run("lint", str(alone.folder / "junk"), status=2).out == ""
