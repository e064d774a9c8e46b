"""`.exdignore`: which files of a folder are not part of its manifest, in the language of `.gitignore`."""

from __future__ import annotations

import re

from pathspec import GitIgnoreSpec

from seamark.errors import BadInput

IGNORE_FILE = ".exdignore"
_STARS_LAST = re.compile(r"(?:^(!?)/?|(?<=/))\*{2,}(?=/?[ \t\r]*$)", re.MULTILINE)
_BELOW = "ps_d"  # what `pathspec` calls the slash behind a folder that a pattern has matched


class Ignored:
    """Asked with paths as seen from the root; a folder's path ends with a slash."""

    __slots__ = ("_patterns",)

    def __init__(self, content: bytes = b"") -> None:
        try:
            # The same here with one star, and of two at the end `pathspec` makes more than git does.
            text = _STARS_LAST.sub(r"\1*", content.decode())
            patterns = GitIgnoreSpec.from_lines(text.splitlines()).patterns
        except ValueError as error:
            raise BadInput(f"{IGNORE_FILE}: {error}") from None
        self._patterns = [(one.regex, one.include) for one in patterns if one.include is not None]

    def __contains__(self, path: str) -> bool:
        """What is in a folder that is ignored cannot be taken back by a pattern of its own."""
        folders = [path[: at + 1] for at, letter in enumerate(path[:-1]) if letter == "/"]
        return any(self._ignores(one) for one in (*folders, path))

    def _ignores(self, path: str) -> bool:
        """By the last pattern that matches the path itself, and not a folder that it is in."""
        for regex, include in reversed(self._patterns):
            found = regex.search(path)
            if found is not None and (found.groupdict().get(_BELOW) is None or found.end(_BELOW) == len(path)):
                return bool(include)
        return False
