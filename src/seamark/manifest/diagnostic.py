"""What a linter has to say about a file: a code that never changes its meaning, and words for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

Severity = Literal["error", "warning", "info"]
_SEVERITIES: dict[str, Severity] = {"E": "error", "W": "warning", "I": "info"}


class Code(NamedTuple):
    severity: Severity
    meaning: str


class Diagnostic(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding. `location` is where in the file: the path of a key, or the line and column of what is no TOML."""

    code: str
    severity: Severity
    path: str
    message: str
    location: str | None = None


_MEANINGS = {
    "E001": "the file is not TOML 1.0 in UTF-8 without a byte order mark, or has no well-formed `schema_version` at its top",
    "E004": "a variant is named that the flag does not declare",
    "E005": "a segment is named that the namespace does not have",
    "E006": "`[segment.bucket]` has no entity attribute, no whole range within 0..9999, or a range that ends before it starts",
    "E010": "a flag has a block for an environment that the namespace does not declare",
    "E011": "a segment has neither a predicate nor a bucket",
    "E014": "the type of a flag is missing or is none of `boolean`, `string`, `integer`, `float`, `json`",
    "E016": "a field is unknown",
    "E018": "a symbolic link",
    "E032": "a name is not well formed: the stem of a file, the slug of the namespace, or an environment",
    "E034": "an attribute is used with types that cannot both be its own: text, number, or boolean",
    "E036": "a rule has both a segment and a predicate, or neither",
    "E037": "a flag has no block for `_`, which answers where no other does",
    "E038": "the block for `_` has no variant",
    "E039": "the block for `_` has `testing`",
    "E901": "`slug` is not the name of the namespace that the manifest is for",
    "E902": "a value is none of those that its field may have",
    "E903": "the value of a variant does not have the type of its flag, or cannot be written as JSON",
    "E904": "the operator of a predicate is unknown",
    "E905": "a predicate is not well formed: not exactly one form, an operand that its operator cannot take, or too deep",
    "E906": "segments name one another in a circle",
    "E907": "two files have the same path, or paths that cannot both be kept",
    "E908": "a field has the wrong type",
    "E909": "a field or table that has to be there is missing",
    "E910": "the file is larger than a file of a manifest may be",
    "E911": "the manifest says too much: what all its tables, arrays and values take in memory has a bound",
    "W002": "a retired flag still has rules",
    "W003": "a flag has no rules in any environment",
    "W004": "a bucket has no salt; the key of its segment is used",
    "W009": "a directory within `flags/` or `segments/`; what is in it is not part of the manifest",
    "W011": "there is no `flags/` with a flag in it",
    "W901": "a segment that no flag uses",
    "I001": "a flag has no owner",
    "I002": "a flag has no description",
    "I003": "a segment has no description",
}
CODES: dict[str, Code] = {code: Code(_SEVERITIES[code[0]], meaning) for code, meaning in _MEANINGS.items()}


def diagnostic(code: str, path: str, message: str, location: str | None = None) -> Diagnostic:
    """A finding with the severity of its code."""
    return Diagnostic(code, CODES[code].severity, path, message, location)


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """For people: each finding, where it is, and a count at the end."""
    lines = []
    counts = {"error": 0, "warning": 0}
    for found in diagnostics:
        lines += [f"{found.severity}[{found.code}] {found.message}", f"  at {found.path}"]
        counts[found.severity] = counts.get(found.severity, 0) + 1
    lines.append(", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in list(counts.items())[:2]))
    return "\n".join(lines)
