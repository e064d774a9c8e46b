"""Each promise names the tests that prove it, and those tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
CITATION = re.compile(r"`((?:tests|src)/[\w/]+\.py)(?:::(\w+)(?:::(\w+))?)?`")


def sections() -> dict[str, str]:
    """The text under each heading `## G1 ...`."""
    parts = re.split(r"^## (G\d+)\b", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    targets = [node.targets for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    return names | {target.id for group in targets for target in group if isinstance(target, ast.Name)}


def test_there_are_ten() -> None:
    assert list(sections()) == [f"G{number}" for number in range(1, 11)]


@pytest.mark.parametrize("number", range(1, 11))
def test_the_cited_tests_exist(number: int) -> None:
    cited = CITATION.findall(sections()[f"G{number}"])
    assert cited, f"G{number} cites no test"
    assert len(cited) == len(set(cited)), f"G{number} cites a test twice"
    for file, *names in cited:
        path = ROOT / file
        assert path.exists(), f"G{number} cites {file}"
        there = names_in(path)
        for name in filter(None, names):
            assert name in there, f"G{number} cites {name}, which is not in {file}"
            assert re.match(r"test_|Test|[A-Z]", name), f"G{number} cites {name}, which is not a test"
