"""Deltas: what turns one closure of a subscription into the next, file by file; made by the server, applied by clients."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from seamark.errors import BadDelta
from seamark.manifest.closure import Index, digest
from seamark.manifest.paths import place_of

WRITES = frozenset({"added", "modified", "enter"})
REMOVES = frozenset({"removed", "leave"})


class FileChange(msgspec.Struct, omit_defaults=True, frozen=True):
    """One entry of an inline event. Content and its hash go with what is written, and never with what is removed."""

    path: str
    op: str
    sha256: str | None = None
    content_b64: str | None = None


class State(NamedTuple):
    """A subscription at a commit: the whole namespace, and the part of it that is the closure."""

    tree: Index
    closure: Index


class Step(NamedTuple):
    """A change without its content."""

    path: str
    op: str
    digest: bytes | None


def steps_between(before: State, after: State) -> list[Step]:
    """In byte order of paths; empty when the closure is the same."""
    steps = []
    for path, content in after.closure.items():
        was = before.closure.get(path)
        if was is None:
            steps.append(Step(path, "enter" if path in before.tree else "added", content))
        elif was != content:
            steps.append(Step(path, "modified", content))
    gone = before.closure.keys() - after.closure.keys()
    steps += [Step(path, "leave" if path in after.tree else "removed", None) for path in gone]
    return sorted(steps)


def changes_between(before: State, after: State, content: Callable[[bytes], bytes]) -> list[FileChange]:
    """The delta, in byte order of paths. `content` finds a file's bytes by their sha256."""
    return [change_of(step, content) for step in steps_between(before, after)]


def change_of(step: Step, content: Callable[[bytes], bytes]) -> FileChange:
    if step.digest is None:
        return FileChange(step.path, step.op)
    return FileChange(step.path, step.op, step.digest.hex(), b64encode(content(step.digest)).decode())


def apply_changes(files: Mapping[str, bytes], changes: Iterable[FileChange]) -> dict[str, bytes]:
    """The tree after the changes; `files` stays as it is. Whether it is the right tree, only its hash can say: a file
    that is to be removed may be absent. Raises BadDelta."""
    tree = dict(files)
    seen: set[str] = set()
    for change in changes:
        if place_of(change.path) is None:
            raise BadDelta("no manifest holds such a path", reason="path", path=change.path)
        if change.path in seen:
            raise BadDelta(f"{change.path} is named twice", reason="duplicate_path", path=change.path)
        seen.add(change.path)
        if change.op in WRITES:
            tree[change.path] = content_of(change)
        elif change.op in REMOVES:
            if change.sha256 is not None or change.content_b64 is not None:
                raise BadDelta(f"{change.path} is removed, but has content", reason="content", path=change.path)
            tree.pop(change.path, None)
        else:
            raise BadDelta(f"{change.path}: {change.op!r} is no change", reason="op", path=change.path)
    return tree


def content_of(change: FileChange) -> bytes:
    """The verified bytes of a change that writes. Raises BadDelta."""
    if change.sha256 is None or change.content_b64 is None:
        raise BadDelta(f"{change.path} has no content", reason="content", path=change.path)
    try:
        content = b64decode(change.content_b64.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise BadDelta(f"{change.path} is not base64", reason="base64", path=change.path) from None
    if digest(content).hex() != change.sha256:
        raise BadDelta(f"{change.path} is not what its sha256 says", reason="sha256", path=change.path)
    return content
