"""A server for each file of tests, and a client that knows nothing of whoever runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyaviso
import pytest

from seamark.testing.server import ServerProcess
from tests.certificate import make_pair
from tests.conformance.rig import TICKS, connect, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("conformance")) as process:
        yield process


@pytest.fixture(scope="module", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The client looks for settings in the environment and at home, and does not begin without a certificate to trust."""
    home = tmp_path_factory.mktemp("home")
    make_pair(home / "cert.pem", home / "key.pem")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AVISO_") or name.lower().endswith("_proxy")]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("SSL_CERT_FILE", str(home / "cert.pem"))
        patch.delenv("SSL_CERT_DIR", raising=False)
        yield


@pytest.fixture
def client(server: ServerProcess) -> pyaviso.AvisoClient:
    return connect(server.base_url)


@pytest.fixture(scope="module")
def unused_ticks() -> Iterator[str]:
    return iter(TICKS)


@pytest.fixture
def ticks(unused_ticks: Iterator[str]) -> str:
    """An event type whose stream is the test's own: it begins at 1."""
    return next(unused_ticks)
