"""Versions that are at hand, because they were used not long ago."""

from __future__ import annotations

from collections import OrderedDict

from seamark.flags.version import Version
from seamark.limits import FLAG_VERSIONS_WEIGHT_KEPT

_FILE_BYTES = 300  # of a path and a digest in an index


class KeptVersions:
    """Within a bound on the memory that they take together; the one used last is kept whatever it takes."""

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[str, int], tuple[Version, int]] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._versions)

    def find(self, stream: str, number: int) -> Version | None:
        found = self._versions.get((stream, number))
        if found is None:
            return None
        self._versions.move_to_end((stream, number))
        return found[0]

    def keep(self, version: Version) -> Version:
        """Also again when it was read, and so takes more."""
        key = (version.stream, version.number)
        self._let_go(key)
        weight = len(version.index) * _FILE_BYTES + (version.manifest.weight if version.is_read else 0)
        self._versions[key] = version, weight
        self._weight += weight
        while self._weight > FLAG_VERSIONS_WEIGHT_KEPT and len(self._versions) > 1:
            self._let_go(next(iter(self._versions)))
        return version

    def drop(self, version: Version) -> None:
        key = (version.stream, version.number)
        found = self._versions.get(key)
        if found is not None and found[0] is version:
            self._let_go(key)

    def _let_go(self, key: tuple[str, int]) -> None:
        gone = self._versions.pop(key, None)
        if gone is not None:
            self._weight -= gone[1]
