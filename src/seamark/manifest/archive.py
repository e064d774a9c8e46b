"""Archives: a manifest as tar.gz. Those we make are the same bytes for the same files; those we get are not trusted."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from tarfile import BLOCKSIZE, USTAR_FORMAT, TarInfo
from typing import NamedTuple

from seamark.errors import BadArchive
from seamark.manifest.diagnostic import Diagnostic, diagnostic
from seamark.manifest.paths import FLAGS, NAMESPACE_FILE, SEGMENTS, SUFFIX, place_of
from seamark.manifest.tarball import Kind, members

_GZIP = 31  # zlib's word for: a gzip header without name and time, and a check sum at the end
_LEVEL = 6
_END = bytes(2 * BLOCKSIZE)


class Unpacked(NamedTuple):
    """The files of a manifest, and what there is to say about what was found beside them."""

    files: dict[str, bytes]
    found: tuple[Diagnostic, ...]


def pack(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz of these files alone, in byte order of their paths, that says nothing of when and by whom it was made."""
    machine = zlib.compressobj(_LEVEL, wbits=_GZIP)
    pieces = [machine.compress(piece) for path in sorted(files) for piece in _member(path, files[path])]
    return b"".join([*pieces, machine.compress(_END), machine.flush()])


def _member(path: str, content: bytes) -> Iterable[bytes]:
    if place_of(path) is None:
        raise BadArchive(f"no manifest holds {path}", member=path)
    header = TarInfo(path)
    header.size = len(content)
    return header.tobuf(USTAR_FORMAT), content, bytes(-len(content) % BLOCKSIZE)


def tar_size(files: Mapping[str, bytes]) -> int:
    """Bytes of the archive without its compression."""
    return len(_END) + sum(BLOCKSIZE + len(content) + -len(content) % BLOCKSIZE for content in files.values())


def unpack(data: bytes) -> Unpacked:
    """The manifest in an archive. Symbolic links, folders within folders and paths that come twice are diagnosed; what
    no manifest consists of is passed over. Raises BadArchive, ArchiveTooLarge."""
    files: dict[str, bytes] = {}
    kinds: dict[str, Kind] = {}
    found: dict[tuple[str, str], Diagnostic] = {}

    def say(code: str, path: str, message: str) -> None:
        found.setdefault((code, path), diagnostic(code, path, message))

    for path, kind, content in members(data):
        before = kinds.setdefault(path, kind)
        if before is not kind or (kind is not Kind.FOLDER and path in files):
            say("E907", path, "the archive holds this path twice")
        elif kind is Kind.LINK:
            say("E018", path, "a manifest holds no symbolic links")
        elif (nested := nested_folder(path, kind)) is not None:
            say("W009", nested, "folders in here are not looked at")
        elif kind is Kind.FILE and is_packed(path):
            files[path] = content
    return Unpacked(files, tuple(found.values()))


def is_packed(path: str) -> bool:
    """Whether a file belongs to a manifest by its place; whether it is well named is for `lint` to say."""
    folder, _, name = path.partition("/")
    if folder not in (FLAGS, SEGMENTS):
        return path == NAMESPACE_FILE
    return name.endswith(SUFFIX) and not name.startswith(".") and "/" not in name


def nested_folder(path: str, kind: Kind) -> str | None:
    """The folder within `flags/` or `segments/` that this is, or is in. Hidden ones do not count."""
    folder, *below = path.split("/")
    inside = below if kind is Kind.FOLDER else below[:-1]
    if folder not in (FLAGS, SEGMENTS) or not inside or any(part.startswith(".") for part in below):
        return None
    return f"{folder}/{inside[0]}"
