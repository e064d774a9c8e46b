from __future__ import annotations

from pathlib import Path

import pytest

from seamark.client.flags.aio import AsyncFlagsClient
from seamark.client.flags.client import FlagsClient
from seamark.errors import LintFailed
from tests.flags.manifests import HEAD, flag, manifest
from tests.manifest import vectors

STAFF = {"user.email": "a@example.com"}


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_a_folder_answers_like_a_server(tmp_path: Path) -> None:
    with FlagsClient.from_dir(lay(tmp_path / "any name", vectors.A)) as flags:
        assert flags.wait_ready()
        assert flags.get_bool("checkout-redesign", False, STAFF) is True
        details = flags.details("checkout-redesign", False, STAFF)
        assert (details.namespace, details.version, details.stale) == ("billing", 0, False)
        assert details.closure_hash == "sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771"


def test_a_namespace_is_named_by_itself_by_its_folder_or_by_whoever_asks(tmp_path: Path) -> None:
    bare = manifest({"a": flag()})
    assert FlagsClient.from_dir(lay(tmp_path / "shop", bare)).status().namespace == "shop"
    assert FlagsClient.from_dir(lay(tmp_path / "The Shop", bare)).status().namespace == "local"
    assert FlagsClient.from_files(bare, slug="mine").status().namespace == "mine"
    assert (
        FlagsClient.from_files({**bare, "namespace.toml": f"{HEAD}[namespace]\n".encode()}).status().namespace
        == "local"
    )


def test_what_does_not_pass_is_refused_with_what_is_wrong() -> None:
    for broken in (
        manifest({"a": b"no toml ="}),
        {**vectors.A, "namespace.toml": b"\xff"},
        manifest(namespace=b"namespace = 1"),
    ):
        with pytest.raises(LintFailed, match="E0"):
            FlagsClient.from_files(broken)
    with pytest.raises(LintFailed, match="E901"):
        FlagsClient.from_files(vectors.A, slug="other")


def test_a_link_in_a_folder_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    folder = lay(tmp_path / "shop", manifest({"a": flag()}))
    (folder / "flags" / "b.toml").symlink_to(folder / "flags" / "a.toml")
    for kind in (FlagsClient, AsyncFlagsClient):
        with pytest.raises(LintFailed, match="E018"):
            kind.from_dir(folder)


async def test_the_other_kind(tmp_path: Path) -> None:
    async with AsyncFlagsClient.from_dir(lay(tmp_path, vectors.A), environment="staging") as flags:
        assert await flags.wait_ready()
        assert flags.details("checkout-redesign", False, STAFF).environment == "staging"
