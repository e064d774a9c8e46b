from __future__ import annotations

import os
from pathlib import Path

import pytest

from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import ARCHIVE_UNPACKED_BYTES_MAX
from seamark.manifest.archive import pack, unpack
from seamark.manifest.folder import read_folder
from tests.manifest import vectors


def write(root: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def codes(root: Path) -> list[tuple[str, str]]:
    return [(found.code, found.path) for found in read_folder(root).found]


def test_a_folder_is_what_its_archive_is(tmp_path: Path) -> None:
    write(tmp_path, vectors.A)
    assert read_folder(tmp_path) == (vectors.A, ())
    assert read_folder(tmp_path) == unpack(pack(vectors.A))


def test_an_empty_folder(tmp_path: Path) -> None:
    assert read_folder(tmp_path) == ({}, ())


def test_what_is_not_of_a_manifest_is_passed_over(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "readme.md": b"",
            "flags/.hidden.toml": b"",
            "flags/.cache/x.toml": b"",
            "flags/notes.txt": b"",
            ".git/config": b"",
            "docs/flags/a.toml": b"",
            "flags/a.toml": b"1",
        },
    )
    assert read_folder(tmp_path) == ({"flags/a.toml": b"1"}, ())


def test_ignored_files_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, {**vectors.A, "flags/old.toml": b"", "flags/wip/x.toml": b"", ".exdignore": b"old.toml\nwip/\n"})
    (tmp_path / "flags/old-link.toml").symlink_to("old.toml")
    assert codes(tmp_path) == [("E018", "flags/old-link.toml")]
    (tmp_path / ".exdignore").write_bytes(b"old*\nwip/\n")
    assert read_folder(tmp_path) == (vectors.A, ())


def test_a_whole_folder_can_be_ignored(tmp_path: Path) -> None:
    write(tmp_path, {**vectors.A, ".exdignore": b"segments/\n"})
    assert vectors.SEGMENT_PATH not in read_folder(tmp_path).files


def test_symbolic_links_are_diagnosed_and_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"flags/a.toml": b"1", "elsewhere/b.toml": b"2"})
    (tmp_path / "flags/b.toml").symlink_to("../elsewhere/b.toml")
    (tmp_path / "segments").symlink_to("elsewhere")
    (tmp_path / "namespace.toml").symlink_to("nowhere")
    assert read_folder(tmp_path).files == {"flags/a.toml": b"1"}
    assert codes(tmp_path) == [("E018", "flags/b.toml"), ("E018", "namespace.toml"), ("E018", "segments")]


def test_folders_within_are_diagnosed(tmp_path: Path) -> None:
    write(tmp_path, {"flags/old/a.toml": b"", "segments/x/y/z.toml": b""})
    assert read_folder(tmp_path).files == {}
    assert codes(tmp_path) == [("W009", "flags/old"), ("W009", "segments/x")]


def test_what_is_no_plain_file_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "flags").mkdir()
    os.mkfifo(tmp_path / "flags/a.toml")
    with pytest.raises(BadArchive):
        read_folder(tmp_path)


def test_a_folder_has_the_bound_of_an_archive(tmp_path: Path) -> None:
    (tmp_path / "flags").mkdir()
    for name, size in (("a", ARCHIVE_UNPACKED_BYTES_MAX), ("b", 1)):
        (tmp_path / f"flags/{name}.toml").touch()
        os.truncate(tmp_path / f"flags/{name}.toml", size)
    with pytest.raises(ArchiveTooLarge):
        read_folder(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_folder(tmp_path / "none")
