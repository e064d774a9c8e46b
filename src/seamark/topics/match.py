"""Which records by their tag: the grammar that deletion and router filters share."""

from __future__ import annotations

from seamark.errors import BadInput
from seamark.log.protocol import TagMatch

_ACCEPTS = 'a match is ["tag","Eq","text"], ["tag","Glob","prefix*"], or a string that may end in *'


def parse_match(given: object) -> TagMatch:
    """The condition that a client wrote as a tuple or as a bare string. Raises BadInput."""
    if isinstance(given, str):
        return _prefix(given) if given.endswith("*") else TagMatch(given)
    match given:
        case ["tag", "Eq", str(text)]:
            return TagMatch(text)
        case ["tag", "Glob", str(text)] if text.endswith("*"):
            return _prefix(text)
    raise BadInput(_ACCEPTS)


def match_tuple(match: TagMatch) -> list[str]:
    """A condition as the tuple that says it."""
    return ["tag", "Glob", f"{match.text}*"] if match.prefix else ["tag", "Eq", match.text]


def _prefix(text: str) -> TagMatch:
    """Only the last star is special."""
    return TagMatch(text[:-1], prefix=True)
