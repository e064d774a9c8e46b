"""Settings as rows. From the rows come the flags, the environment variables, the file keys and the docs; each value
knows where it came from.

Precedence: flag > environment `SEAMARK_*` > environment `AVISOSERVER_*` > the file (`seamark.toml` in the working directory, or
`--config FILE`, TOML or YAML by its extension) > default. The file may also be that of a notify server, or hold both; what it may
say is in `contract.py`. Whatever is unknown or ill-typed raises BadConfig with the name, the place and what is
accepted: a server that guesses is worse than one that does not start.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, cast

import msgspec
import yaml

from seamark import contract, limits
from seamark.errors import BadConfig
from seamark.kinds import (
    BOOL,
    COUNT,
    DURATION,
    HOST,
    OPTIONAL_PATH,
    PATH,
    PORT,
    SIZE,
    SOME_DURATION,
    TEXT,
    URL,
    Kind,
    Secret,
    Untyped,
    Value,
    choice,
    is_loopback,
)

Place = Literal["flag", "environment", "file"]
EVERYWHERE: tuple[Place, ...] = ("flag", "environment", "file")


class Setting(NamedTuple):
    """One row."""

    name: str
    kind: Kind
    default: Value
    why: str
    aliases: tuple[str, ...] = ()  # further environment variables that mean the same
    where: tuple[Place, ...] = EVERYWHERE

    @property
    def env(self) -> str:
        return f"SEAMARK_{self.name.upper()}"

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


SETTINGS: tuple[Setting, ...] = (
    # -- where
    Setting("host", HOST, "127.0.0.1", "The address to listen on. One that others can reach needs `api_keys`.", ("TOPICS_HOST",)),
    Setting("port", PORT, 8000, "The port to listen on; 0 takes a free one.", ("TOPICS_PORT",)),
    Setting("port_file", OPTIONAL_PATH, None, "Write `host:port` as really used to this file once the server is ready.",
            ("TOPICS_PORT_FILE",)),
    Setting("public_url", URL, "", "The address that clients use, where it is not the one listened on.", ("EXD_PUBLIC_URL",)),
    # -- data
    Setting("data", PATH, Path("./var"), "The directory of the embedded engine; a local disk, never a network one.",
            ("TOPICS_DATA_DIR",)),
    Setting("engine", choice("embedded", "memory"), "embedded", "`embedded` is durable; `memory` forgets all on exit."),
    Setting("quota_bytes", SIZE, 0, "Live bytes over all streams after which appends are refused; 0: no quota.",
            ("TOPICS_MAX_TOTAL_BYTES",)),
    # -- access
    Setting("api_keys", TEXT, Secret(), "`key[:scopes[:prefixes]]`, comma-separated; empty: everybody may do everything."
            " No flag, because command lines are visible to other users.", ("TOPICS_API_KEYS",), ("environment", "file")),
    Setting("superadmin_token_file", OPTIONAL_PATH, None, "A file with the secret of a superadmin token of the flags surface, for"
            " automation; where there is none, or an empty one, a new secret is written there."),
    Setting("signing_key", OPTIONAL_PATH, None, "A file with the secret that signs addresses of closures, made where there is none;"
            " not given: `signing.key` in `data`, and with the memory engine a new secret for each run.", ("EXD_SIGNING_KEY",)),
    Setting("allow_insecure", BOOL, False, "Listen on a public address although there are no `api_keys`.",
            ("TOPICS_ALLOW_INSECURE_NO_AUTH",)),
    Setting("probe_auth", BOOL, False, "The probes of the topics surface (`/healthz`, `/readyz` and their twins) ask for a key too.",
            ("TOPICS_PROBE_AUTH",)),
    Setting("tls_cert", OPTIONAL_PATH, None, "Certificate chain (PEM); with `tls_key` the server speaks HTTPS."),
    Setting("tls_key", OPTIONAL_PATH, None, "Private key (PEM) of `tls_cert`."),
    # -- what is seen
    Setting("metrics_host", HOST, "127.0.0.1", "The address of the metrics port, when it has one of its own."),
    Setting("metrics_port", PORT, 0, "A port of its own for `/metrics`, without TLS; 0: it is on the main port."),
    Setting("log_level", choice("debug", "info", "warning", "error"), "info", "The least severe lines that are logged."),
    Setting("log_style", choice("auto", "text", "json"), "auto", "`auto`: text on a terminal, JSON lines otherwise."),
    Setting("access_log", BOOL, False, "Log one line for every answered request."),
    # -- bounds in time and size
    Setting("grace_seconds", DURATION, 10.0, "How long a stop may take before open connections are cut."),
    Setting("max_body_bytes", SIZE, limits.BODY_BYTES_MAX, "The largest request body; a route may have a lower bound.",
            ("TOPICS_MAX_BODY_BYTES",)),
    Setting("header_timeout_seconds", SOME_DURATION, float(limits.HEADER_SECONDS),
            "From the first byte of a request to the end of its headers."),
    Setting("body_timeout_seconds", SOME_DURATION, float(limits.BODY_GRACE_SECONDS), "How long a body may take, to which each"
            f" {limits.BODY_BYTES_PER_SECOND_MIN} bytes that arrive add a second: slow links pass, stalled clients do not."),
    Setting("keep_alive_seconds", SOME_DURATION, float(limits.KEEP_ALIVE_SECONDS),
            "How long an idle connection is kept for the next request."),
    Setting("heartbeat_seconds", SOME_DURATION, 15.0, "A silent stream says that it is alive this often."),
    # -- bounds of the topics surface
    Setting("max_topics", COUNT, 100_000, "Topics that may be made; those that exist can always be changed.", ("TOPICS_MAX_TOPICS",)),
    Setting("max_routers", COUNT, 10_000, "Routers that may be made, likewise.", ("TOPICS_MAX_ROUTERS",)),
    Setting("max_watch_sessions", COUNT, 10_000, "Watch sessions that are kept, with an open stream or without.",
            ("TOPICS_MAX_WATCH_SESSIONS",)),
    Setting("max_sse_connections", COUNT, 10_000, "Open streams of topics.", ("TOPICS_MAX_SSE_CONNECTIONS",)),
    Setting("max_sse_connections_per_key", COUNT, 1_000, "Open streams of one API key.", ("TOPICS_MAX_SSE_CONNECTIONS_PER_KEY",)),
    Setting("max_inflight_per_key", COUNT, 1_000, "Unanswered requests of one API key; open streams are not among them.",
            ("TOPICS_MAX_INFLIGHT_PER_KEY",)),
    # -- the event streams of the flags surface
    Setting("flags_keepalive_seconds", SOME_DURATION, 30.0, "A silent event stream of flags says that it is alive this often."),
    Setting("flags_inline_files", COUNT, limits.INLINE_FILES_DEFAULT,
            "A version that changes more files of a subscription is told as a snapshot."),
    # -- trying out
    Setting("demo", BOOL, False, "Keep a stream called `demo` filled with live sample data."),
)  # fmt: skip

BY_NAME: Mapping[str, Setting] = MappingProxyType({row.name: row for row in SETTINGS})
CONFIG_ENV = "SEAMARK_CONFIG"
DEFAULT_FILE = "seamark.toml"
ADDRESS_ENV = "TOPICS_HOST"
_ADDRESS = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>.*))?")


class Source(NamedTuple):
    """Where a value came from: the place, and its name there."""

    place: Place | Literal["default"]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.place} {self.name}".rstrip()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, typed; `sources` says of each where it came from. `contract` are the values of a notify server's file that are
    single ones, `notify` is all of its part of the file."""

    host: str
    port: int
    port_file: Path | None
    public_url: str
    data: Path
    engine: str
    quota_bytes: int
    api_keys: Secret
    superadmin_token_file: Path | None
    signing_key: Path | None
    allow_insecure: bool
    probe_auth: bool
    tls_cert: Path | None
    tls_key: Path | None
    metrics_host: str
    metrics_port: int
    log_level: str
    log_style: str
    access_log: bool
    grace_seconds: float
    max_body_bytes: int
    header_timeout_seconds: float
    body_timeout_seconds: float
    keep_alive_seconds: float
    heartbeat_seconds: float
    max_topics: int
    max_routers: int
    max_watch_sessions: int
    max_sse_connections: int
    max_sse_connections_per_key: int
    max_inflight_per_key: int
    flags_keepalive_seconds: float
    flags_inline_files: int
    demo: bool
    sources: Mapping[str, Source]
    contract: Mapping[str, Value]
    notify: Mapping[str, object]

    def value(self, name: str) -> Value:
        assert name in BY_NAME
        return cast("Value", getattr(self, name))


