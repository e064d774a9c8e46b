"""`seamark flags pull`: the files of a version, as a folder or as an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import httpx

from seamark.cli.exits import Exit
from seamark.cli.flags import tree
from seamark.cli.flags.remote import Place, Remote, namespace_option, place_of, server_options
from seamark.cli.output import Output
from seamark.errors import Conflict, Fault
from seamark.manifest.archive import unpack
from seamark.manifest.folder import read_folder
from seamark.manifest.subscription import EVERY_FLAG


@click.command()
@click.argument("path", metavar="FOLDER|ARCHIVE")
@namespace_option
@click.option("--version", "version", type=click.IntRange(min=1), metavar="N", help="This version. [the current one]")
@click.option("--force", is_flag=True, help="Replace the manifest that is there already.")
@server_options
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def pull(path: str, place: str | None, version: int | None, force: bool, json: bool | None, **more: Any) -> int:
    """Fetch the files of a version: into a folder, or as an archive where the path ends in .tar.gz. Ends with 1 when another
    manifest is there already; --force replaces it."""
    where, target = place_of(place), Path(path)
    with Remote(more["url"], more["token_file"]) as remote:
        answer = _fetched(remote, where, version)
    number = version or int(answer.headers["exd-manifest-version"])
    if path.endswith(tree.ARCHIVE_SUFFIXES):
        _check(not target.exists() or target.read_bytes() == answer.content, path, force=force)
        target.write_bytes(answer.content)
        count = len(unpack(answer.content).files)
    else:
        count = _unpack(answer.content, target, path, force=force)
    output = Output(json=json)
    if output.json:
        output.line({"event": "pulled", "namespace": str(where), "version": number, "files": count, "path": path})
    else:
        output.say(f"{path} holds version {number} of {where}: {count} files")
    return Exit.OK


def _fetched(remote: Remote, where: Place, version: int | None) -> httpx.Response:
    if version is None:
        return remote.ask("GET", f"{where.path}/manifest")
    query = {"version": str(version), "subscription": EVERY_FLAG.token}
    return remote.ask("GET", f"{where.path}/closure", params=query)


def _unpack(archive: bytes, target: Path, path: str, *, force: bool) -> int:
    unpacked = unpack(archive)
    if unpacked.found:
        raise Fault(f"the server sent what is no manifest: {unpacked.found[0].message}")
    there = read_folder(target).files if target.is_dir() else {}
    _check(not there or there == unpacked.files, path, force=force)
    target.mkdir(parents=True, exist_ok=True)
    tree.write(target, unpacked.files, there.keys() - unpacked.files.keys())
    return len(unpacked.files)


def _check(free: bool, path: str, *, force: bool) -> None:
    if not free and not force:
        raise Conflict(f"{path} holds something else already; --force replaces it")
