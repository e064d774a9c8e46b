"""The pages as the tests see them: prose, fenced blocks, and where the repository is."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import certifi

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: "```bash run server" has the language `bash` and the tags `run` and `server`."""

    language: str
    tags: frozenset[str]
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, *tags = match[2].split() or [""]
        found.append(Block(language, frozenset(tags), match[3], text.count("\n", 0, match.start()) + 1))
    return found


def without_code(path: Path) -> str:
    """The prose of a page."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))


def page_paths() -> list[Path]:
    """Everything that is written for readers."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def clean_environment() -> dict[str, str]:
    """This environment without settings of ours and without proxies, and with this Python's scripts first."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SEAMARK_", "EXD_", "AVISO_")) and not name.lower().endswith("_proxy")
    }
    kept.pop("SSL_CERT_DIR", None)
    # Clients of others do not begin on a machine that trusts nobody.
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "SSL_CERT_FILE": certifi.where(),
    }
