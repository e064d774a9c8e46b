from __future__ import annotations

import pytest

from seamark.manifest.paths import Place, flag_path, is_environment, is_key, is_slug, place_of, segment_path


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("namespace.toml", Place("namespace", "")),
        ("flags/a.toml", Place("flag", "a")),
        ("flags/a_b-9.toml", Place("flag", "a_b-9")),
        ("segments/employees.toml", Place("segment", "employees")),
        (f"flags/{'a' * 63}.toml", Place("flag", "a" * 63)),
    ],
)
def test_what_a_path_holds(path: str, place: Place) -> None:
    assert place_of(path) == place
    if place.key:
        assert path == (flag_path if place.kind == "flag" else segment_path)(place.key)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "flags",
        "flags/",
        "flags/.toml",
        "flags/a",
        "flags/a.TOML",
        "flags/a.toml\n",
        "flags/A.toml",
        "flags/9.toml",
        "flags/_.toml",
        "flags/é.toml",
        f"flags/{'a' * 64}.toml",
        "flags/a/b.toml",
        "/flags/a.toml",
        "./flags/a.toml",
        "flags/../a.toml",
        "flag/a.toml",
        "a.toml",
        "Namespace.toml",
        "x/namespace.toml",
        ".exdignore",
    ],
)
def test_what_no_manifest_holds(path: str) -> None:
    assert place_of(path) is None


def test_keys_may_have_underscores_and_slugs_may_not() -> None:
    assert is_key("a_b")
    assert not is_slug("a_b")
    assert not is_environment("a_b")
    for text in ("a", "a-", "a0-b", "a" * 63):
        assert is_key(text)
        assert is_slug(text)
        assert is_environment(text)
    for text in ("", "-a", "0a", "A", "a b", "a.b", "a\n", "ä", "a" * 64, "_"):
        assert not is_key(text)
        assert not is_slug(text)
        assert not is_environment(text)
