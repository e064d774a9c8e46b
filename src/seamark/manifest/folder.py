"""A folder on disk as a manifest, for those who push one or evaluate from one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import ARCHIVE_UNPACKED_BYTES_MAX
from seamark.manifest.archive import Unpacked, is_packed
from seamark.manifest.diagnostic import Diagnostic, diagnostic
from seamark.manifest.ignore import IGNORE_FILE, Ignored
from seamark.manifest.paths import FLAGS, SEGMENTS


def read_folder(root: Path) -> Unpacked:
    """What an archive of the folder would hold, and what there is to say about the rest. Hidden and ignored files are not
    looked at. Raises BadArchive, ArchiveTooLarge, OSError."""
    files: dict[str, bytes] = {}
    found: list[Diagnostic] = []
    size = 0
    for path, mode in _entries(root, _ignored(root)):
        if stat.S_ISLNK(mode):
            found.append(diagnostic("E018", path, "a manifest holds no symbolic links"))
        elif stat.S_ISDIR(mode):
            if "/" in path:
                found.append(diagnostic("W009", path, "folders in here are not looked at"))
        elif is_packed(path):
            files[path] = _content(root, path, mode, most=ARCHIVE_UNPACKED_BYTES_MAX - size)
            size += len(files[path])
    return Unpacked(files, tuple(found))


def _ignored(root: Path) -> Ignored:
    """Nothing, unless there is a plain file that says so."""
    try:
        mode = (root / IGNORE_FILE).lstat().st_mode
    except FileNotFoundError:
        return Ignored()
    return Ignored(_content(root, IGNORE_FILE, mode, most=ARCHIVE_UNPACKED_BYTES_MAX))


def _entries(root: Path, ignored: Ignored) -> Iterator[tuple[str, int]]:
    """Path and mode of what lies in the root and in its two folders, in order of names."""
    for name in _names(root, "", ignored):
        mode = (root / name).lstat().st_mode
        yield name, mode
        if name in (FLAGS, SEGMENTS) and stat.S_ISDIR(mode):
            for path in _names(root, f"{name}/", ignored):
                yield path, (root / path).lstat().st_mode


def _names(root: Path, within: str, ignored: Ignored) -> Iterator[str]:
    with os.scandir(root / within) as entries:
        paths = sorted(
            (within + entry.name, entry.is_dir(follow_symlinks=False))
            for entry in entries
            if not entry.name.startswith(".")
        )
    for path, is_folder in paths:
        if (path + "/" if is_folder else path) not in ignored:
            yield path


def _content(root: Path, path: str, mode: int, *, most: int) -> bytes:
    """Asked for one byte more than it may have, so that a file that grows under our eyes is no way out."""
    if not stat.S_ISREG(mode):
        raise BadArchive(f"{path} is not a plain file", member=path)
    with (root / path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ArchiveTooLarge("the folder is too large", max=ARCHIVE_UNPACKED_BYTES_MAX)
    return content
