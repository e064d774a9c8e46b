"""What a client asks an event stream for, and how that is spread where one stream does not carry it all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from seamark.errors import BadField
from seamark.limits import EVENTS_QUERY_BYTES_MAX, NAMESPACES_PER_STREAM_MAX
from seamark.manifest.paths import is_slug
from seamark.manifest.subscription import FlagList, parse_flag_list

Flags: TypeAlias = str | Iterable[str]
Wanted: TypeAlias = str | Sequence[str] | Mapping[str, Flags]

_EVENTS = "/api/v1/events"


def read_wanted(given: Wanted) -> dict[str, FlagList]:
    """Namespaces by slug: one, several (each with all of its flags), or with the flags of each. Raises BadField,
    MalformedList, TooManyFlags."""
    if isinstance(given, str):
        given = [given]
    pairs = given if isinstance(given, Mapping) else dict.fromkeys(given, "*")
    if not pairs:
        raise BadField("at least one namespace is needed", name="namespaces")
    wanted = {}
    for slug, flags in pairs.items():
        if not isinstance(slug, str) or not is_slug(slug):
            raise BadField(f"{slug!r:.80} cannot be the slug of a namespace", name="namespaces")
        wanted[slug] = parse_flag_list(flags if isinstance(flags, str) else ",".join(flags))
    return wanted


class Part:
    """One namespace in a query: `owner` is the tenant, only for a token that has to name it."""

    __slots__ = ("slug", "text")

    def __init__(self, slug: str, wanted: FlagList, owner: str | None) -> None:
        self.slug = slug
        self.text = f"ns={'' if owner is None else f'{owner}/'}{slug}:{wanted.canonical}"


def shards(wanted: Mapping[str, FlagList], owner: str | None) -> list[list[Part]]:
    """As few streams as there can be in the order given. Every single namespace fits one."""
    found: list[list[Part]] = []
    size = 0
    for slug, flags in wanted.items():
        part = Part(slug, flags, owner)
        size += len(part.text) + 1
        if not found or len(found[-1]) == NAMESPACES_PER_STREAM_MAX or size - 1 > EVENTS_QUERY_BYTES_MAX:
            found.append([])
            size = len(part.text) + 1
        found[-1].append(part)
    return found


def events_target(parts: Sequence[Part], versions: Mapping[str, int]) -> str:
    """Path and query of a stream. What is held already changes nothing but what an operator sees, so it is left out where
    it does not fit."""
    query = "&".join(part.text for part in parts)
    hints = ",".join(f"{part.slug}:{versions[part.slug]}" for part in parts if versions.get(part.slug))
    if hints and len(query) + len(hints) + len("&since=") <= EVENTS_QUERY_BYTES_MAX:
        query = f"{query}&since={hints}"
    return f"{_EVENTS}?{query}"


def closure_target(tenant: str, slug: str, version: int, wanted: FlagList) -> str:
    return f"/api/v1/tenants/{tenant}/namespaces/{slug}/closure?version={version}&subscription={wanted.token}"
