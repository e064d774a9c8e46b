"""`.exdignore`: which files of a folder are not part of its manifest, in the language of `.gitignore`."""

from __future__ import annotations

from pathspec import GitIgnoreSpec

from seamark.errors import BadInput

IGNORE_FILE = ".exdignore"


class Ignored:
    """Asked with paths as seen from the root; a folder's path ends with a slash."""

    __slots__ = ("_patterns",)

    def __init__(self, content: bytes = b"") -> None:
        try:
            self._patterns = GitIgnoreSpec.from_lines(content.decode().splitlines())
        except ValueError as error:
            raise BadInput(f"{IGNORE_FILE}: {error}") from None

    def __contains__(self, path: str) -> bool:
        return self._patterns.match_file(path)
