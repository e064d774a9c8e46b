"""Whether the settings make sense together and with this machine. Asked before anything is opened or made."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NoReturn

from seamark import config
from seamark.access.keys import parse_keys
from seamark.cli.checks.outcome import Outcome, fail, ok, warn
from seamark.clock import SystemClock
from seamark.errors import BadConfig
from seamark.kinds import is_loopback


def check_settings(settings: config.Settings) -> None:
    """Everything that would stop a start although each setting is valid by itself. Raises BadConfig."""
    config.check_serving(settings)
    parse_keys(settings.api_keys.reveal(), place=str(settings.sources["api_keys"]))
    if settings.port_file is not None and not settings.port_file.parent.is_dir():
        why = f"{settings.port_file.parent} is not a directory"
        _refuse(settings, "port_file", why, "a file in a directory that exists")
    if settings.tls_cert is not None and settings.tls_key is not None:
        _check_pair(settings, settings.tls_cert, settings.tls_key)
    if settings.notify:
        _check_notify(settings)


def judge_settings(settings: config.Settings) -> Outcome:
    """The same as a line of `seamark doctor`."""
    try:
        check_settings(settings)
    except BadConfig as error:
        return fail("settings", str(error), f"change {error.fields['name']}: {error.fields['accepts']}")
    if is_open(settings):
        found = f"{settings.host} can be reached by others, and nobody is asked for a key"
        return warn("settings", found, "set SEAMARK_API_KEYS, unless only a proxy that asks for one itself gets there")
    return ok("settings", f"consistent; engine {settings.engine}")


def is_open(settings: config.Settings) -> bool:
    """Whether everybody may do everything, and not only from this machine."""
    return settings.allow_insecure and not settings.api_keys and not is_loopback(settings.host)


def _check_notify(settings: config.Settings) -> None:
    """The whole file of a notify server, as the surface will read it."""
    from seamark.notify.guard import make_gate  # late: most servers have no such file
    from seamark.notify.measures import SERIES
    from seamark.notify.settings import read_options
    from seamark.telemetry.metrics import Metrics

    schema = read_options(settings).schema
    make_gate(settings, schema=schema, clock=SystemClock(), metrics=Metrics(SERIES))


def _check_pair(settings: config.Settings, cert: Path, key: Path) -> None:
    """Load both as the server will. Nobody is there to be asked for a passphrase."""
    encrypted = False

    def passphrase() -> str:
        nonlocal encrypted
        encrypted = True
        return ""

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=passphrase)
    except (ssl.SSLError, OSError, ValueError) as error:
        if encrypted:
            _refuse(settings, "tls_key", f"{key} is encrypted", "a private key without a passphrase (PEM)")
        reason = (error.reason if isinstance(error, ssl.SSLError) else None) or "not PEM"
        why = f"{cert} and {key} cannot be used: {reason.lower().replace('_', ' ')}"
        _refuse(settings, "tls_cert", why, "a certificate chain (PEM) and the private key that belongs to it")


def _refuse(settings: config.Settings, name: str, why: str, accepts: str) -> NoReturn:
    place = str(settings.sources[name])
    raise BadConfig(f"{name} ({place}): {why}; accepted: {accepts}", name=name, place=place, accepts=accepts)
