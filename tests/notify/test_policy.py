"""How long notifications are kept and who may see them, as the file says it."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import BadConfig
from seamark.log.settings import StreamSettings
from seamark.notify.configtree import Node
from seamark.notify.policy import StoragePolicy, StreamAuth, read_auth, read_policy


def policy(**raw: object) -> StoragePolicy:
    return read_policy(Node(raw, "s"), supported=True)


def auth(raw: dict[str, Any], *, enabled: bool = True) -> StreamAuth:
    return read_auth(Node(raw, "a"), enabled=enabled)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1s", 1_000), ("90S", 90_000), ("5m", 300_000), ("12h", 43_200_000), ("7d", 604_800_000), ("2W", 1_209_600_000), ("007d", 604_800_000)],
)  # fmt: skip
def test_spans(text: str, ms: int) -> None:
    assert policy(retention_time=text).ttl_ms == ms


@pytest.mark.parametrize(
    "text", ["", "0s", "5", "s", "-1s", "1.5h", "1 h", "1y", "1ms", "9" * 15 + "w", "٤s", " 1s", 5]
)
def test_bad_spans(text: object) -> None:
    with pytest.raises(BadConfig, match="retention_time"):
        policy(retention_time=text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1K", 1_000), ("1Ki", 1_024), ("5M", 5 * 10**6), ("5Mi", 5 * 2**20), ("1G", 10**9), ("1Gi", 2**30), ("2T", 2 * 10**12), ("2Ti", 2**41)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert policy(max_size=text).cap_bytes == size


@pytest.mark.parametrize(
    "text", ["", "0K", "5", "1k", "1KI", "1ki", "1KB", "1.5G", "-1K", "1 K", "9" * 15 + "Ti", "٤K"]
)
def test_bad_sizes(text: str) -> None:
    with pytest.raises(BadConfig, match="max_size"):
        policy(max_size=text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_messages", 0),
        ("max_messages", True),
        ("max_messages", "1"),
        ("allow_duplicates", 1),
        ("compression", "s2"),
    ],
)
def test_other_bad_values(key: str, value: object) -> None:
    with pytest.raises(BadConfig, match=key):
        policy(**{key: value})


def test_what_a_stream_is_told() -> None:
    default = StreamSettings(cap_records=1, latest_per_subject=1, ttl_ms=5)
    assert policy().settings(default) == default
    assert policy(ignored=1, compression=False).settings(default) == default
    assert policy(allow_duplicates=True, max_messages=3).settings(default) == StreamSettings(cap_records=3, ttl_ms=5)
    assert policy(allow_duplicates=False).settings(StreamSettings()) == StreamSettings(latest_per_subject=1)


@pytest.mark.parametrize("key", ["retention_time", "max_messages", "max_size", "allow_duplicates", "compression"])
def test_an_engine_without_policies(key: str) -> None:
    with pytest.raises(BadConfig, match=f"s.{key}: it is not supported by backend 'in_memory'"):
        read_policy(Node({key: 1}, "s"), supported=False)
    assert read_policy(Node({}, "s"), supported=False) == StoragePolicy()


def test_who_may() -> None:
    raw = {
        "required": True,
        "read_roles": {"ecmwf": ["a", "b"], "other": ["*"]},
        "write_roles": {"ecmwf": ["w"]},
        "plugins": ["ecpds"],
    }
    assert auth(raw) == StreamAuth(
        required=True,
        read_roles={"ecmwf": ("a", "b"), "other": ("*",)},
        write_roles={"ecmwf": ("w",)},
        plugins=("ecpds",),
    )
    assert auth({"required": True}) == StreamAuth(required=True)
    assert auth({"required": False}, enabled=False) == StreamAuth()


@pytest.mark.parametrize(
    ("raw", "enabled", "name"),
    [
        ({}, True, "a.required"),
        ({"required": 1}, True, "a.required"),
        ({"required": True, "extra": 1}, True, "a.extra"),
        ({"required": True}, False, "a.required"),
        ({"required": False, "read_roles": {"r": ["x"]}}, True, "a.read_roles"),
        ({"required": False, "write_roles": {"r": ["x"]}}, False, "a.write_roles"),
        ({"required": False, "plugins": ["ecpds"]}, True, "a.plugins"),
        ({"required": True, "read_roles": {}}, True, "a.read_roles"),
        ({"required": True, "read_roles": []}, True, "a.read_roles"),
        ({"required": True, "read_roles": {"r": []}}, True, "a.read_roles.r"),
        ({"required": True, "read_roles": {"r": "x"}}, True, "a.read_roles.r"),
        ({"required": True, "read_roles": {"r": [" "]}}, True, "a.read_roles.r"),
        ({"required": True, "read_roles": {"r": ["x "]}}, True, "a.read_roles.r"),
        ({"required": True, "write_roles": {" r": ["x"]}}, True, "a.write_roles. r"),
        ({"required": True, "write_roles": {"": ["x"]}}, True, "a.write_roles"),
        ({"required": True, "plugins": []}, True, "a.plugins"),
        ({"required": True, "plugins": ["other"]}, True, "a.plugins"),
    ],
)
def test_bad_auth(raw: dict[str, Any], enabled: bool, name: str) -> None:
    with pytest.raises(BadConfig) as caught:
        auth(raw, enabled=enabled)
    assert caught.value.fields["name"] == name
