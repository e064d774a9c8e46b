"""What may stand in the configuration file of a notify server, as rows: the file that such a server already has starts ours.

Some of these keys are settings of ours under another name (`setting`), the others belong to the notify surface alone. Each can
be overridden by a variable made from its name: `AVISOSERVER_WATCH_ENDPOINT__REPLAY_BATCH_SIZE`. The parts of the file that are
not single values (the schema, roles, the list of servers) are read by that surface. Pure: rows, and steps into nested tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from seamark.kinds import (
    BOOL,
    HOST,
    LINE,
    LOG_LEVEL,
    OPEN_PORT,
    PORT,
    SIZE,
    SOME_COUNT,
    TEXT,
    WHOLE,
    Kind,
    Secret,
    Untyped,
    Value,
    choice,
)

PREFIX = "AVISOSERVER_"
CONFIG_ENV = "AVISOSERVER_CONFIG_FILE"
STRICT = "notification_schema_strict"

# The top level of the file. Anything else there is a mistake.
SECTIONS = frozenset({"application", "watch_endpoint", "notification_backend", "notification_schema", STRICT, "auth",
                      "metrics", "logging", "ecpds"})  # fmt: skip

_LEVELS = {
    "trace": "debug",
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
}
_ENGINES = {"in_memory": "memory"}  # jetstream says nothing to us: the surface refuses it, with the reason
_STYLES = {"json": "json"}
_UNUSED = "Accepted, and nothing here needs it."


class Key(NamedTuple):
    """One row. `name` is its place in the file, with dots."""

    name: str
    kind: Kind
    default: Value
    why: str
    setting: str = ""  # the setting of ours that it gives a value to
    words: Mapping[str, str] = MappingProxyType({})  # its values in the words of that setting; others say nothing to it
    when: str = ""  # it gives one only while this other key is true

    @property
    def env(self) -> str:
        return PREFIX + self.name.replace(".", "__").upper()

    def given(self, values: Mapping[str, Value]) -> Value:
        """The value of its setting, None where it gives none."""
        value = values[self.name]
        if not self.setting or (self.when and values[self.when] is not True):
            return None
        return self.words.get(str(value)) if self.words else value


_MEMORY = "notification_backend.in_memory"
_NATS = "notification_backend.jetstream"

KEYS: tuple[Key, ...] = (
    Key("application.host", HOST, None, "The address to listen on.", "host"),
    Key("application.port", PORT, None, "The port to listen on.", "port"),
    Key("application.base_url", LINE, "http://localhost", "Stands in every CloudEvent as its `source`, as it is."),
    Key("application.static_files_path", LINE, "/app/static", _UNUSED),
    Key("watch_endpoint.sse_heartbeat_interval_sec", SOME_COUNT, 30, "A watch says that it is alive this often."),
    Key("watch_endpoint.connection_max_duration_sec", SOME_COUNT, 3600, "A watch is closed after so long."),
    Key("watch_endpoint.replay_batch_size", SOME_COUNT, 100, "Notifications that are read from history at a time."),
    Key("watch_endpoint.max_historical_notifications", SOME_COUNT, 10_000, "The most that one request gets from history."),
    Key("watch_endpoint.replay_batch_delay_ms", WHOLE, 0, "The pause between two such reads: a throttle. A notify server has 100."),
    Key("watch_endpoint.concurrent_notification_processing", SOME_COUNT, 15, _UNUSED),
    Key("notification_backend.kind", choice("in_memory", "jetstream"), None,
        "Where notifications are kept. Nothing: our embedded engine, which keeps all until a policy says otherwise.", "engine", _ENGINES),
    Key(f"{_MEMORY}.max_history_per_topic", SOME_COUNT, 1, "Notifications kept of each topic."),
    Key(f"{_MEMORY}.max_topics", SOME_COUNT, 10_000, "Topics kept of each event type; what goes is the oldest."),
    Key(f"{_MEMORY}.enable_metrics", BOOL, False, _UNUSED),
    Key(f"{_NATS}.nats_url", LINE, "nats://localhost:4222", "Where the NATS server is."),
    Key(f"{_NATS}.token", TEXT, Secret(), "What it wants to be shown; the variable `NATS_TOKEN` will do, too."),
    Key(f"{_NATS}.timeout_seconds", SOME_COUNT, 30, "How long one attempt to connect may take."),
    Key(f"{_NATS}.retry_attempts", SOME_COUNT, 3, "Attempts before a start is given up."),
    Key(f"{_NATS}.max_messages", SOME_COUNT, None, "Notifications kept of each event type."),
    Key(f"{_NATS}.max_bytes", SIZE, None, "Bytes kept of each event type."),
    Key(f"{_NATS}.retention_time", LINE, None, "How long notifications are kept, as in `30d`."),
    Key(f"{_NATS}.storage_type", choice("file", "memory"), "file", "Where NATS keeps them."),
    Key(f"{_NATS}.replicas", SOME_COUNT, None, "Copies that NATS keeps."),
    Key(f"{_NATS}.retention_policy", choice("limits", "interest", "workqueue"), "limits", "What NATS keeps."),
    Key(f"{_NATS}.discard_policy", choice("old", "new"), "old", "What a full stream gives up."),
    Key(f"{_NATS}.enable_auto_reconnect", BOOL, True, "Whether a lost connection is made again."),
    Key(f"{_NATS}.max_reconnect_attempts", WHOLE, 5, "How often; 0 means for ever."),
    Key(f"{_NATS}.reconnect_delay_ms", SOME_COUNT, 2_000, "The pause between two attempts."),
    Key(f"{_NATS}.publish_retry_attempts", SOME_COUNT, 5, "Attempts to publish on a connection that was lost."),
    Key(f"{_NATS}.publish_retry_base_delay_ms", SOME_COUNT, 150, "The first pause between them; each is twice the last."),
    Key(STRICT, BOOL, None, "Whether event types without a schema are refused. Nothing: where there is a schema, they are."),
    Key("auth.enabled", BOOL, False, "Whether callers of `/api/v1` are asked who they are."),
    Key("auth.mode", choice("direct", "trusted_proxy"), "direct", "Whether we ask auth-o-tron, or a proxy before us has asked."),
    Key("auth.auth_o_tron_url", LINE, "", "Where auth-o-tron is; needed in mode `direct`."),
    Key("auth.jwt_secret", TEXT, Secret(), "What tokens are signed with; always needed."),
    Key("auth.timeout_ms", SOME_COUNT, 5_000, "How long auth-o-tron may take."),
    Key("metrics.enabled", BOOL, False, "Whether metrics have a port of their own."),
    Key("metrics.host", HOST, "127.0.0.1", "Its address.", "metrics_host", when="metrics.enabled"),
    Key("metrics.port", OPEN_PORT, None, "The port; needed when they have one.", "metrics_port", when="metrics.enabled"),
    Key("logging.level", LOG_LEVEL, "info", "The least severe lines that are logged.", "log_level", _LEVELS),
    Key("logging.format", LINE, "json", "`json` makes JSON lines of them also on a terminal.", "log_style", _STYLES),
    Key("ecpds.username", LINE, "", "The account with which ECPDS is asked."),
    Key("ecpds.password", TEXT, Secret(), "Its password."),
    Key("ecpds.target_field", LINE, "name", "The field of a destination that holds its name."),
    Key("ecpds.match_key", LINE, "", "The identifier that must be one of the caller's destinations."),
    Key("ecpds.cache_ttl_seconds", SOME_COUNT, 300, "How long a caller's destinations are believed."),
    Key("ecpds.max_entries", SOME_COUNT, 10_000, "Callers whose destinations are kept."),
    Key("ecpds.request_timeout_seconds", SOME_COUNT, 30, "How long one answer may take."),
    Key("ecpds.connect_timeout_seconds", SOME_COUNT, 5, "How long a connection may take, of that."),
    Key("ecpds.partial_outage_policy", choice("strict", "any_success"), "strict",
        "Whether all servers must answer, or one that does is enough."),
)  # fmt: skip


def place_of(variable: str) -> tuple[str, ...] | None:
    """Where in the file an environment variable points; None for one that is not meant for us. Without `__` only a key of the
    top level is: container platforms make `AVISOSERVER_PORT` and the like by themselves, for a service of that name."""
    if not variable.startswith(PREFIX) or variable == CONFIG_ENV:
        return None
    place = tuple(variable.removeprefix(PREFIX).lower().split("__"))
    return place if len(place) > 1 or place == (STRICT,) else None


def put(document: dict[str, object], place: tuple[str, ...], text: str) -> None:
    """Set one value from the environment. Tables on the way are copied, not changed: aliases may share them. Raises ValueError
    where the place is inside a value that is no table, or is a table itself."""
    table = document
    for name in place[:-1]:
        inner = table.get(name)
        if not isinstance(inner, Mapping | None):
            raise ValueError
        table[name] = inner = dict(inner or {})
        table = inner
    if isinstance(table.get(place[-1]), Mapping):
        raise ValueError
    table[place[-1]] = Untyped(text)


def at(document: Mapping[str, object], name: str) -> object:
    """The value at a dotted place, None where there is none. Raises ValueError naming a section that is no table."""
    value: object = document
    walked: list[str] = []
    for part in name.split("."):
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ValueError(".".join(walked))
        value = value.get(part)
        walked.append(part)
    return value
