"""From the settings of the process to those of this surface: the file of a notify server, checked as a whole.

Single values are rows of `seamark.contract` and typed already; what is read here are the schema, roles, and whether everything
goes together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn, cast
from urllib.parse import urlsplit

import msgspec

from seamark import contract
from seamark.config import Settings
from seamark.errors import BadConfig
from seamark.kinds import Secret
from seamark.log.settings import StreamSettings
from seamark.notify.cloudevent import dataschema
from seamark.notify.configtree import Node
from seamark.notify.eventtype import Schema
from seamark.notify.gates import installed
from seamark.notify.options import NotifySettings
from seamark.notify.policy import Roles, read_roles
from seamark.notify.schema import ROOT, ignored, read_schema

KIND = "notification_backend.kind"
BASE_URL = "application.base_url"
_MEMORY = "notification_backend.in_memory"
_WATCH = "watch_endpoint"
_LISTED = ("auth.admin_roles", "ecpds.servers")  # known, and no single values
_EXACT = ("auth", "ecpds")  # sections in which a misspelt key could open a door


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How callers are known. `url` is empty where a proxy has asked them."""

    mode: str
    url: str
    secret: Secret
    timeout_seconds: float
    admin_roles: Roles


def read_options(settings: Settings) -> NotifySettings:
    """What the surface is told. Raises BadConfig, for whatever a start must not survive."""
    values = settings.contract
    _check_backend(settings)
    _check_metrics(settings)
    bounded = settings.engine == "memory" and values[KIND] == "in_memory"
    base_url = _base_url(settings)
    with _Placed(settings):
        dataschema(base_url, "x")
    return NotifySettings(
        schema=_schema(settings, policies=not bounded),
        base_url=base_url,
        heartbeat_seconds=float(_count(settings, f"{_WATCH}.sse_heartbeat_interval_sec")),
        duration_seconds=float(_count(settings, f"{_WATCH}.connection_max_duration_sec")),
        batch_size=_count(settings, f"{_WATCH}.replay_batch_size"),
        batch_pause_seconds=_count(settings, f"{_WATCH}.replay_batch_delay_ms") / 1000,
        history_max=_count(settings, f"{_WATCH}.max_historical_notifications"),
        streams=_bounded(settings) if bounded else StreamSettings(indexed=True),
        backend="in_memory" if bounded else settings.engine,
    )


def read_auth(settings: Settings) -> AuthSettings | None:
    """None: callers are not asked who they are. Raises BadConfig."""
    values = settings.contract
    _check_exact(settings)
    if not values["auth.enabled"]:
        return None
    mode, url = str(values["auth.mode"]), str(values["auth.auth_o_tron_url"])
    secret = values["auth.jwt_secret"]
    if not secret:
        refuse(settings, "auth.jwt_secret", "it is missing", "the text that tokens are signed with")
    if mode == "direct" and not _is_address(url):
        refuse(settings, "auth.auth_o_tron_url", f"{url!r} is no address", "an http:// or https:// address")
    if contract.at(settings.notify, "auth.admin_roles") is None:
        refuse(settings, "auth.admin_roles", "it is missing", "the roles of admins, by realm")
    with _Placed(settings):
        roles = read_roles(Node(settings.notify, "").node("auth").node("admin_roles"))
    return AuthSettings(
        mode=mode,
        url=url if mode == "direct" else "",
        secret=cast("Secret", secret),
        timeout_seconds=_count(settings, "auth.timeout_ms") / 1000,
        admin_roles=roles,
    )


def unread(notify: Mapping[str, object]) -> list[str]:
    """Keys of the file that nothing here reads. A notify server ignores what it does not know, so they stop nothing."""
    known = {key.name for key in contract.KEYS} | set(_LISTED)
    return [name for name in _leaves(notify, "") if name not in known] + ignored(notify.get(ROOT))


def permitted(settings: Settings) -> list[str]:
    """The event types that have a schema, where others are taken too."""
    raw = settings.notify.get(ROOT)
    return sorted(map(str, raw)) if isinstance(raw, Mapping) and settings.contract[contract.STRICT] is False else []


def refuse(settings: Settings, name: str, why: str, accepts: str) -> NoReturn:
    """Stop the start."""
    source = settings.sources.get(name)
    place = str(source if source is not None and source.place != "default" else settings.sources["notify"])
    raise BadConfig(f"{name} ({place}): {why}; accepted: {accepts}", name=name, place=place, accepts=accepts)


def _leaves(value: object, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping) or path in (*_LISTED, ROOT):
        if path and path != ROOT and value is not None:
            yield path
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{path}.{key}" if path else str(key))


def _check_exact(settings: Settings) -> None:
    for name in unread(settings.notify):
        section = name.partition(".")[0]
        if section in _EXACT:
            keys = [key.name for key in contract.KEYS] + list(_LISTED)
            accepts = ", ".join(sorted(key.partition(".")[2] for key in keys if key.startswith(f"{section}.")))
            refuse(settings, name, "there is no such key", accepts)


def _check_backend(settings: Settings) -> None:
    """Another engine may have been chosen by its own name, here or on the command line."""
    if settings.contract[KIND] == "jetstream" and settings.sources["engine"].place == "default":
        accepts = "no kind for the embedded engine, in_memory, or --engine to choose one for this server"
        refuse(settings, KIND, "the engine jetstream is not built into this version", accepts)


def _check_metrics(settings: Settings) -> None:
    if not settings.contract["metrics.enabled"]:
        return
    if not settings.metrics_port:
        refuse(settings, "metrics.port", "it is missing", "a port for metrics, or metrics.enabled: false")
    if settings.metrics_port == settings.port:
        refuse(settings, "metrics.port", f"{settings.metrics_port} is the main port", "another port")


def _schema(settings: Settings, *, policies: bool) -> Schema:
    strict = settings.contract[contract.STRICT]
    with _Placed(settings):
        return read_schema(
            settings.notify.get(ROOT),
            strict=None if strict is None else bool(strict),
            policies=policies,
            auth_enabled=bool(settings.contract["auth.enabled"]),
            plugins=installed(),
        )


def _bounded(settings: Settings) -> StreamSettings:
    """What the contract's engine in memory keeps. Its bound on topics is one on notifications here, which for a history of one is
    the same: the topic that goes is the one whose newest notification is oldest."""
    each = _count(settings, f"{_MEMORY}.max_history_per_topic")
    topics = _count(settings, f"{_MEMORY}.max_topics")
    return StreamSettings(latest_per_subject=each, cap_records=min(each * topics, 2**62), indexed=True)


def _base_url(settings: Settings) -> str:
    """The contract's own, unless this process was told another public address where that weighs more than a file."""
    if settings.public_url and settings.sources["public_url"].place in {"flag", "environment"}:
        return settings.public_url
    if settings.public_url and settings.sources[BASE_URL].place == "default":
        return settings.public_url
    return str(settings.contract[BASE_URL])


def _count(settings: Settings, name: str) -> int:
    value = settings.contract[name]
    assert isinstance(value, int)
    return value


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and not parts.query
    except ValueError:
        return False


class _Placed:
    """Says in refusals which file the refused key is in: readers of parts of it do not know."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BadConfig):
            name, accepts = error.fields["name"].lstrip("."), error.fields["accepts"]
            why = error.message.partition(": ")[2].removesuffix(f"; accepted: {accepts}")
            refuse(self._settings, name, why, accepts)
