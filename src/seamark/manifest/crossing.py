"""What no file can know alone: references that lead nowhere or in a circle, environments, and attributes of two types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from seamark.manifest.diagnostic import Diagnostic, diagnostic
from seamark.manifest.model import Namespace
from seamark.manifest.paths import segment_path
from seamark.manifest.reading import Mention, Piece, quoted

_CIRCLE_SHOWN = 8


def unknown_segments(pieces: Iterable[Piece], known: Collection[str]) -> Iterator[Diagnostic]:
    """A segment is known if its file is there, whatever is in it."""
    for piece in pieces:
        for mention in piece.segments:
            if mention.name not in known:
                yield _at("E005", piece, mention, f"unknown segment {quoted(mention.name)}")


def unknown_environments(flags: Iterable[Piece], namespace: Namespace) -> Iterator[Diagnostic]:
    known = namespace.environments
    if known is None:
        return
    for piece in flags:
        for mention in piece.environments:
            if mention.name not in known:
                yield _at("E010", piece, mention, f"the namespace has no environment {quoted(mention.name)}")


def torn_attributes(pieces: Iterable[Piece]) -> Iterator[Diagnostic]:
    """The first use of an attribute says what its type is; each file that has it otherwise is told once."""
    first: dict[str, tuple[str, str]] = {}
    for piece in pieces:
        told: set[str] = set()
        for attribute, kind, spot in piece.uses:
            known = first.setdefault(attribute, (kind, piece.path))
            if known[0] == kind or attribute in told:
                continue
            told.add(attribute)
            text = f"attribute {quoted(attribute)} is used as {kind} here, and as {known[0]} in {known[1]}"
            yield diagnostic("E034", piece.path, f"{spot.words}: {text}", spot.location)


def circles(segments: Mapping[str, Piece]) -> Iterator[Diagnostic]:
    """Each reference that closes a circle, at the segment that makes it. Without recursion: a chain may be long."""
    done: set[str] = set()
    for root in sorted(segments):
        trail: list[str] = []  # from the root to where the walk is
        places: dict[str, int] = {}
        rest: dict[str, Iterator[Mention]] = {}
        ahead = [] if root in done else [root]
        while ahead:
            here = ahead.pop()
            if here not in places:
                places[here] = len(trail)
                trail.append(here)
                rest[here] = iter(segments[here].segments)
            for mention in rest[here]:
                if mention.name in places:
                    yield _at("E906", segments[here], mention, _circle(trail, places[mention.name]))
                elif mention.name in segments and mention.name not in done:
                    ahead += [here, mention.name]
                    break
            else:
                done.add(here)
                del places[trail.pop()]


def _circle(trail: Sequence[str], start: int) -> str:
    count = len(trail) - start
    if count == 1:
        return "the segment names itself"
    more = ["..."] if count > _CIRCLE_SHOWN else []
    return f"{count} segments name one another: {' -> '.join([*trail[start : start + _CIRCLE_SHOWN], *more, trail[start]])}"


def orphans(flags: Iterable[Piece], segments: Mapping[str, Piece]) -> Iterator[Diagnostic]:
    """Segments that no flag comes to. Narrow closures never have one."""
    ahead = [mention.name for piece in flags for mention in piece.segments]
    reached: set[str] = set()
    while ahead:
        key = ahead.pop()
        if key in segments and key not in reached:
            reached.add(key)
            ahead += [mention.name for mention in segments[key].segments]
    for key in segments:
        if key not in reached:
            yield diagnostic("W901", segment_path(key), f"segment {quoted(key)}: no flag uses it")


def _at(code: str, piece: Piece, mention: Mention, text: str) -> Diagnostic:
    return diagnostic(code, piece.path, f"{mention.spot.words}: {text}", mention.spot.location)
