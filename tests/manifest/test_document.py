from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.limits import MANIFEST_FILE_BYTES_MAX, TOML_KEY_PARTS_MAX
from seamark.manifest.document import read_document, weight_of

GOOD = b'schema_version = "0.1"\n'


def why(content: bytes) -> str:
    """The code and the message of what is found."""
    found = read_document("flags/a.toml", content).found
    assert found is not None
    assert found.severity == "error"
    assert found.path == "flags/a.toml"
    return f"{found.code} {found.message}"


@pytest.mark.parametrize("version", ["0.1", "0.0", "1.0", "12.345", "0.10", "999999999.0"])
def test_versions_that_are_well_formed(version: str) -> None:
    document = read_document("x", f'schema_version = "{version}"'.encode())
    assert document == ({"schema_version": version}, version, None)


@pytest.mark.parametrize(
    "version", ["1.0.1", "v1.0", "1.0+x", "1.x", "", "1", ".1", "1.", " 1.0", "-1.0", "1.0\\n", "١.٠"]
)
def test_versions_that_are_not(version: str) -> None:
    assert why(f'schema_version = "{version}"'.encode()).startswith("E001 `schema_version`")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"schema_version = 0.1",
        b"schema_version = 1",
        b'[flag]\nschema_version = "0.1"',
        b"schema_version = ['0.1']",
    ],
)
def test_a_version_is_a_string_at_the_top(content: bytes) -> None:
    assert "has to be a string at the top" in why(content)
    assert read_document("x", content).table is not None


def test_line_ends_may_be_either() -> None:
    assert read_document("x", b'schema_version = "0.1"\r\na = 1\r\n').table == {"schema_version": "0.1", "a": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbf" + GOOD, "byte order mark"),
        (GOOD + b'a = "\xff"', "not UTF-8 (at byte 28)"),
        (GOOD.decode().encode("utf-16"), "not UTF-8"),
        (GOOD + b"a = = 1", "not TOML: Invalid value (at line 2, column 5)"),
        (GOOD + b"a = 1\na = 2", "not TOML: Cannot overwrite a value"),
        (GOOD + b"[a]\n[a]", "not TOML"),
        (GOOD + b"a = 1\rb = 2", "not TOML"),
        (GOOD + b'a = "\\e"', "not TOML"),  # TOML 1.1 has this escape
        (GOOD + b"a = { b = 1,\n}", "not TOML"),  # and inline tables over several lines
        (GOOD + b'a = "\x00"', "not TOML"),
        (GOOD + b"a = 01", "not TOML"),
        (GOOD + b"a = " + b"9" * 5_000, "not TOML"),
        (GOOD + b"a = " + b"[" * 100_000, "nested too deep"),
        (GOOD + b"a = " + b"{a=" * 100_000, "nested too deep"),
    ],
)
def test_what_is_not_strict_toml(content: bytes, words: str) -> None:
    assert why(content).startswith("E001 ")
    assert words in why(content)
    assert read_document("x", content).table is None


@pytest.mark.parametrize(
    "start",
    ["", "[", "[[", "x = {", "x = { a = 1, ", "  ", "[ 'y' ]\n"],
)
@pytest.mark.parametrize("part", ["a", '"a"', "'a'", '"a.b"', "a ", "-_9"])
def test_a_key_with_many_parts_is_refused_before_it_costs_anything(start: str, part: str) -> None:
    content = GOOD + f"{start}{'.'.join([part] * 10_000)} = 1".encode()
    assert why(content) == f"E001 a key has more than {TOML_KEY_PARTS_MAX} parts"


@pytest.mark.parametrize("count", [2, TOML_KEY_PARTS_MAX])
def test_a_key_with_so_many_parts_is_read(count: int) -> None:
    for line in (f"[{'.'.join('a' * count)}]", f"{'.'.join('b' * count)} = 1"):
        assert read_document("x", GOOD + line.encode()).found is None
    assert why(GOOD + f"[{'.'.join('a' * (TOML_KEY_PARTS_MAX + 1))}]".encode()).startswith("E001 a key")


def test_dots_in_strings_are_no_parts() -> None:
    text = 'a = "' + ". " * 500 + '"\nb = ["' + "x." * 500 + "\"]\nc = '" + "." * 500 + "'\n# " + "... " * 500
    assert read_document("x", GOOD + text.encode()).found is None


def test_a_file_is_bounded() -> None:
    padding = b"#" * (MANIFEST_FILE_BYTES_MAX - len(GOOD))
    assert read_document("x", GOOD + padding).found is None
    assert why(GOOD + padding + b"#").startswith("E910 524,289 bytes")


@given(st.binary(max_size=200) | st.text("ab.=[]{}'\"#\n \\,019-T:", max_size=200).map(str.encode))
def test_any_bytes_are_a_document_or_not(content: bytes) -> None:
    document = read_document("x", content)
    assert (document.version is None) == (document.found is not None)


@pytest.mark.parametrize(
    ("content", "least"),
    [
        (b"a = " + b"{a = " * 30 + b"1" + b"}" * 30, 30 * 232),
        (b"a = [" + b"[], " * 1_000 + b"]", 1_000 * 64),
        (b"[a]\n[b]\n" * 100, 200 * 330),
        (b"a = {" + b"a." * 1_000 + b"b = 1}", 1_000 * 232),
        (b"a = [" + b"'12345678', " * 1_000 + b"]", 1_000 * 65),
    ],
)
def test_what_a_file_takes_in_memory_is_known_before_it_is_read(content: bytes, least: int) -> None:
    assert least <= weight_of(content) <= 10 * least
    assert weight_of(content * 2) == 2 * weight_of(content)
