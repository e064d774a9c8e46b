"""The file of a notify server: what it means here, what wins over it, and what stops a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from seamark import config, contract
from seamark.config import BY_NAME, Settings, Source, check_serving, load
from seamark.errors import BadConfig
from seamark.kinds import Untyped
from seamark.log.settings import StreamSettings
from seamark.notify.options import NotifySettings
from seamark.notify.settings import read_auth, read_options, unread
from tests.access.tokens import SECRET
from tests.docs.markdown import blocks
from tests.notify.file import document, loaded, written


def read(settings: Settings) -> NotifySettings:
    """Everything that a start reads."""
    options = read_options(settings)
    read_auth(settings)
    return options


def test_the_whole_file_becomes_settings(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    assert (settings.host, settings.port, settings.log_level, settings.log_style) == (
        "127.0.0.1",
        8000,
        "warning",
        "json",
    )
    assert (settings.engine, settings.metrics_port) == ("embedded", 0)
    options = read_options(settings)
    assert options.schema.names == ["areas", "closed", "mars", "public"]
    assert options.schema.strict
    assert (options.base_url, options.backend) == ("http://aviso.example", "embedded")
    assert (options.heartbeat_seconds, options.duration_seconds) == (7.0, 600.0)
    assert (options.batch_size, options.batch_pause_seconds, options.history_max) == (50, 0.005, 200)
    mars = options.schema.get("mars")
    assert mars is not None
    assert mars.settings(options.streams) == StreamSettings(
        ttl_ms=7 * 86_400_000, cap_records=1000, cap_bytes=10 * 2**20, indexed=True
    )
    auth = read_auth(settings)
    assert auth is not None
    assert (auth.mode, auth.url, auth.timeout_seconds, dict(auth.admin_roles)) == (
        "trusted_proxy",
        "",
        5.0,
        {"ocean": ("admin",)},
    )
    assert auth.secret.reveal() == SECRET
    assert SECRET not in repr(settings.contract)
    assert unread(settings.notify) == []


def test_without_a_file_everything_is_as_the_contract_has_it(tmp_path: Path) -> None:
    settings = load(directory=tmp_path)
    options = read(settings)
    empty = read(loaded(tmp_path, {"watch_endpoint": None, "auth": None}))
    assert msgspec.structs.replace(empty, schema=options.schema) == options
    assert not options.schema.configured
    assert options.base_url == "http://localhost"
    assert (options.heartbeat_seconds, options.duration_seconds) == (30.0, 3600.0)
    assert (options.batch_size, options.history_max) == (100, 10_000)
    assert options.streams == StreamSettings(indexed=True)  # everything is kept until a policy says otherwise
    assert read_auth(settings) is None


def test_each_key_of_a_section_has_its_own_default(tmp_path: Path) -> None:
    options = read(loaded(tmp_path, {"watch_endpoint": {"replay_batch_size": 7}}))
    assert (options.batch_size, options.heartbeat_seconds) == (7, 30.0)


def test_the_engine_in_memory_keeps_what_the_contract_says(tmp_path: Path) -> None:
    def streams(backend: dict[str, Any], **environ: str) -> tuple[str, StreamSettings]:
        settings = loaded(tmp_path, {"notification_backend": backend}, **environ)
        return settings.engine, read(settings).streams

    assert streams({"kind": "in_memory"}) == (
        "memory",
        StreamSettings(latest_per_subject=1, cap_records=10_000, indexed=True),
    )
    limited = {"kind": "in_memory", "in_memory": {"max_history_per_topic": 3, "max_topics": 20, "enable_metrics": True}}
    assert streams(limited)[1] == StreamSettings(latest_per_subject=3, cap_records=60, indexed=True)
    assert streams(limited, SEAMARK_ENGINE="embedded") == ("embedded", StreamSettings(indexed=True))
    with pytest.raises(BadConfig, match="not supported by backend 'in_memory'"):
        read(loaded(tmp_path, document(notification_backend={"kind": "in_memory"})))


def test_the_strictness_of_the_file_counts(tmp_path: Path) -> None:
    for strict in (True, False):
        assert read(loaded(tmp_path, {"notification_schema_strict": strict})).schema.strict is strict
        assert read(loaded(tmp_path, document(notification_schema_strict=strict))).schema.strict is strict
    assert read(loaded(tmp_path, document(notification_schema_strict=None))).schema.strict
    assert not read(loaded(tmp_path, {"notification_schema": {}})).schema.strict


def test_the_file_of_the_page_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "notify-configuration.md"
    (block,) = [block for block in blocks(page) if block.language == "yaml"]
    settings = loaded(tmp_path, block.text)
    assert read(settings).schema.names == ["mars"]
    assert unread(settings.notify) == []


# -- what wins


def test_flag_beats_our_variable_beats_theirs_beats_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, {"application": {"host": "::1", "port": 1}})

    def port(flag: str | None = None, **environ: str) -> tuple[int, str]:
        settings = load({"port": flag}, environ=environ, file=file, directory=tmp_path)
        assert settings.host == "::1"
        return settings.port, str(settings.sources["port"])

    theirs = {"AVISOSERVER_APPLICATION__PORT": "2"}
    ours = theirs | {"SEAMARK_PORT": "3"}
    assert port() == (1, f"file {file}")
    assert port(**theirs) == (2, "environment AVISOSERVER_APPLICATION__PORT")
    assert port(**ours) == (3, "environment SEAMARK_PORT")
    assert port("4", **ours) == (4, "flag --port")


def test_in_one_file_our_own_name_wins_and_their_variable_over_both(tmp_path: Path) -> None:
    both = {"application": {"port": 1}, "port": 5}
    assert loaded(tmp_path, both).port == 5
    assert loaded(tmp_path, both, AVISOSERVER_APPLICATION__PORT="2").port == 2


def test_every_key_can_be_a_variable(tmp_path: Path) -> None:
    texts = {"count": "7", "port": "7", "bool": "true", "host": "::1", "text": "x", "size": "7", "level": "error"}
    for key in contract.KEYS:
        text = texts[key.kind.name] if key.kind.name in texts else key.kind.accepts.split(" or ")[0]
        settings = load(environ={key.env: text}, directory=tmp_path)
        assert settings.contract[key.name] == key.kind.parse(Untyped(text)), key.name
        assert settings.sources[key.name] == Source("environment", key.env)


def test_a_variable_reaches_into_the_schema_and_changes_nothing_beside_it(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        AVISOSERVER_NOTIFICATION_SCHEMA__PUBLIC__IDENTIFIER__N__REQUIRED="false",
        AVISOSERVER_NOTIFICATION_SCHEMA__MARS__STORAGE_POLICY__MAX_MESSAGES="5",
        AVISOSERVER_NOTIFICATION_SCHEMA_STRICT="false",
    )
    schema = read_options(settings).schema
    public, mars = schema.get("public"), schema.get("mars")
    assert public is not None
    assert mars is not None
    assert not public.fields["n"].required
    assert (mars.policy.cap_records, mars.policy.ttl_ms) == (5, 7 * 86_400_000)
    assert not schema.strict
    with pytest.raises(BadConfig, match="max_messages"):
        read_options(loaded(tmp_path, AVISOSERVER_NOTIFICATION_SCHEMA__MARS__STORAGE_POLICY__MAX_MESSAGES="many"))


def test_their_variable_names_the_file_where_ours_does_not(tmp_path: Path) -> None:
    theirs = written(tmp_path, {"application": {"port": 1}})
    ours = tmp_path / "ours.toml"
    ours.write_text("port = 2\n")
    environ = {"AVISOSERVER_CONFIG_FILE": str(theirs)}
    assert load(environ=environ, directory=tmp_path).port == 1
    assert load(environ=environ | {"SEAMARK_CONFIG": str(ours)}, directory=tmp_path).port == 2
    assert load(environ=environ, file=ours, directory=tmp_path).port == 2
    with pytest.raises(BadConfig, match="no such file"):
        load(environ={"AVISOSERVER_CONFIG_FILE": str(tmp_path / "gone.yaml")}, directory=tmp_path)


def test_the_base_of_addresses(tmp_path: Path) -> None:
    def base(content: dict[str, Any], **environ: str) -> str:
        return read(loaded(tmp_path, content, **environ)).base_url

    theirs = {"application": {"base_url": "http://aviso.example/"}}
    assert base(theirs) == "http://aviso.example/"  # as it is, the last slash included
    assert base({"application": {"base_url": "localhost:8000"}}) == "localhost:8000"
    assert base({"public_url": "https://sea.example"}) == "https://sea.example"
    assert base(theirs | {"public_url": "https://sea.example"}) == "http://aviso.example/"
    assert base(theirs, SEAMARK_PUBLIC_URL="https://sea.example") == "https://sea.example"
    assert base(theirs, AVISOSERVER_APPLICATION__BASE_URL="http://b") == "http://b"


def test_metrics_have_a_port_only_while_they_are_enabled(tmp_path: Path) -> None:
    section = {"enabled": True, "host": "127.0.0.2", "port": 9100}
    settings = loaded(tmp_path, {"metrics": section})
    read(settings)
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.2", 9100)
    off = loaded(tmp_path, {"metrics": section | {"enabled": False}})
    assert (off.metrics_host, off.metrics_port) == ("127.0.0.1", 0)
    read(loaded(tmp_path, {"metrics": {"enabled": True}}, SEAMARK_METRICS_PORT="9100"))


@pytest.mark.parametrize(
    ("level", "ours"),
    [
        ("trace", "debug"),
        ("debug", "debug"),
        ("INFO", "info"),
        ("warn", "warning"),
        ("warning", "warning"),
        ("error", "error"),
    ],
)
def test_levels(tmp_path: Path, level: str, ours: str) -> None:
    assert loaded(tmp_path, {"logging": {"level": level, "format": "pretty"}}).log_level == ours
    assert loaded(tmp_path, {"logging": {"format": "pretty"}}).log_style == "auto"


def test_a_public_address_is_served_with_auth_or_keys_and_else_refused(tmp_path: Path) -> None:
    public = {"host": "0.0.0.0", "port": 8000}
    check_serving(loaded(tmp_path, document(application=public)))
    check_serving(loaded(tmp_path, {"application": public}, SEAMARK_API_KEYS="k"))
    with pytest.raises(BadConfig, match=r"0\.0\.0\.0 can be reached by others"):
        check_serving(loaded(tmp_path, {"application": public}))
    with pytest.raises(BadConfig, match="can be reached by others"):
        check_serving(loaded(tmp_path, {"application": public, "auth": {"enabled": False}}))


# -- what stops a start

AUTH = {
    "enabled": True,
    "mode": "direct",
    "auth_o_tron_url": "http://a",
    "jwt_secret": "x",
    "admin_roles": {"r": ["a"]},
}


def without(name: str, **changes: object) -> dict[str, Any]:
    return {"auth": {key: value for key, value in (AUTH | changes).items() if key != name}}


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ({"application": 5}, "application", "a table of keys"),
        ({"application": {"port": "eight"}}, "application.port", "a port number"),
        ({"application": {"port": "8000"}}, "application.port", "a port number"),
        ({"application": {"port": 70000}}, "application.port", "a port number"),
        ({"application": {"host": ["a"]}}, "application.host", "a host name"),
        ({"application": {"base_url": "nowhere"}}, "application.base_url", "http://"),
        ({"watch_endpoint": {"sse_heartbeat_interval_sec": 0}}, "watch_endpoint.sse_heartbeat_interval_sec", "1 or more"),
        ({"watch_endpoint": {"connection_max_duration_sec": -1}}, "watch_endpoint.connection_max_duration_sec", "1 or"),
        ({"watch_endpoint": {"replay_batch_size": 1.5}}, "watch_endpoint.replay_batch_size", "1 or more"),
        ({"watch_endpoint": {"max_historical_notifications": 0}}, "watch_endpoint.max_historical_notifications", "1 or"),
        ({"watch_endpoint": {"replay_batch_delay_ms": True}}, "watch_endpoint.replay_batch_delay_ms", "a whole number"),
        ({"notification_backend": {"kind": "redis"}}, "notification_backend.kind", "in_memory or jetstream"),
        ({"notification_backend": {"kind": "jetstream"}}, "notification_backend.kind", "not built into this version"),
        ({"notification_backend": {"kind": "jetstream", "jetstream": {"storage_type": "tape"}}}, "notification_backend.jetstream.storage_type", "file or memory"),
        ({"notification_backend": {"jetstream": {"timeout_seconds": 0}}}, "notification_backend.jetstream.timeout_seconds", "1 or more"),
        ({"notification_backend": {"in_memory": {"max_topics": 0}}}, "notification_backend.in_memory.max_topics", "1 or more"),
        ({"notification_schema": []}, "notification_schema", "a mapping"),
        ({"notification_schema_strict": "yes"}, "notification_schema_strict", "true or false"),
        ({"notification_schema": {"a": {"identifier": {"n": {"type": "Odd", "required": True}}}}}, "notification_schema.a.identifier.n.type", "IntHandler"),
        ({"metrics": {"enabled": True}}, "metrics.port", "it is missing"),
        ({"metrics": {"enabled": True, "port": 0}}, "metrics.port", "from 1 to 65535"),
        ({"metrics": {"enabled": True, "port": 8000, "host": "127.0.0.9"}}, "metrics.port", "8000 is the main port"),
        ({"metrics": {"enabled": "true"}}, "metrics.enabled", "true or false"),
        ({"logging": {"level": "loud"}}, "logging.level", "trace, debug, info"),
        (without("jwt_secret"), "auth.jwt_secret", "it is missing"),
        (without("admin_roles"), "auth.admin_roles", "it is missing"),
        (without("", admin_roles={}), "auth.admin_roles", "it is empty"),
        (without("", admin_roles={"r": []}), "auth.admin_roles.r", "at least one role"),
        (without("", admin_roles={"r": [" a"]}), "auth.admin_roles.r", "padded"),
        (without("", admin_roles=["a"]), "auth.admin_roles", "a mapping"),
        (without("auth_o_tron_url"), "auth.auth_o_tron_url", "an http:// or https:// address"),
        (without("", auth_o_tron_url="auth:8080"), "auth.auth_o_tron_url", "an http:// or https:// address"),
        (without("", mode="guess"), "auth.mode", "direct or trusted_proxy"),
        (without("", timeout_ms=0), "auth.timeout_ms", "1 or more"),
        ({"auth": {"enabeld": True}}, "auth.enabeld", "there is no such key"),
        ({"ecpds": {"sever": []}}, "ecpds.sever", "match_key"),
        ({"notification_shema": {}}, "notification_shema", "did you mean notification_schema?"),
    ],
)  # fmt: skip
def test_refusals_name_the_key_the_file_and_what_is_accepted(
    tmp_path: Path, content: dict[str, Any], name: str, says: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        read(loaded(tmp_path, content))
    assert says in str(caught.value)
    assert caught.value.fields["name"] == name
    assert caught.value.fields["place"] == f"file {tmp_path / 'config.yaml'}"
    assert str(caught.value).startswith(f"{name} (file ")
    assert caught.value.fields["accepts"]


def test_jetstream_is_refused_after_it_was_checked_unless_another_engine_is_named(tmp_path: Path) -> None:
    content = {"notification_backend": {"kind": "jetstream", "jetstream": {"nats_url": "nats://n:4222", "token": "t"}}}
    with pytest.raises(BadConfig, match=r"jetstream is not built into this version.*--engine"):
        read(loaded(tmp_path, content))
    assert read(loaded(tmp_path, content, SEAMARK_ENGINE="memory")).backend == "memory"


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("AVISOSERVER_APPLICATION__PORT", "eight", "environment AVISOSERVER_APPLICATION__PORT"),
        ("AVISOSERVER_APLICATION__PORT", "8000", "did you mean AVISOSERVER_APPLICATION?"),
        ("AVISOSERVER_APPLICATION__PORT__DEEPER", "1", "no single value"),
        ("AVISOSERVER_NOTIFICATION_SCHEMA__MARS", "x", "no single value"),
        ("AVISOSERVER_METRICS__ENABLED", "maybe", "true or false"),
        ("AVISOSERVER_AUTH__ADMIN_ROLES", "admin", "no single value"),
    ],
)
def test_variables_are_refused_with_their_names(tmp_path: Path, variable: str, text: str, says: str) -> None:
    with pytest.raises(BadConfig) as caught:
        loaded(tmp_path, **{variable: text})
    assert says in str(caught.value)
    assert caught.value.fields["place"].startswith("environment")


def test_variables_that_platforms_make_by_themselves_are_none_of_ours(tmp_path: Path) -> None:
    settings = loaded(tmp_path, AVISOSERVER_PORT="tcp://10.0.0.1:80", AVISOSERVER_SERVICE_HOST="10.0.0.1")
    assert (settings.port, settings.host) == (8000, "127.0.0.1")


def test_roles_of_event_types_need_auth(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="auth is globally disabled"):
        read(loaded(tmp_path, document(auth=None)))
    with pytest.raises(BadConfig, match="auth is globally disabled"):
        read(loaded(tmp_path, AVISOSERVER_AUTH__ENABLED="false"))


def test_a_secret_is_in_no_refusal(tmp_path: Path) -> None:
    for value in (["hunter2"], {"a": "hunter2"}):
        with pytest.raises(BadConfig) as caught:
            loaded(tmp_path, {"auth": {"jwt_secret": value}})
        assert "hunter2" not in str(caught.value)


def test_what_nobody_reads_is_known_and_stops_nothing(tmp_path: Path) -> None:
    content = document(application={"host": "::1", "homepage": {"links": []}}, watch_endpoint={"replay_batchsize": 5})
    settings = loaded(tmp_path, content)
    read(settings)
    assert unread(settings.notify) == ["application.homepage.links", "watch_endpoint.replay_batchsize"]


def test_what_the_schema_does_not_know_is_told_as_well(tmp_path: Path) -> None:
    """A bound that is misspelt would otherwise be none, without a word."""
    thing = {
        "topic": {"base": "thing", "key_order": ["n"], "order": ["n"]},
        "identifier": {"n": {"type": "IntHandler", "required": True}},
        "storage_policy": {"retention": "7d", "max_messages": 5},
        "endpoint": {"base": "thing", "anything": 1},  # of old, and read by nobody
        "payloads": {"required": True},
    }
    settings = loaded(tmp_path, {"notification_schema": {"thing": thing}})
    read(settings)
    assert unread(settings.notify) == [
        "notification_schema.thing.payloads",
        "notification_schema.thing.storage_policy.retention",
        "notification_schema.thing.topic.order",
    ]


def test_keys_name_settings_that_exist_and_other_keys(tmp_path: Path) -> None:
    names = {key.name for key in contract.KEYS}
    assert len(names) == len(contract.KEYS)
    defaults = config.load(directory=tmp_path).contract
    for key in contract.KEYS:
        assert not key.setting or key.setting in BY_NAME
        assert not key.when or key.when in names
        assert key.name.partition(".")[0] in contract.SECTIONS
        assert defaults[key.name] == key.default
        assert key.why.endswith(".")
        for word in key.words.values():
            assert BY_NAME[key.setting].kind.parse(word) == word
