"""Which proxy stands between here and a server, as the environment of the process says it."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from seamark.client.address import Origin


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str | None = None  # for a Proxy-Authorization header


def proxy_for(origin: Origin, environ: Mapping[str, str] = os.environ) -> Proxy | None:
    """By `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, lower case before upper case, as curl reads them. Raises
    ValueError for a proxy that is not spoken to in plain HTTP."""
    said = _setting(environ, f"{origin.scheme}_proxy") or _setting(environ, "all_proxy")
    if not said or _is_spared(origin, _setting(environ, "no_proxy")):
        return None
    parts = urlsplit(said if "://" in said else f"http://{said}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("a proxy is named as http://host:port")
    secret = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        secret = f"Basic {b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or 80, secret)


def _setting(environ: Mapping[str, str], name: str) -> str:
    """HTTP_PROXY in capitals is what a request's `Proxy` header becomes under CGI: there only the small one counts."""
    loud = "" if name == "http_proxy" and "REQUEST_METHOD" in environ else environ.get(name.upper(), "")
    return environ.get(name, loud).strip()


def _is_spared(origin: Origin, names: str) -> bool:
    for name in names.lower().replace(",", " ").split():
        plain = name.removeprefix("*").removeprefix(".")
        if name == "*" or plain in (origin.host, f"{origin.host}:{origin.port}"):
            return True
        if plain and origin.host.endswith(f".{plain}"):
            return True
    return False
