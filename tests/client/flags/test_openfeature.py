"""The provider by the scenarios of OpenFeature's provider test kit, told in our own words: the kit itself is not on a package index.
Flags that are disabled do not exist in manifests, so those scenarios have nothing to say here."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.evaluation_context import EvaluationContext
from openfeature.event import EventDetails, ProviderEvent
from openfeature.flag_evaluation import FlagEvaluationDetails
from openfeature.provider import ProviderStatus

from seamark.client.flags.client import FlagsClient
from seamark.client.flags.openfeature import SeamarkProvider, flat_context
from seamark.testing.server import ServerProcess
from tests.client.flags.conftest import QUICK
from tests.client.flags.test_client import PATIENCE, eventually
from tests.flags.manifests import HEAD
from tests.flags.test_watch_http import Office, started

pytestmark = pytest.mark.slow  # clients and servers that wait for one another

HIT = "5c3d8535-f81a-4478-a6d3-afaa4d51199e"
MISS = "f20bd32d-703b-48b6-bc8e-79d53c85134a"


def simple(kind: str, variant: str, value: str, *, rules: str = "", others: str = "") -> bytes:
    return (
        f'{HEAD}[flag]\ntype = "{kind}"\n[flag.variants]\n{variant} = {value}\n{others}\n'
        f'[flag.environments._]\nvariant = "{variant}"\n{rules}'
    ).encode()


def rule(predicate: str, variant: str) -> str:
    return f'[[flag.environments._.rules]]\npredicate = {predicate}\nvariant = "{variant}"\n'


HIT_RULE = rule(f'{{ attribute = "user.id", op = "eq", value = "{HIT}" }}', "hit")
INTERNAL = rule(
    '{ all = [{ attribute = "fn", op = "eq", value = "Sulis\u0142aw" }, { attribute = "ln", op = "eq", value = "\u015awi\u0119tope\u0142k" }, '
    '{ attribute = "age", op = "eq", value = 29 }, { attribute = "customer", op = "eq", value = false }] }',
    "internal",
)
CANONICAL = {
    "boolean-flag": simple("boolean", "on", "true"),
    "string-flag": simple("string", "greeting", '"hi"'),
    "integer-flag": simple("integer", "ten", "10"),
    "float-flag": simple("float", "half", "0.5"),
    "boolean-zero-flag": simple("boolean", "zero", "false"),
    "string-zero-flag": simple("string", "zero", '""'),
    "integer-zero-flag": simple("integer", "zero", "0"),
    "large-integer-flag": simple("integer", "max-int32", "2147483647"),
    "huge-integer-flag": simple("integer", "huge", "9007199254740991"),
    "object-flag": simple(
        "json", "template", '{ showImages = true, title = "Check out these pics!", imagesPerPage = 100 }'
    ),
    "wrong-flag": simple("string", "one", '"uno"'),
    "targeting-key-flag": simple("string", "miss", '"miss"', others='hit = "hit"', rules=HIT_RULE),
    "context-aware": simple("string", "external", '"EXTERNAL"', others='internal = "INTERNAL"', rules=INTERNAL),
    "changing-flag": simple("string", "before", '"before"'),
}
FILES = {f"flags/{key}.toml": content for key, content in CANONICAL.items()}


def asked(
    client: OpenFeatureClient, kind: str, key: str, default: Any, context: EvaluationContext | None = None
) -> Any:
    details: Callable[..., Any] = getattr(client, f"get_{kind}_details")
    value: Callable[..., Any] = getattr(client, f"get_{kind}_value")
    found = details(key, default, context)
    assert value(key, default, context) == found.value
    return found


@contextlib.contextmanager
def registered(provider: SeamarkProvider) -> Iterator[OpenFeatureClient]:
    api.set_provider_and_wait(provider)
    try:
        yield api.get_client()
    finally:
        api.clear_providers()


@pytest.fixture(scope="module")
def client() -> Iterator[OpenFeatureClient]:
    with registered(SeamarkProvider(FlagsClient.from_files(FILES, slug="shop"))) as found:
        yield found


def fine(found: FlagEvaluationDetails[Any], value: object, variant: str, reason: str) -> None:
    assert (found.value, found.variant, found.reason) == (value, variant, reason)
    assert (found.error_code, found.error_message) == (None, None)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("kind", "key", ("values"), "variant"),
    [
        ("boolean", "boolean-flag", (False, True), "on"),
        ("string", "string-flag", ("bye", "hi"), "greeting"),
        ("integer", "integer-flag", (1, 10), "ten"),
        ("float", "float-flag", (0.1, 0.5), "half"),
        ("boolean", "boolean-zero-flag", (True, False), "zero"),
        ("string", "string-zero-flag", ("fallback", ""), "zero"),
        ("integer", "integer-zero-flag", (1, 0), "zero"),
        ("integer", "large-integer-flag", (1, 2**31 - 1), "max-int32"),
        ("integer", "huge-integer-flag", (1, 2**53 - 1), "huge"),
        (
            "object",
            "object-flag",
            ({}, {"showImages": True, "title": "Check out these pics!", "imagesPerPage": 100}),
            "template",
        ),
    ],
)
def test_values_with_variant_and_reason(
    client: OpenFeatureClient, kind: str, key: str, values: tuple[Any, Any], variant: str
) -> None:
    """Also values that are nothing much: they are not the default."""
    default, value = values
    fine(asked(client, kind, key, default), value, variant, "STATIC")


@pytest.mark.parametrize(
    ("kind", "key", "default"),
    [
        ("boolean", "string-flag", False),
        ("integer", "string-flag", 1),
        ("float", "string-flag", 0.1),
        ("boolean", "wrong-flag", False),
        ("integer", "wrong-flag", 13),
        ("string", "boolean-flag", "fallback"),
        ("integer", "boolean-flag", 1),
        ("float", "boolean-flag", 0.1),
        ("boolean", "integer-flag", False),
        ("string", "integer-flag", "fallback"),
        ("boolean", "float-flag", False),
        ("string", "float-flag", "fallback"),
        ("boolean", "object-flag", False),
        ("string", "object-flag", "fallback"),
        ("integer", "object-flag", 1),
        ("float", "object-flag", 0.1),
        ("integer", "float-flag", 1),  # never narrowed
    ],
)
def test_the_wrong_type_returns_the_default(client: OpenFeatureClient, kind: str, key: str, default: Any) -> None:
    found = asked(client, kind, key, default)
    assert (found.value, found.reason, found.error_code) == (default, "ERROR", "TYPE_MISMATCH")


@pytest.mark.parametrize("kind", ["boolean", "string", "integer", "float", "object"])
def test_an_unknown_flag_returns_the_default(client: OpenFeatureClient, kind: str) -> None:
    default = {"boolean": True, "string": "fallback", "integer": 3, "float": 0.25, "object": {"a": 1}}[kind]
    found = asked(client, kind, "missing-flag", default)
    assert (found.value, found.reason, found.error_code) == (default, "ERROR", "FLAG_NOT_FOUND")


def test_targeting(client: OpenFeatureClient) -> None:
    key = "targeting-key-flag"
    fine(asked(client, "string", key, "fallback", EvaluationContext(HIT)), "hit", "hit", "TARGETING_MATCH")
    fine(asked(client, "string", key, "fallback", EvaluationContext(MISS)), "miss", "miss", "DEFAULT")
    fine(asked(client, "string", key, "fallback"), "miss", "miss", "DEFAULT")
    fine(asked(client, "string", "string-flag", "bye", EvaluationContext(MISS)), "hi", "greeting", "STATIC")


def test_several_attributes_at_once(client: OpenFeatureClient) -> None:
    who = EvaluationContext(
        None, {"fn": "Sulis\u0142aw", "ln": "\u015awi\u0119tope\u0142k", "age": 29, "customer": False}
    )
    assert asked(client, "string", "context-aware", "EXTERNAL", who).value == "INTERNAL"
    assert asked(client, "string", "context-aware", "EXTERNAL").value == "EXTERNAL"


def test_where_an_answer_comes_from_goes_with_it(client: OpenFeatureClient) -> None:
    found = asked(client, "string", "targeting-key-flag", "x", EvaluationContext(HIT))
    said = dict(found.flag_metadata)
    assert str(said.pop("closure_hash")).startswith("sha256:")
    assert said == {"version": 0, "rule_matched": "rule:0", "stale": False}


async def test_the_asynchronous_ways(client: OpenFeatureClient) -> None:
    fine(await client.get_integer_details_async("integer-flag", 1), 10, "ten", "STATIC")


def test_a_context_becomes_flat() -> None:
    nested: Mapping[str, Any] = {
        "plan": "pro",
        "user": {"email": "a@example.com", "address": {"country": "DK"}, "tags": ["x"]},
        "when": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "beta": True,
        "list": [1, 2],
    }
    assert flat_context(EvaluationContext("u-1", nested), "user.id") == {
        "plan": "pro",
        "user.email": "a@example.com",
        "user.address.country": "DK",
        "when": "2026-01-02T00:00:00+00:00",
        "beta": True,
        "user.id": "u-1",
    }
    assert flat_context(EvaluationContext("u-1", {"user": {"id": "mine"}}), "user.id") == {"user.id": "mine"}
    assert flat_context(EvaluationContext("", {}), "user.id") == {}
    assert flat_context(None, "user.id") == {}
    assert flat_context(EvaluationContext("u-1"), "account") == {"account": "u-1"}


def test_an_environment_is_fixed_with_the_provider() -> None:
    files = {
        **FILES,
        "namespace.toml": f'{HEAD}[namespace]\nslug = "shop"\n[namespace.environments]\nlive = {{}}\n'.encode(),
    }
    offline = FlagsClient.from_files(files)
    with registered(SeamarkProvider(offline, environment="live")) as found:
        assert found.get_integer_value("integer-flag", 1) == 10
    with registered(SeamarkProvider(offline, environment="moon")) as found:
        assert asked(found, "integer", "integer-flag", 1).error_code == "GENERAL"
    with registered(SeamarkProvider(offline, environment="live", namespace="shop")) as found:
        assert found.get_integer_value("integer-flag", 1) == 10


# -- beside a server


class Heard:
    """The events of a provider, in the order that they were told."""

    def __init__(self) -> None:
        self.queue: Queue[tuple[str, EventDetails]] = Queue()
        self.handlers: list[tuple[ProviderEvent, Callable[[EventDetails], None]]] = []
        for event in ProviderEvent:
            handler = self._handler(event)
            api.add_handler(event, handler)
            self.handlers.append((event, handler))

    def _handler(self, event: ProviderEvent) -> Callable[[EventDetails], None]:
        return lambda details: self.queue.put((event.value, details))

    def next(self, event: str) -> EventDetails:
        name, details = self.queue.get(timeout=PATIENCE)
        assert name == event
        return details

    def stop(self) -> None:
        for event, handler in self.handlers:
            api.remove_handler(event, handler)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Office, ServerProcess]]:
    """A server that the test may stop, on a port that it gets again."""
    with started(tmp_path) as first:
        office = Office(first, tmp_path)
        office.push(FILES)
        port = first.base_url.rpartition(":")[2]
        first.stop()
    with started(tmp_path, "--port", port) as server:
        office.server = server
        yield office, server


def follow(office: Office, url: str) -> FlagsClient:
    return FlagsClient(url, office.reader, "billing", pace=QUICK)


def test_a_change_is_told_and_in_force(office: Office) -> None:
    office.push(FILES)
    provider = SeamarkProvider(follow(office, office.server.base_url))
    with registered(provider) as client:
        heard = Heard()
        assert client.get_provider_status() is ProviderStatus.READY
        heard.next("PROVIDER_READY")
        assert client.get_string_value("changing-flag", "unset") == "before"
        office.push({**FILES, "flags/changing-flag.toml": simple("string", "after", '"after"')})
        details = heard.next("PROVIDER_CONFIGURATION_CHANGED")
        assert details.flags_changed == ["changing-flag"]
        assert details.metadata == {"version": 2}
        assert client.get_string_value("changing-flag", "unset") == "after"
        heard.stop()


def test_an_outage_makes_it_stale_and_its_end_ready_again(own: tuple[Office, ServerProcess]) -> None:
    office, server = own
    provider = SeamarkProvider(follow(office, server.base_url), grace_seconds=0.05)
    with registered(provider) as client:
        heard = Heard()
        heard.next("PROVIDER_READY")
        server.kill()
        heard.next("PROVIDER_STALE")
        assert client.get_provider_status() is ProviderStatus.STALE
        found = client.get_string_details("string-flag", "bye")
        assert (found.value, found.flag_metadata["stale"]) == ("hi", True)
        server.start()
        heard.next("PROVIDER_READY")
        assert client.get_provider_status() is ProviderStatus.READY
        heard.stop()


def test_a_short_outage_is_not_worth_a_word(own: tuple[Office, ServerProcess]) -> None:
    office, server = own
    provider = SeamarkProvider(follow(office, server.base_url), grace_seconds=600.0)
    with registered(provider) as client:
        heard = Heard()
        heard.next("PROVIDER_READY")
        server.kill()
        eventually(lambda: client.get_string_details("string-flag", "bye").flag_metadata["stale"] is True)
        server.start()
        eventually(lambda: client.get_string_details("string-flag", "bye").flag_metadata["stale"] is False)
        office.push({**FILES, "flags/changing-flag.toml": simple("string", "after", '"after"')})
        heard.next("PROVIDER_CONFIGURATION_CHANGED")  # and nothing before it
        heard.stop()


def test_a_server_that_is_not_there_is_an_error_and_then_ready(own: tuple[Office, ServerProcess]) -> None:
    office, server = own
    url = server.base_url
    server.stop()
    heard = Heard()
    api.set_provider(SeamarkProvider(follow(office, url), wait_seconds=0.05))
    try:
        details: EventDetails | None = None
        while details is None or details.provider_name != "seamark":
            name, details = heard.queue.get(timeout=PATIENCE)
        assert name == "PROVIDER_ERROR"
        client = api.get_client()
        assert client.get_provider_status() is ProviderStatus.ERROR
        found = client.get_boolean_details("boolean-flag", False)
        assert (found.value, found.reason, found.error_code) == (False, "ERROR", "PROVIDER_NOT_READY")
        server.start()
        heard.next("PROVIDER_READY")
        assert client.get_boolean_value("boolean-flag", False) is True
    finally:
        heard.stop()
        api.clear_providers()


def test_what_a_cache_has_kept_is_ready_and_then_stale(office: Office, tmp_path: Path) -> None:
    office.push(FILES)
    url = office.server.base_url
    with FlagsClient(url, office.reader, "billing", pace=QUICK, cache_dir=tmp_path) as first:
        assert first.wait_ready(PATIENCE)
        eventually(lambda: bool(list(tmp_path.glob("*.closure"))))
    kept = FlagsClient(url, "exd_read_nobody", "billing", pace=QUICK, cache_dir=tmp_path)
    heard = Heard()
    with registered(SeamarkProvider(kept, wait_seconds=0.05, grace_seconds=0.05)) as client:
        while (told := heard.queue.get(timeout=PATIENCE))[0] != "PROVIDER_STALE":
            assert told[0] == "PROVIDER_READY"
        assert client.get_provider_status() is ProviderStatus.STALE
        assert client.get_boolean_value("boolean-flag", False) is True
        heard.stop()


def test_shutting_down_closes_the_client(office: Office) -> None:
    office.push(FILES)
    flags = follow(office, office.server.base_url)
    with registered(SeamarkProvider(flags)):
        pass
    eventually(lambda: flags.status().state.value == "closed")
