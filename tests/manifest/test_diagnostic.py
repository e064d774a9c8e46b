from __future__ import annotations

import msgspec

from seamark.manifest.diagnostic import CODES, Diagnostic, diagnostic, render


def test_the_letter_of_a_code_says_how_bad_it_is() -> None:
    assert {(code[0], row.severity) for code, row in CODES.items()} == {("E", "error"), ("W", "warning"), ("I", "info")}
    assert all(row.meaning for row in CODES.values())
    assert list(CODES) == sorted(CODES, key=lambda code: ("EWI".index(code[0]), code))


def test_on_the_wire() -> None:
    found = diagnostic("E005", "flags/a.toml", "unknown", "flag.environments._.rules[0].segment")
    assert msgspec.to_builtins(found) == {
        "code": "E005",
        "severity": "error",
        "path": "flags/a.toml",
        "message": "unknown",
        "location": "flag.environments._.rules[0].segment",
    }
    assert "location" not in msgspec.to_builtins(diagnostic("W011", "flags/", "none"))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Diagnostic) == found


def test_for_people() -> None:
    text = render(
        [
            diagnostic("E005", "flags/welcome-banner.toml", "flag 'welcome-banner' rule[0]: unknown segment 'x'"),
            diagnostic("W004", "segments/a.toml", "segment 'a': there is no salt"),
            diagnostic("W004", "segments/b.toml", "segment 'b': there is no salt"),
            diagnostic("I003", "segments/b.toml", "segment 'b': there is no description"),
        ]
    )
    assert text.splitlines() == [
        "error[E005] flag 'welcome-banner' rule[0]: unknown segment 'x'",
        "  at flags/welcome-banner.toml",
        "warning[W004] segment 'a': there is no salt",
        "  at segments/a.toml",
        "warning[W004] segment 'b': there is no salt",
        "  at segments/b.toml",
        "info[I003] segment 'b': there is no description",
        "  at segments/b.toml",
        "1 error, 2 warnings",
    ]
    assert render([]) == "0 errors, 0 warnings"
