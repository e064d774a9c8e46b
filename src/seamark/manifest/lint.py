"""Whether files are a manifest, and which: one pass over each file, then one over all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from seamark import limits
from seamark.errors import BadInput
from seamark.manifest import crossing
from seamark.manifest.diagnostic import Diagnostic, Severity, diagnostic
from seamark.manifest.document import read_document, weight_of
from seamark.manifest.flag_file import read_flag
from seamark.manifest.memo import Memo
from seamark.manifest.model import Flag, Manifest, Namespace, Segment
from seamark.manifest.namespace_file import read_namespace
from seamark.manifest.paths import FLAGS, NAMESPACE_FILE, SEGMENTS, SUFFIX, Place, place_of
from seamark.manifest.reading import Piece, Reading, quoted
from seamark.manifest.segment_file import read_segment

Files: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Linted:
    """The manifest, if there is no error, and everything that there is to say."""

    manifest: Manifest | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def passed(self) -> bool:
        return self.manifest is not None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return self._of("error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._of("warning")

    @property
    def infos(self) -> tuple[Diagnostic, ...]:
        return self._of("info")

    def _of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity == severity)


@dataclass(slots=True)
class _Findings:
    """No more than anybody reads, and errors before the rest: a manifest of nothing but faults must not be all over the memory."""

    errors: list[Diagnostic] = field(default_factory=list)
    others: list[Diagnostic] = field(default_factory=list)

    def take(self, found: Iterable[Diagnostic]) -> None:
        for one in found:
            kept = self.errors if one.severity == "error" else self.others
            if len(kept) < limits.DIAGNOSTICS_MAX:
                kept.append(one)

    def sorted(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted([*self.errors, *self.others][: limits.DIAGNOSTICS_MAX], key=_order))


@dataclass(slots=True)
class _Pieces:
    """All files, each read by itself, in the order of their paths."""

    namespace: Piece | None = None
    flags: dict[str, Piece] = field(default_factory=dict)
    segments: dict[str, Piece] = field(default_factory=dict)

    def add(self, place: Place, piece: Piece) -> None:
        if place.kind == "flag":
            self.flags[place.key] = piece
        elif place.kind == "segment":
            self.segments[place.key] = piece
        else:
            self.namespace = piece

    def __iter__(self) -> Iterator[Piece]:
        yield from self.flags.values()
        if self.namespace is not None:
            yield self.namespace
        yield from self.segments.values()


def lint(files: Files, *, slug: str, memo: Memo | None = None, found: Sequence[Diagnostic] = ()) -> Linted:
    """Lint the files of the namespace `slug`. `found` is what reading them from an archive or a folder brought up."""
    linted = Linting(files, slug=slug, memo=memo, found=found).go_on()
    assert linted is not None, "without a bound it goes to the end"
    return linted


class Linting:
    """The same a part at a time, for whoever has others to serve in between. From one thread at a time."""

    __slots__ = ("_ahead", "_files", "_findings", "_memo", "_pieces", "_slug", "_weight")

    def __init__(self, files: Files, *, slug: str, memo: Memo | None = None, found: Sequence[Diagnostic] = ()) -> None:
        self._files = files
        self._slug = slug
        self._memo = memo
        self._pieces = _Pieces()
        self._findings = _Findings()
        self._weight = 0
        paths = sorted(files)
        self._ahead = iter(paths)
        self._findings.take(found)
        self._findings.take(_strays(paths))
        if not any(path.startswith(f"{FLAGS}/") for path in paths):
            self._findings.take([diagnostic("W011", f"{FLAGS}/", "there are no flags")])

    def go_on(self, weight: float = math.inf) -> Linted | None:
        """Read files until they weigh so much; None while more are left. Files that were read before weigh nothing."""
        for path in self._ahead:
            place = place_of(path)
            if place is None:
                continue
            content = self._files[path]
            heavy = weight_of(content)
            self._weight += heavy
            if self._weight > limits.MANIFEST_WEIGHT_MAX:
                return self._refused(path)
            key = None if self._memo is None else self._memo.key(path, content)
            piece = None if self._memo is None or key is None else self._memo.find(key)
            if piece is None:
                weight -= heavy
                piece = _read(path, place, content)
                if self._memo is not None and key is not None:
                    self._memo.keep(key, piece, heavy)
            self._pieces.add(place, piece)
            self._findings.take(piece.found)
            if weight <= 0:
                return None
        self._findings.take(_across(self._pieces, self._slug))
        manifest = None if self._findings.errors else _manifest(self._pieces, self._slug, self._weight)
        return Linted(manifest, self._findings.sorted())

    def _refused(self, path: str) -> Linted:
        """What follows is not read, so what the files say of one another cannot be judged."""
        most = limits.MANIFEST_WEIGHT_MAX
        text = f"up to here the manifest takes more than the {most:,} bytes of memory that it may take"
        self._findings.take([diagnostic("E911", path, text)])
        return Linted(None, self._findings.sorted())


def references_in(path: str, content: bytes, *, memo: Memo) -> set[str]:
    """The segments that one file names. Raises BadInput for a path that no manifest holds."""
    place = place_of(path)
    if place is None:
        raise BadInput(f"no manifest holds {path}")
    key = memo.key(path, content)
    piece = memo.find(key)
    if piece is None:
        piece = _read(path, place, content)
        memo.keep(key, piece, weight_of(content))
    return {mention.name for mention in piece.segments}


def _read(path: str, place: Place, content: bytes) -> Piece:
    document = read_document(path, content)
    if document.table is None:
        assert document.found is not None
        return Piece(path, None, None, (document.found,))
    reading = Reading(path)
    if document.found is not None:
        reading.found.append(document.found)
        reading.failed = True
    if place.kind == "flag":
        return read_flag(place.key, document, reading)
    if place.kind == "segment":
        return read_segment(place.key, document, reading)
    return read_namespace(document, reading)


def _strays(paths: Sequence[str]) -> Iterator[Diagnostic]:
    """Paths in the two folders that hold neither a flag nor a segment. Whatever else is there is nobody's business."""
    folders: set[str] = set()
    for path in paths:
        top, _, name = path.partition("/")
        if not name or top not in (FLAGS, SEGMENTS) or place_of(path) is not None:
            continue
        folder, nested, _ = name.partition("/")
        if nested:
            folders.add(f"{top}/{folder}/")
        elif name.endswith(SUFFIX):
            yield diagnostic(
                "E032", path, f"{quoted(name.removesuffix(SUFFIX))} cannot be the key of a flag or a segment"
            )
    for folder in sorted(folders):
        yield diagnostic("W009", folder, "a directory within the folder is not part of the manifest")


