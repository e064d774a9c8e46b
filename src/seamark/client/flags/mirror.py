"""The mirror of one namespace: the closure as it is at the server, byte for byte, and the last one that can be evaluated.

Nothing gets in unverified: an inline delta is held against the hash before it, the hash of each file, and the hash after it; a
snapshot against the hash of the whole. What fails leaves everything as it was. Whoever evaluates reads `held` once, which is
one attribute, replaced as a whole, so it can be done from any thread and never waits. Without I/O and without a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from seamark.client.flags.event import Inline
from seamark.errors import BadDelta
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.delta import apply_changes
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import lint
from seamark.manifest.memo import Memo
from seamark.manifest.model import Manifest, Segment
from seamark.manifest.paths import place_of


class NotVerified(Exception):
    """A check failed, and nothing has changed. `check` names it: `pre_apply`, `files`, `post_apply`, `snapshot`."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check


class NotLinted(Exception):
    """What was applied is what the server has, but no manifest: the one before stays in force."""


@dataclass(frozen=True, slots=True)
class Held:
    """A closure that was verified and linted: what evaluation reads."""

    version: int
    hash: str
    evaluator: Evaluator

    @property
    def manifest(self) -> Manifest:
        return self.evaluator.manifest


class Truth(NamedTuple):
    """What the server has, as far as it was verified. `hash` None: the next closure comes whole."""

    files: Mapping[str, bytes]
    hash: str | None
    version: int


class Mirror:
    """`truth` is the transport's; `held` is what may be evaluated, None while there is nothing."""

    __slots__ = ("_memo", "held", "slug", "truth")

    def __init__(self, slug: str) -> None:
        self.slug = slug
        self.truth = Truth({}, None, 0)
        self.held: Held | None = None
        self._memo = Memo()

    @property
    def files(self) -> Mapping[str, bytes]:
        return self.truth.files

    @property
    def hash(self) -> str | None:
        return self.truth.hash

    @property
    def version(self) -> int:
        return self.truth.version

    def inherited(self) -> Mirror:
        """The same for a process that was forked, where nobody may ever let go of the locks of this one."""
        heir = Mirror(self.slug)
        heir.truth, heir.held = self.truth, self.held
        return heir

    def apply(self, event: Inline) -> frozenset[str]:
        """Take an inline delta; the flags that are others now. One that came before is passed over: it might fit again, if the
        closure was once what it is now. Raises NotVerified, or NotLinted."""
        if self.hash is not None and event.version <= self.version:
            return frozenset()
        if self.hash is None or event.before != self.hash:
            raise NotVerified("pre_apply", f"version {event.version} does not follow what is held")
        try:
            files = apply_changes(self.files, event.changes)
        except BadDelta as error:
            raise NotVerified("files", error.message) from None
        found = closure_hash(index_of(files))
        if found != event.after:
            raise NotVerified("post_apply", f"version {event.version} makes {found}, not {event.after}")
        return self._take(files, found, event.version)

    def replace(self, files: Mapping[str, bytes], version: int, expected: str) -> frozenset[str]:
        """Take a snapshot; the flags that are others now. Raises NotVerified, or NotLinted."""
        for path in files:
            if place_of(path) is None:
                raise NotVerified("snapshot", f"no manifest holds {path[:80]!r}")
        found = closure_hash(index_of(files))
        if found != expected:
            raise NotVerified("snapshot", f"the snapshot of version {version} makes {found}, not {expected}")
        return self._take(dict(files), found, version)

    def confirm(self, version: int, expected: str) -> bool:
        """Whether a snapshot would bring what is here already, byte for byte: then it is that version, and need not come."""
        if self.hash != expected:
            return False
        self.truth = self.truth._replace(version=version)
        if self.held is not None and self.held.hash == expected:
            self.held = Held(version, expected, self.held.evaluator)
        return True

    def abandon(self) -> None:
        """What is held cannot be built upon. It is still what is evaluated."""
        self.truth = Truth({}, None, 0)

    def _take(self, files: dict[str, bytes], found: str, version: int) -> frozenset[str]:
        linted = lint(files, slug=self.slug, memo=self._memo)
        self.truth = Truth(files, found, version)
        if linted.manifest is None:
            # The deltas that follow still build upon it, and one of them may mend it.
            first = linted.errors[0]
            raise NotLinted(f"version {version} does not pass: {first.code} at {first.path}: {first.message}")
        was, self.held = self.held, Held(version, found, Evaluator(linted.manifest))
        return changed_flags(None if was is None else was.manifest, linted.manifest)


def changed_flags(was: Manifest | None, now: Manifest) -> frozenset[str]:
    """Flags that came, went, or may answer otherwise: because of their own file, or of a segment that they come to."""
    if was is None:
        return frozenset(now.flags)
    if was.namespace != now.namespace:
        return frozenset(was.flags) | frozenset(now.flags)
    touched = _touched(was.segments, now.segments)
    gone = was.flags.keys() - now.flags.keys()
    others = {
        key
        for key, flag in now.flags.items()
        if _differ(was.flags.get(key), flag) or not touched.isdisjoint(flag.segments)
    }
    return frozenset(gone | others)


def _touched(was: Mapping[str, Segment], now: Mapping[str, Segment]) -> set[str]:
    """Segments that are others now, and those that come to one of them."""
    touched = {key for key in was.keys() | now.keys() if _differ(was.get(key), now.get(key))}
    users: dict[str, list[str]] = {}
    for key, segment in now.items():
        for used in segment.segments:
            users.setdefault(used, []).append(key)
    ahead = list(touched)
    while ahead:
        for user in users.get(ahead.pop(), ()):
            if user not in touched:
                touched.add(user)
                ahead.append(user)
    return touched


def _differ(one: object, other: object) -> bool:
    """Files that were not read again give the very same object, so most are not compared at all."""
    return one is not other and one != other
