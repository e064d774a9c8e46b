from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark.errors import BadInput
from seamark.manifest.ignore import Ignored

PATHS = (
    "namespace.toml",
    "flags/",
    "flags/a.toml",
    "flags/ab.toml",
    "flags/a-old.toml",
    "segments/",
    "segments/a.toml",
)


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ("", ()),
        ("# flags/a.toml\n\n   \n", ()),
        ("*-old.toml", ("flags/a-old.toml",)),
        ("a.toml", ("flags/a.toml", "segments/a.toml")),
        ("/a.toml", ()),
        ("/flags/a?.toml", ("flags/ab.toml",)),
        ("flags/*\n!flags/a.toml", ("flags/ab.toml", "flags/a-old.toml")),
        ("segments/", ("segments/", "segments/a.toml")),
        ("flags/a.toml\r\n", ("flags/a.toml",)),
        ("**/a*.toml", ("flags/a.toml", "flags/ab.toml", "flags/a-old.toml", "segments/a.toml")),
        ("flags/[!a]*.toml", ()),
        (
            "*\n!?.toml",
            (
                "namespace.toml",
                "flags/",
                "flags/a.toml",
                "flags/ab.toml",
                "flags/a-old.toml",
                "segments/",
                "segments/a.toml",
            ),
        ),
        ("flags/**/", ()),
        ("flags/**\n!flags/a.toml", ("flags/ab.toml", "flags/a-old.toml")),
        ("!*\n*/", ("flags/", "flags/a.toml", "flags/ab.toml", "flags/a-old.toml", "segments/", "segments/a.toml")),
    ],
)
def test_what_is_ignored(text: str, ignored: tuple[str, ...]) -> None:
    patterns = Ignored(text.encode())
    assert tuple(path for path in PATHS if path in patterns) == ignored


def test_nothing_is_ignored_without_a_file() -> None:
    assert not any(path in Ignored() for path in PATHS)


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(BadInput, match=r"\.exdignore"):
        Ignored(b"\xff")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for path in PATHS:
        (root / path).parent.mkdir(exist_ok=True)
        if not path.endswith("/"):
            (root / path).touch()
    return root


lines = st.from_regex(r"!?/?(\*\*/|flags/|segments/)?[ab*?-]{1,3}(\.toml|/)?", fullmatch=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(patterns=st.lists(lines, max_size=4))
def test_it_is_the_language_of_gitignore(repository: Path, patterns: list[str]) -> None:
    text = "\n".join(patterns)
    (repository / ".gitignore").write_text(text)
    files = [path for path in PATHS if not path.endswith("/")]
    told = subprocess.run(
        ["git", "-C", repository, "check-ignore", "--no-index", "--stdin"],
        input="\n".join(files), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [path for path in files if path in Ignored(text.encode())] == told.stdout.split()
