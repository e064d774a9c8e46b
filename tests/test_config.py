"""Settings: precedence, sources, and refusals that say what would be accepted."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import config, kinds, limits
from seamark.config import BY_NAME, SETTINGS, Settings, Source, load
from seamark.errors import BadConfig
from seamark.kinds import Secret, Untyped, is_loopback


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_every_row_is_a_field_with_a_default_of_its_own_kind(tmp_path: Path) -> None:
    fields = {field.name for field in msgspec.structs.fields(Settings)} - {"sources", "contract", "notify"}
    assert fields == set(BY_NAME)
    assert len(BY_NAME) == len(SETTINGS)
    settings = load(directory=tmp_path)
    for row in SETTINGS:
        assert settings.value(row.name) == row.default
        assert settings.sources[row.name] == Source("default")
        assert row.why.endswith(".")
        raw = row.default.reveal() if isinstance(row.default, Secret) else row.default
        if raw is None:
            assert row.kind.parse("") is None
        else:
            typed = raw if isinstance(raw, bool | int | float) else str(raw)
            assert row.kind.parse(typed) == row.default


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    write(tmp_path / "seamark.toml", 'host = "::1"\nport = 1\ngrace_seconds = "2m"\n')
    environ = {"SEAMARK_PORT": "2", "SEAMARK_GRACE_SECONDS": "3", "HOME": "/nowhere"}
    settings = load({"grace_seconds": "4s", "demo": True, "data": None}, environ=environ, directory=tmp_path)
    assert (settings.host, settings.port, settings.grace_seconds, settings.demo) == ("::1", 2, 4.0, True)
    assert settings.sources["host"] == Source("file", str(tmp_path / "seamark.toml"))
    assert settings.sources["port"] == Source("environment", "SEAMARK_PORT")
    assert settings.sources["grace_seconds"] == Source("flag", "--grace-seconds")
    assert settings.sources["data"] == Source("default")


def test_a_named_file_replaces_the_one_in_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "seamark.toml", "port = 1\n")
    named = write(tmp_path / "other.yml", "host: ::1\n")
    from_environment = load(environ={"SEAMARK_CONFIG": str(named)}, directory=tmp_path)
    from_flag = load(file=named, environ={"SEAMARK_CONFIG": str(tmp_path / "absent.toml")}, directory=tmp_path)
    for settings in (from_environment, from_flag):
        assert (settings.host, settings.port) == ("::1", 8000)


def test_the_alias_of_public_url_is_taken_and_our_own_name_wins() -> None:
    alias = {"EXD_PUBLIC_URL": "https://a.example/base/"}
    assert load(environ=alias).public_url == "https://a.example/base"
    assert load(environ=alias).sources["public_url"] == Source("environment", "EXD_PUBLIC_URL")
    both = alias | {"SEAMARK_PUBLIC_URL": "https://b.example"}
    assert load(environ=both).public_url == "https://b.example"


def test_the_names_of_a_topics_server_are_aliases_and_an_explicit_port_wins() -> None:
    def where(**environ: str) -> tuple[str, int]:
        settings = load(environ=environ)
        return settings.host, settings.port

    assert where(TOPICS_HOST="127.0.0.2") == ("127.0.0.2", 8000)
    assert where(TOPICS_HOST="127.0.0.2:4000") == ("127.0.0.2", 4000)
    assert where(TOPICS_HOST="[::1]:4000") == ("::1", 4000)
    assert where(TOPICS_HOST="[::1]") == where(TOPICS_HOST="::1") == ("::1", 8000)
    assert where(TOPICS_HOST="127.0.0.2:4000", TOPICS_PORT="5000") == ("127.0.0.2", 5000)
    assert where(TOPICS_HOST="127.0.0.2:4000", SEAMARK_HOST="::1") == ("::1", 8000)
    assert load(environ={"TOPICS_HOST": "a:4000"}).sources["port"] == Source("environment", "TOPICS_HOST")
    for address in ("a:b", "a:", "a:1:2", "[::1]4000"):
        with pytest.raises(BadConfig, match=r"\(environment TOPICS_HOST\)"):
            load(environ={"TOPICS_HOST": address})


def test_every_setting_of_a_topics_server_that_means_something_here_is_taken() -> None:
    caps = ("TOPICS", "ROUTERS", "WATCH_SESSIONS", "SSE_CONNECTIONS", "SSE_CONNECTIONS_PER_KEY", "INFLIGHT_PER_KEY")
    settings = load(
        environ={f"TOPICS_MAX_{name}": str(at) for at, name in enumerate(caps)}
        | {
            "TOPICS_API_KEYS": "k:read",
            "TOPICS_PORT_FILE": "/p",
            "TOPICS_DATA_DIR": "/d",
            "TOPICS_PROBE_AUTH": "1",
            "TOPICS_ALLOW_INSECURE_NO_AUTH": "true",
            "TOPICS_MAX_BODY_BYTES": "1000",
            "TOPICS_MAX_TOTAL_BYTES": "2000",
            "TOPICS_WAL_SHARDS": "8",  # how another store is cut is no setting of this one, and no mistake either
        }
    )
    assert [settings.value(f"max_{name.lower()}") for name in caps] == list(range(len(caps)))
    assert (settings.api_keys.reveal(), settings.port_file, settings.data) == ("k:read", Path("/p"), Path("/d"))
    assert settings.probe_auth
    assert settings.allow_insecure
    assert (settings.max_body_bytes, settings.quota_bytes) == (1000, 2000)


NOTIFY = """
application: {host: 127.0.0.1}
notification_schema:
  mars:
    topic: {base: mars}
  again: &shared {a: 1}
  merged:
    <<: *shared
    b: 2
