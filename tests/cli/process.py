"""The command as a process: how tests of verbs start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("SEAMARK_", "EXD_", "AVISOSERVER_"))}


def run(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run one verb to its end."""
    command = [sys.executable, "-m", "seamark", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=CLEAN | environ, timeout=60, check=False
    )