def load(
    flags: Mapping[str, str | bool | None] = MappingProxyType({}),
    *,
    environ: Mapping[str, str] = MappingProxyType({}),
    directory: Path = Path(),
    file: Path | None = None,
) -> Settings:
    """The settings of a process. A flag that is None was not given. Without `file` (`--config`) the variable
    SEAMARK_CONFIG is asked, then `seamark.toml` in `directory`."""
    given: dict[str, tuple[Source, object]] = {}
    path = _file_to_read(file, environ, directory)
    document = {} if path is None else _document(path)
    notify: dict[str, object] = {}
    for key, raw in document.items():
        if key in contract.SECTIONS:
            notify[str(key)] = raw
        else:
            row = _row(key, "file", f"{path}", [*BY_NAME, *contract.SECTIONS])
            given[row.name] = Source("file", str(path)), raw
    _override(notify, environ)
    values, sources = _contract(notify, Source("environment") if path is None else Source("file", str(path)))
    for name, (source, raw) in _meant(values, sources).items():
        if name not in given or source.place == "environment":
            given[name] = source, raw
    given |= _from_environment(environ)
    for name, flag in flags.items():
        if flag is not None:
            row = _row(name, "flag", "command line", [row.name for row in SETTINGS if "flag" in row.where])
            given[row.name] = Source("flag", row.flag), flag if isinstance(flag, bool) else Untyped(flag)
    ours = {row.name: _parsed(row, *given[row.name]) if row.name in given else row.default for row in SETTINGS}
    sources |= {row.name: given[row.name][0] if row.name in given else Source("default") for row in SETTINGS}
    return Settings(
        **cast("dict[str, Any]", ours),
        sources=MappingProxyType(sources),
        contract=MappingProxyType(values),
        notify=MappingProxyType(notify),
    )


