"""What a client of the event stream asks for, read from its query and its headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

from seamark.errors import BadRequest, InvalidSubscription, MalformedList, QueryTooLong, TooManyFlags
from seamark.limits import EVENTS_QUERY_BYTES_MAX, NAMESPACES_PER_STREAM_MAX
from seamark.manifest.paths import is_slug
from seamark.manifest.subscription import FlagList, parse_flag_list

_HINT = re.compile(r"([a-z][a-z0-9-]{0,62}):([1-9][0-9]{0,18})")


class Part(NamedTuple):
    """One namespace of a subscription."""

    tenant: str
    namespace: str
    wanted: FlagList


class Query(NamedTuple):
    """The parameters that mean something here, in their order. Others are passed over."""

    ns: list[str]
    since: list[str]


def read_query(raw: bytes) -> Query:
    """Raises QueryTooLong. What is no UTF-8 turns into what no name may hold."""
    if len(raw) > EVENTS_QUERY_BYTES_MAX:
        raise QueryTooLong(f"a query has {EVENTS_QUERY_BYTES_MAX} bytes at the most", max=EVENTS_QUERY_BYTES_MAX)
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors="replace")
    return Query([value for name, value in pairs if name == "ns"], [value for name, value in pairs if name == "since"])


def read_parts(values: Sequence[str], tenant: str) -> list[Part]:
    """The subscription. `tenant` is the caller's own, empty for one that has to name it. Raises BadRequest,
    InvalidSubscription."""
    if not values:
        raise BadRequest("at least one `ns` is required, as in ?ns=billing:*", name="ns")
    parts: dict[str, Part] = {}
    for value in values:
        place, colon, flags = value.partition(":")
        owner, slug = (tenant, place) if tenant else _owned(place)
        if not colon or not is_slug(slug) or not is_slug(owner):
            raise _malformed("an `ns` reads <namespace>:<flags>")
        if parts and owner != next(iter(parts.values())).tenant:
            raise InvalidSubscription("one stream serves one tenant", reason="multiple_tenants")
        part = Part(owner, slug, _flags(flags, slug))
        if slug in parts:
            raise InvalidSubscription(f"{slug} is named twice", reason="duplicate_namespace", namespace=slug)
        parts[slug] = part
    if len(parts) > NAMESPACES_PER_STREAM_MAX:
        message = f"one stream serves {NAMESPACES_PER_STREAM_MAX} namespaces at the most, not {len(parts)}"
        raise InvalidSubscription(message, reason="too_many_namespaces")
    return list(parts.values())


def _owned(place: str) -> tuple[str, str]:
    tenant, slash, slug = place.partition("/")
    if not slash:
        if not is_slug(place):
            raise _malformed("an `ns` reads <tenant>/<namespace>:<flags>")
        message = "this token has no tenant: name it, as in ?ns=<tenant>/<namespace>:<flags>"
        raise InvalidSubscription(message, reason="tenant_required", namespace=place)
    return tenant, slug


def _flags(text: str, slug: str) -> FlagList:
    try:
        return parse_flag_list(text)
    except TooManyFlags as error:
        raise InvalidSubscription(error.message, reason="too_many_flags", namespace=slug) from None
    except MalformedList as error:
        raise _malformed(error.message) from None


def _malformed(message: str) -> InvalidSubscription:
    return InvalidSubscription(message, reason="malformed")


def read_hints(since: Sequence[str], last_event_id: bytes | None) -> dict[str, int]:
    """The version of each namespace that a client says it has. They decide nothing, so what is malformed is passed over;
    the header wins for the namespace that it names."""
    hints: dict[str, int] = {}
    last = () if last_event_id is None else (last_event_id.decode("latin-1"),)
    for text in (*since, *last):
        for one in text.split(","):
            found = _HINT.fullmatch(one)
            if found is not None:
                hints[found[1]] = int(found[2])
    return hints
