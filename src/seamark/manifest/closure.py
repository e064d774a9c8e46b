"""Closures: the files that a subscription needs, and the hash by which server and client know that they hold the same.

An index stands for a tree of files: it maps every path to the raw sha256 of the file's bytes. Paths in ascending order
of text are in ascending order of their UTF-8 bytes as well, so no key has to be made to sort them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from struct import Struct

from seamark.manifest.model import Manifest
from seamark.manifest.paths import NAMESPACE_FILE, flag_path, segment_path
from seamark.manifest.subscription import FlagList

Index = Mapping[str, bytes]

EMPTY_HASH = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

_LENGTH = Struct(">I").pack


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def index_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The index of a tree, in byte order of paths."""
    return {path: digest(files[path]) for path in sorted(files)}


def closure_hash(index: Index) -> str:
    """Of a whole tree or of a closure. Whole paths are sorted, never keys: `flags/a-b.toml` comes before `flags/a.toml`."""
    parts: list[bytes] = []
    for path in sorted(index):
        name = path.encode()
        parts += (_LENGTH(len(name)), name, index[path])
    return f"sha256:{hashlib.sha256(b''.join(parts)).hexdigest()}"


def closure_of(manifest: Manifest, index: Index, wanted: FlagList) -> dict[str, bytes]:
    """The part of `index` that `wanted` needs to be linted and evaluated on its own, in byte order of paths. Flags that
    are not there add nothing."""
    if wanted.keys is None:
        return {path: index[path] for path in sorted(index)}
    flags = [key for key in wanted.keys if key in manifest.flags]
    paths = [NAMESPACE_FILE, *map(flag_path, flags), *map(segment_path, reachable(manifest, flags))]
    return {path: index[path] for path in sorted(paths) if path in index}


def closure_by(references: Callable[[str], Iterable[str]], index: Index, wanted: FlagList) -> dict[str, bytes]:
    """The same without the whole manifest: `references` tells the segments that the file of a path names, and is asked for
    no other files than those of the closure."""
    if wanted.keys is None:
        return {path: index[path] for path in sorted(index)}
    ahead = [path for path in map(flag_path, wanted.keys) if path in index]
    found = {*ahead, *({NAMESPACE_FILE} & index.keys())}
    while ahead:
        for path in map(segment_path, references(ahead.pop())):
            if path in index and path not in found:
                found.add(path)
                ahead.append(path)
    return {path: index[path] for path in sorted(found)}


def reachable(manifest: Manifest, flags: Iterable[str]) -> set[str]:
    """The segments that these flags refer to, in whichever environment, and those that segments refer to in turn."""
    ahead = {segment for key in flags for segment in manifest.flags[key].segments}
    found: set[str] = set()
    while ahead:
        key = ahead.pop()
        segment = manifest.segments.get(key)
        if segment is not None and key not in found:
            found.add(key)
            ahead |= segment.segments
    return found


def has_changed(closure: Index, index: Index, wanted: FlagList) -> bool:
    """Whether the closure of `wanted` at the commit of `index` is another than `closure`, found at an earlier commit.

    Exact for manifests without errors, and cheap: what a closure reaches is decided by the files in it, so as long as
    they all are what they were, only a file that `wanted` itself names can join them.
    """
    if wanted.keys is None:
        return closure != index
    if any(index.get(path) != content for path, content in closure.items()):
        return True
    named = (NAMESPACE_FILE, *map(flag_path, wanted.keys))
    return any(path in index and path not in closure for path in named)
