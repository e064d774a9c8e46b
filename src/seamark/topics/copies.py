"""What becomes of a record on its way through a router: whether it is copied, and what the copy is.

Payload and meta go through byte for byte. A circle of routers would copy for ever, so a router that may stand in one
counts the copies behind a record, in the subject, which this surface otherwise leaves empty and never shows.
"""

from __future__ import annotations

from collections.abc import Callable

from seamark.limits import ROUTER_HOPS_MAX
from seamark.log.protocol import TagMatch
from seamark.log.record import Draft, Record
from seamark.topics.routers import Router
from seamark.topics.stamp import Stamps

_HOPS = "hops"


def wanted(router: Router) -> Callable[[Record], bool] | None:
    """Which records the router copies; None when that is all of them."""
    match, counts = router.filter, router.allow_cycle
    if match is None and not counts:
        return None

    def accept(record: Record) -> bool:
        if counts and hops(record) >= ROUTER_HOPS_MAX:
            return False
        return match is None or matches(match, record.tag)

    return accept


def matches(match: TagMatch, tag: str | None) -> bool:
    """A record without a tag never matches."""
    if tag is None:
        return False
    return tag.startswith(match.text) if match.prefix else tag == match.text


def hops(record: Record) -> int:
    """How many counting routers it came through."""
    subject = record.subject
    return int(subject[1]) if subject is not None and subject[0] == _HOPS else 0


def copy_of(router: Router, record: Record, stamps: Stamps | None) -> Draft:
    """The copy of one record; `stamps` only where the router promises `exactly_once`."""
    through = hops(record) + router.allow_cycle
    return Draft(
        record.payload,
        record.node if router.preserve_node else None,
        record.tag if router.preserve_tag else None,
        record.meta if stamps is None else stamps.on(record.meta, record.seq),
        (_HOPS, str(through)) if through else None,
    )
