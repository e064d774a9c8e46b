"""Flags without a server: of a folder, or of files in memory. They are linted like all others, and never change."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from seamark.client.flags.mirror import Held
from seamark.client.flags.reader import FlagReader
from seamark.client.flags.status import State
from seamark.client.flags.track import Track
from seamark.clock import SystemClock
from seamark.errors import LintFailed
from seamark.manifest.archive import Unpacked
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.diagnostic import Diagnostic, render
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import lint
from seamark.manifest.paths import NAMESPACE_FILE, is_slug
from seamark.manifest.subscription import EVERY_FLAG

_LOCAL = "local"


class OfflineFlags(FlagReader):
    """Answers like a client that has just been told everything, with version 0."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        environment: str,
        slug: str | None = None,
        name: str = _LOCAL,
        found: Sequence[Diagnostic] = (),
    ) -> None:
        given = slug or _slug_in(files) or (name if is_slug(name) else _LOCAL)
        linted = lint(files, slug=given, found=found)
        if linted.manifest is None:
            raise LintFailed(render(linted.errors), lint=linted.diagnostics)
        track = Track(given, EVERY_FLAG, SystemClock())
        track.mirror.held = Held(0, closure_hash(index_of(files)), Evaluator(linted.manifest))
        track.ready, track.state = True, State.LIVE
        super().__init__({given: track}, environment, given)

    def wait_ready(self, timeout: float | None = None) -> bool:
        """At once."""
        return True

    def close(self) -> None:
        """There is nothing to close."""

    def __enter__(self) -> OfflineFlags:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncOfflineFlags(FlagReader):
    """The same where clients are waited for."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        environment: str,
        slug: str | None = None,
        name: str = _LOCAL,
        found: Sequence[Diagnostic] = (),
    ) -> None:
        same = OfflineFlags(files, environment=environment, slug=slug, name=name, found=found)
        super().__init__(same._tracks, environment, None)

    async def wait_ready(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 as of the other client
        """At once."""
        return True

    async def close(self) -> None:
        """There is nothing to close."""

    async def __aenter__(self) -> AsyncOfflineFlags:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def read_directory(path: Path) -> Unpacked:
    """Only loaded where there is a folder to read: it needs more than clients of a server do."""
    from seamark.manifest.folder import read_folder

    return read_folder(path)


def _slug_in(files: Mapping[str, bytes]) -> str | None:
    """What the manifest calls itself. Whatever is wrong with it, linting says."""
    try:
        said = tomllib.loads(files.get(NAMESPACE_FILE, b"").decode()).get("namespace", {}).get("slug")
    except (ValueError, AttributeError):
        return None
    return said if isinstance(said, str) and is_slug(said) else None