def check_serving(settings: Settings) -> None:
    """What no single setting can know. Raises BadConfig."""
    known = settings.api_keys or settings.contract["auth.enabled"]
    if not known and not settings.allow_insecure and not is_loopback(settings.host):
        _refuse(
            "host",
            settings.sources["host"],
            f"{settings.host} can be reached by others and there are no api_keys",
            f"a loopback address, or {BY_NAME['api_keys'].env}, or {BY_NAME['allow_insecure'].flag} to serve everybody",
        )
    if settings.metrics_port and (settings.metrics_host, settings.metrics_port) == (settings.host, settings.port):
        why = f"{settings.metrics_port} is the main port"
        _refuse(
            "metrics_port", settings.sources["metrics_port"], why, "another port, or 0 to serve both on the main one"
        )
    if settings.max_body_bytes > limits.BODY_BYTES_MAX:
        why = f"{settings.max_body_bytes} is more than any request may have"
        _refuse("max_body_bytes", settings.sources["max_body_bytes"], why, f"{limits.BODY_BYTES_MAX} at the most")
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        file = settings.value(name)
        if not isinstance(file, Path):
            continue
        if not settings.value(other):
            _refuse(name, settings.sources[name], f"given without {other}", f"{name} and {other} together, or neither")
        if not os.access(file, os.R_OK) or not file.is_file():
            _refuse(name, settings.sources[name], f"{file} cannot be read", "a PEM file that this user may read")


def _file_to_read(file: Path | None, environ: Mapping[str, str], directory: Path) -> Path | None:
    if file is not None:
        return file
    for name in (CONFIG_ENV, contract.CONFIG_ENV):
        if environ.get(name):
            return Path(environ[name])
    path = directory / DEFAULT_FILE
    return path if path.exists() else None