def _across(pieces: _Pieces, slug: str) -> Iterator[Diagnostic]:
    flags = pieces.flags.values()
    yield from crossing.unknown_segments(pieces, pieces.segments)
    yield from crossing.torn_attributes(pieces)
    yield from crossing.circles(pieces.segments)
    namespace = pieces.namespace.entity if pieces.namespace is not None else None
    if isinstance(namespace, Namespace):
        yield from crossing.unknown_environments(flags, namespace)
        if namespace.slug not in ("", slug):
            text = f"namespace: the slug is {quoted(namespace.slug)}, and the namespace is {quoted(slug)}"
            yield diagnostic("E901", NAMESPACE_FILE, text, "namespace.slug")
    if all(piece.entity is not None for piece in pieces):  # else an unread flag may use it
        yield from crossing.orphans(flags, pieces.segments)


def _manifest(pieces: _Pieces, slug: str, weight: int) -> Manifest:
    """Only after linting without errors, so that every piece has its entity."""
    namespace = pieces.namespace.entity if pieces.namespace is not None else Namespace(slug)
    assert isinstance(namespace, Namespace)
    return Manifest(
        namespace if namespace.slug else replace(namespace, slug=slug),
        {key: piece.entity for key, piece in pieces.flags.items() if isinstance(piece.entity, Flag)},
        {key: piece.entity for key, piece in pieces.segments.items() if isinstance(piece.entity, Segment)},
        frozenset(piece.version for piece in pieces if piece.version is not None),
        weight,
    )


def _order(found: Diagnostic) -> tuple[str, str, str, str]:
    return found.path, found.code, found.location or "", found.message
