"""The reference pages say what the tables say, and the tables are complete enough to be read."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from seamark import config, errors, limits
from seamark.cli.exits import Exit
from seamark.cli.main import VERBS
from seamark.manifest.diagnostic import CODES
from seamark.telemetry.events import EVENTS
from seamark.telemetry.metrics import METRICS
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


def test_pages_are_fresh(generate: ModuleType) -> None:
    assert generate.stale() == [], "run `make docs`"


def test_every_row_is_on_its_page(generate: ModuleType) -> None:
    pages = generate.pages()
    for name, words in {
        "reference/settings.md": [word for row in config.SETTINGS for word in (row.name, row.env)],
        "reference/metrics.md": [row.name for row in METRICS],
        "reference/log-events.md": list(EVENTS),
        "reference/diagnostics.md": list(CODES),
        "reference/limits.md": list(limits.LIMITS),
        "reference/errors.md": [kind.code for kind in generate.error_tree(errors.SeamarkError)],
        "reference/cli.md": [verb.name for verb in VERBS] + [row.name.lower() for row in Exit],
    }.items():
        assert words
        missing = [word for word in words if word not in pages[name]]
        assert not missing, f"{name}: {missing}"


def test_a_stale_page_is_noticed(generate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "metrics", lambda: "another text")
    assert generate.stale() == ["reference/metrics.md"]


def test_cells_cannot_break_a_table(generate: ModuleType) -> None:
    assert generate.table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"
