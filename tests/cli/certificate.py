"""A certificate of one's own, for tests that speak TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_pair(cert: Path, key: Path, *extra: str) -> None:
    """A self-made certificate for this machine and its key, which has no passphrase unless `extra` gives one."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(cert), *(extra or ("-nodes",))]
    subprocess.run(command, check=True, capture_output=True)
