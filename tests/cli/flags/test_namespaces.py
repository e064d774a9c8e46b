"""Namespaces from a shell."""

from __future__ import annotations

import os

import pytest

from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import ONE


def test_namespaces_are_made_and_listed(desk: Desk) -> None:
    tenant = os.environ["EXD_NAMESPACE"].partition("/")[0]
    assert "push a manifest" in desk.run("namespaces", "create", f"{tenant}/growth", "--text").out
    assert "already" in desk.run("namespaces", "create", f"{tenant}/growth", status=1).err
    desk.run("namespaces", "create", f"{tenant}/Growth", status=2)
    desk.run("namespaces", "create", "nobody/growth", status=2)
    desk.run("push", desk.write(ONE))
    rows = desk.run("namespaces", "list", "--tenant", tenant).lines
    assert [(row["slug"], row["current_version"]) for row in rows] == [("billing", 1), ("growth", 0)]
    shown = desk.run("namespaces", "list", "--tenant", tenant, "--text").out.split()
    assert shown == ["namespace", "name", "version", f"{tenant}/billing", "1", f"{tenant}/growth", "0"]


def test_lists_are_read_to_their_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.limits.FLAGS_LISTED_MAX", 2)  # of the verb; the server has its own
    tenant = os.environ["EXD_NAMESPACE"].partition("/")[0]
    for slug in ("a", "b", "c", "d"):
        desk.run("namespaces", "create", f"{tenant}/{slug}")
    assert len(desk.run("namespaces", "list", "--tenant", tenant).lines) == 5