def _document(path: Path) -> Mapping[Hashable, object]:
    """The top level of a settings file. Messages name lines but never quote them: a line may hold a secret."""
    source = Source("file", str(path))
    accepts = "a readable TOML (.toml) or YAML (.yaml, .yml) file with a table at its top level"
    if path.suffix not in {".toml", ".yaml", ".yml"}:
        _refuse("config", source, f"the extension {path.suffix!r} is not known", accepts)
    document: object = None
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text) if path.suffix == ".toml" else yaml.load(text, Loader=_StrictLoader)
    except OSError as error:
        _refuse("config", source, (error.strerror or "cannot be read").lower(), accepts)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        _refuse("config", source, f"{error.problem or 'not YAML'}{where}", accepts)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        _refuse("config", source, " ".join(str(error).split()), accepts)
    if document is None:
        return {}
    if not isinstance(document, dict):
        _refuse("config", source, "the top level is not a table", accepts)
    return document


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that is given twice instead of taking the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name in seen and name is not None:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Source, object]]:
    known = {row.env: row for row in SETTINGS}
    environ, given = _address_split(environ)
    for row in SETTINGS:
        for name in (*row.aliases[::-1], row.env):  # our own name last, so that it wins
            if name in environ:
                given[row.name] = Source("environment", name), Untyped(environ[name])
    for name in environ:
        if name.startswith("SEAMARK_") and name not in known and name != CONFIG_ENV:
            _unknown(name, Source("environment"), [*known, CONFIG_ENV])
    return given


def _override(notify: dict[str, object], environ: Mapping[str, str]) -> None:
    """Lay the variables of a notify server over the file."""
    for name in sorted(environ):
        place = contract.place_of(name)
        if place is None:
            continue
        if place[0] not in contract.SECTIONS:
            sections = [contract.PREFIX + section.upper() for section in contract.SECTIONS]
            _unknown(name, Source("environment"), sections)
        try:
            contract.put(notify, place, environ[name])
        except ValueError:
            _refuse(
                name, Source("environment"), "a section is no single value", "the name of a key inside of a section"
            )


def _contract(notify: Mapping[str, object], file: Source) -> tuple[dict[str, Value], dict[str, Source]]:
    """Every single value that a notify server may be told, and where it came from."""
    values: dict[str, Value] = {}
    sources = {"notify": file}
    for key in contract.KEYS:
        try:
            raw = contract.at(notify, key.name)
        except ValueError as error:
            _refuse(str(error), file, "it is not a table", "a table of keys")
        source = Source("environment", key.env) if isinstance(raw, Untyped) else file
        sources[key.name] = Source("default") if raw is None else source
        values[key.name] = key.default if raw is None else _parsed(key, source, raw)
    return values, sources


def _meant(values: Mapping[str, Value], sources: Mapping[str, Source]) -> dict[str, tuple[Source, object]]:
    """What that says about settings of ours."""
    return {
        key.setting: (sources[key.name], value)
        for key in contract.KEYS
        if sources[key.name].place != "default" and (value := key.given(values)) is not None
    }


def _address_split(environ: Mapping[str, str]) -> tuple[Mapping[str, str], dict[str, tuple[Source, object]]]:
    """`TOPICS_HOST` may hold `host:port`: the host stays, and the port counts where none is given by itself."""
    found = _ADDRESS.fullmatch(environ.get(ADDRESS_ENV, ""))
    if found is None:
        return environ, {}
    port = found["port"] if BY_NAME["host"].env not in environ else None
    source = Source("environment", ADDRESS_ENV)
    environ = {**environ, ADDRESS_ENV: found["bracketed"] or found["host"]}
    return environ, {} if port is None else {"port": (source, Untyped(port))}


def _row(name: object, place: Place, where: str, names: Sequence[str]) -> Setting:
    row = BY_NAME.get(name) if isinstance(name, str) else None
    if row is None or place not in row.where:
        _unknown(str(name), Source(place, where), names)
    return row


def _parsed(row: Setting | contract.Key, source: Source, raw: object) -> Value:
    try:
        return row.kind.parse(raw)
    except ValueError:
        shown = "its value" if isinstance(row.default, Secret) else repr(raw if not isinstance(raw, str) else str(raw))
        _refuse(row.name, source, f"{shown} is not valid", row.kind.accepts)


def _unknown(name: str, source: Source, names: Sequence[str]) -> NoReturn:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    _refuse(name, source, f"there is no such setting{hint}", ", ".join(sorted(names)))


def _refuse(name: str, source: Source, why: str, accepts: str) -> NoReturn:
    raise BadConfig(f"{name} ({source}): {why}; accepted: {accepts}", name=name, place=str(source), accepts=accepts)