notification_schema_strict: true
port: 9000
"""


def test_a_notify_file_is_kept_as_it_stands_beside_our_settings(tmp_path: Path) -> None:
    settings = load(file=write(tmp_path / "notify.yaml", NOTIFY))
    assert settings.port == 9000
    assert set(settings.notify) == {"application", "notification_schema", "notification_schema_strict"}
    schema = settings.notify["notification_schema"]
    assert isinstance(schema, dict)
    assert schema["merged"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("environ", "name", "says"),
    [
        ({"SEAMARK_PROT": "1"}, "SEAMARK_PROT", "did you mean SEAMARK_PORT?"),
        ({"SEAMARK_PORT": "65536"}, "port", "a port number from 0 to 65535"),
        ({"SEAMARK_PORT": "٣"}, "port", "SEAMARK_PORT"),
        ({"SEAMARK_ENGINE": "jetstream"}, "engine", "embedded or memory"),
        ({"SEAMARK_ACCESS_LOG": "maybe"}, "access_log", "true or false"),
        ({"SEAMARK_QUOTA_BYTES": "-1"}, "quota_bytes", "64MiB"),
        ({"SEAMARK_QUOTA_BYTES": "1XiB"}, "quota_bytes", "64MiB"),
        ({"SEAMARK_GRACE_SECONDS": "nan"}, "grace_seconds", "1.5s"),
        ({"SEAMARK_HEARTBEAT_SECONDS": "0"}, "heartbeat_seconds", "more than 0"),
        ({"SEAMARK_PUBLIC_URL": "ftp://x"}, "public_url", "http://"),
        ({"TOPICS_MAX_TOPICS": "-1"}, "max_topics", "0 sets no bound"),
        ({"SEAMARK_MAX_ROUTERS": "1.0"}, "max_routers", "a whole number"),
        ({"SEAMARK_HOST": "a b"}, "host", "an IP address"),
        ({"SEAMARK_DATA": ""}, "data", "a path"),
    ],
)
def test_the_environment_is_refused_with_name_place_and_what_is_accepted(
    environ: dict[str, str], name: str, says: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        load(environ=environ)
    assert says in str(caught.value)
    assert caught.value.fields["name"] == name
    assert caught.value.fields["place"].startswith("environment")
    assert caught.value.fields["accepts"]


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("a.toml", "prot = 1", "did you mean port?"),
        ("a.toml", 'port = "8000"', "a port number"),  # a quoted number in a file is ill-typed
        ("a.toml", "port = true", "a port number"),
        ("a.toml", 'demo = "true"', "true or false"),
        ("a.toml", "quota_bytes = 1.5", "64MiB"),
        ("a.toml", "quota_bytes = 9223372036854775808", "64MiB"),
        ("a.toml", 'max_topics = "7"', "a whole number"),
        ("a.toml", "max_topics = true", "a whole number"),
        ("a.toml", "grace_seconds = nan", "seconds"),
        ("a.toml", "grace_seconds = true", "seconds"),
        ("a.toml", "host = 1", "a host name"),
        ("a.toml", "port = ?", "line 1"),
        ("a.yaml", "port: 1\nport: 2\n", "port is given twice in line 2"),
        ("a.yaml", "notification_shema: {}", "did you mean notification_schema?"),
        ("a.yaml", "- port", "the top level is not a table"),
        ("a.yaml", "1: 1", "there is no such setting"),
        ("a.yaml", "? {a: 1}\n: 1", "unhashable"),
        ("a.yaml", "a: !!python/object:os.system {}", "in line 1"),
        ("a.ini", "port=1", "'.ini' is not known"),
    ],
)
def test_a_file_is_refused_with_its_name_and_what_is_accepted(tmp_path: Path, file: str, text: str, says: str) -> None:
    path = write(tmp_path / file, text)
    with pytest.raises(BadConfig) as caught:
        load(file=path)
    assert says in str(caught.value)
    assert caught.value.fields["place"] == f"file {path}"
    assert caught.value.fields["accepts"]


def test_a_missing_or_undecodable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="no such file"):
        load(file=tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"port = '\xff'")
    with pytest.raises(BadConfig, match="utf-8"):
        load(file=tmp_path / "bytes.toml")


def test_secrets_never_show(tmp_path: Path) -> None:
    settings = load(environ={"SEAMARK_API_KEYS": "hunter2"})
    assert settings.api_keys.reveal() == "hunter2"
    for text in (repr(settings), str(settings), f"{settings.api_keys}", str(settings.api_keys)):
        assert "hunter2" not in text
    for file in (
        write(tmp_path / "typed.toml", 'api_keys = ["hunter2"]'),
        write(tmp_path / "broken.yaml", "api_keys: 'hunter2\n"),
        write(tmp_path / "broken.toml", "api_keys = hunter2"),
    ):
        with pytest.raises(BadConfig) as caught:
            load(file=file)
        assert "hunter2" not in str(caught.value)


def test_secrets_have_no_flag() -> None:
    with pytest.raises(BadConfig, match="no such setting"):
        load({"api_keys": "hunter2"})
    with pytest.raises(BadConfig, match="did you mean port"):
        load({"prt": "1"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "server.example", "127.0.0.1.example"])
def test_a_public_address_needs_keys_or_an_explicit_word(host: str) -> None:
    with pytest.raises(BadConfig, match="SEAMARK_API_KEYS"):
        config.check_serving(load({"host": host}))
    config.check_serving(load({"host": host}, environ={"SEAMARK_API_KEYS": "k"}))
    config.check_serving(load({"host": host, "allow_insecure": True}))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    config.check_serving(load({"host": host}))


def test_metrics_need_a_port_that_is_not_the_main_one() -> None:
    with pytest.raises(BadConfig, match="8000 is the main port"):
        config.check_serving(load({"metrics_port": "8000"}))
    config.check_serving(load({"metrics_port": "8000", "metrics_host": "127.0.0.2"}))
    config.check_serving(load({"metrics_port": "8001"}))


def test_a_body_bound_may_be_lowered_but_not_raised() -> None:
    with pytest.raises(BadConfig, match="67108865 is more than any request may have"):
        config.check_serving(load({"max_body_bytes": "67108865"}))
    config.check_serving(load({"max_body_bytes": "64MiB"}))
    config.check_serving(load({"max_body_bytes": "1KiB"}))


def test_the_defaults_of_patience_are_the_bounds() -> None:
    settings = load()
    assert settings.header_timeout_seconds == limits.HEADER_SECONDS
    assert settings.body_timeout_seconds == limits.BODY_GRACE_SECONDS
    assert settings.keep_alive_seconds == limits.KEEP_ALIVE_SECONDS
    assert settings.max_body_bytes == limits.BODY_BYTES_MAX


def test_tls_needs_both_files(tmp_path: Path) -> None:
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        with pytest.raises(BadConfig, match=f"given without {other}"):
            config.check_serving(load({name: "file.pem"}))
    cert, key = str(write(tmp_path / "a.pem", "")), str(write(tmp_path / "b.pem", ""))
    config.check_serving(load({"tls_cert": cert, "tls_key": key}))
    for name, flags in {
        "tls_cert": {"tls_cert": f"{cert}.gone", "tls_key": key},
        "tls_key": {"tls_cert": cert, "tls_key": str(tmp_path)},
    }.items():
        with pytest.raises(BadConfig, match="cannot be read") as caught:
            config.check_serving(load(flags))
        assert caught.value.fields["name"] == name


@pytest.mark.parametrize(
    ("text", "size"), [("64MiB", 64 * limits.MIB), ("1 kb", 1000), ("7", 7), ("2TiB", 2048 * limits.GIB), ("5B", 5)]
)
def test_sizes(text: str, size: int) -> None:
    assert kinds.SIZE.parse(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600), ("9", 9)])
def test_durations(text: str, seconds: float) -> None:
    assert kinds.DURATION.parse(text) == pytest.approx(seconds)


@given(
    st.sampled_from([row.kind for row in SETTINGS]), st.text() | st.text().map(Untyped) | st.integers() | st.floats()
)
def test_kinds_answer_or_raise_value_error(kind: kinds.Kind, raw: str | float) -> None:
    try:
        value = kind.parse(raw)
    except ValueError:
        return
    assert value is None or isinstance(value, str | int | float | Path | Secret)


@given(st.ip_addresses())
def test_loopback_agrees_with_the_address_itself(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert is_loopback(str(address)) == address.is_loopback
