"""The last verified closure of each namespace on disk, for a start without the server. Nothing in it is believed: the hash of what is
there has to be the one that it says, and it counts as stale until the server confirms it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from seamark.client.flags.mirror import NotLinted, NotVerified
from seamark.client.flags.track import Track
from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import ARCHIVE_BYTES_MAX, CLIENT_ANSWER_HEAD_BYTES_MAX
from seamark.manifest.archive import pack, unpack

_SUFFIX = ".closure"


class _Head(msgspec.Struct, kw_only=True):
    """The first line of a file; the archive follows it."""

    server: str
    namespace: str
    subscription: str
    version: int
    closure_hash: str


class DiskCache:
    """One file for each server, tenant, namespace and list of flags. Those of other processes may be the same: the last one
    who writes wins, and everybody reads whole files."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._server = server
        self._written: dict[str, str] = {}

    def load(self, track: Track) -> None:
        """Give a track what is on disk. What cannot be used is said as its last error, and passed over."""
        try:
            with self._path(track).open("rb") as file:
                raw = file.read(ARCHIVE_BYTES_MAX + CLIENT_ANSWER_HEAD_BYTES_MAX)
        except FileNotFoundError:
            return
        except OSError as error:
            track.fail("cache", f"the cache cannot be read: {error}")
            return
        try:
            line, _, archive = raw.partition(b"\n")
            head = msgspec.json.decode(line, type=_Head)
            if (head.server, head.namespace, head.subscription) != self._key(track) or head.version < 1:
                raise NotVerified("cache", "it is about something else")
            track.restore(unpack(archive).files, head.version, head.closure_hash)
        except (ValueError, BadArchive, ArchiveTooLarge, NotVerified, NotLinted) as error:
            track.mirror.abandon()
            track.fail("cache", f"the cache is damaged, and not used: {error}")

    def save(self, track: Track) -> None:
        """Under another name first, and then at once: whoever reads it meanwhile has the old one. A disk that does not take it
        is said, and changes nothing else."""
        held, files = track.held, track.mirror.files
        if held is None or held.hash != track.mirror.hash or self._written.get(track.slug) == held.hash:
            return
        server, namespace, subscription = self._key(track)
        head = _Head(
            server=server, namespace=namespace, subscription=subscription, version=held.version, closure_hash=held.hash
        )
        path = self._path(track)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(head) + b"\n" + pack(files))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            track.note("cache", f"the cache cannot be written: {error}")
        else:
            self._written[track.slug] = held.hash

    def _key(self, track: Track) -> tuple[str, str, str]:
        return self._server, track.slug, track.wanted.canonical

    def _path(self, track: Track) -> Path:
        name = hashlib.sha256("\n".join(self._key(track)).encode()).hexdigest()[:16]
        return self._folder / f"{track.slug}-{name}{_SUFFIX}"
