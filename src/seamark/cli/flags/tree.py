"""A manifest on this machine: a folder or an archive, read, linted and shown."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from seamark import limits
from seamark.cli.output import Output
from seamark.errors import ArchiveTooLarge, BadInput
from seamark.manifest.archive import Unpacked, unpack
from seamark.manifest.diagnostic import Diagnostic, render
from seamark.manifest.folder import read_folder
from seamark.manifest.lint import Linted, lint
from seamark.manifest.paths import NAMESPACE_FILE, is_slug

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")


class Checked(NamedTuple):
    files: dict[str, bytes]
    linted: Linted

    def fails(self, *, deny_warnings: bool) -> bool:
        return not self.linted.passed or (deny_warnings and bool(self.linted.warnings))


def read(path: str) -> Unpacked:
    """The files of a folder or an archive. Raises BadInput and its kinds, OSError."""
    place = Path(path)
    if place.is_dir():
        return read_folder(place)
    if not place.exists():
        raise BadInput(f"{path} is not there; accepted: the folder of a manifest, or an archive of one")
    with place.open("rb") as file:
        data = file.read(limits.ARCHIVE_BYTES_MAX + 1)
    if len(data) > limits.ARCHIVE_BYTES_MAX:
        raise ArchiveTooLarge(f"{path} is larger than {limits.ARCHIVE_BYTES_MAX} bytes", max=limits.ARCHIVE_BYTES_MAX)
    return unpack(data)


def check(path: str, slug: str | None = None) -> Checked:
    """What lint says. Without `slug` the namespace is the one that the manifest names, or has the folder's name."""
    found = read(path)
    name = slug or _named(found.files) or Path(path).resolve().name
    return Checked(found.files, lint(found.files, slug=name, found=found.found))


def show(output: Output, diagnostics: Sequence[Diagnostic]) -> None:
    """Findings with a count at the end for people, one line each for programs."""
    if not output.json:
        output.say(render(diagnostics))
        return
    for one in diagnostics:
        output.line({"event": "finding", **facts(one)})


def facts(one: Diagnostic) -> dict[str, str | None]:
    return {
        "code": one.code,
        "severity": one.severity,
        "path": one.path,
        "message": one.message,
        "location": one.location,
    }


def write(root: Path, files: dict[str, bytes], gone: Iterable[str]) -> None:
    """Make the folder hold exactly these files, where it held `gone` as well."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for path in gone:
        (root / path).unlink()


def _named(files: dict[str, bytes]) -> str | None:
    """The slug that the manifest itself names, as far as it can be read: whether it is right is for `lint` to say."""
    try:
        table = tomllib.loads(files.get(NAMESPACE_FILE, b"").decode())
        slug = table.get("namespace", {}).get("slug")
    except (ValueError, AttributeError, RecursionError):
        return None
    return slug if isinstance(slug, str) and is_slug(slug) else None
