from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import ARCHIVE_BYTES_MAX, ARCHIVE_UNPACKED_BYTES_MAX
from seamark.manifest.archive import pack, tar_size, unpack
from tests.manifest import vectors
from tests.manifest.worlds import World, worlds

FLAG = "flags/a.toml"


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info


def tar(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def of(*entries: tuple[str, bytes]) -> bytes:
    return gzip.compress(tar(*((member(name, content), content) for name, content in entries)))


def one(info: tarfile.TarInfo, content: bytes = b"", form: int = tarfile.USTAR_FORMAT) -> bytes:
    return gzip.compress(tar((info, content), form=form))


def raw(kind: bytes, content: bytes, name: str = "x") -> bytes:
    """A member as `tarfile` would not write it."""
    header = member(name, content, kind).tobuf(tarfile.USTAR_FORMAT)
    return header + content + bytes(-len(content) % 512)


def with_pax(**said: str) -> bytes:
    """A file that is described a second time, before its own header."""
    return gzip.compress(raw(b"x", pax(said)) + tar((member(FLAG, b"1"), b"1")))


def pax(said: dict[str, str]) -> bytes:
    block = b""
    for key, value in said.items():
        body = f" {key}={value}\n".encode()
        size = len(body) + len(str(len(body) + 2))
        block += str(size).encode() + body
    return block


# -- what we make


def test_packing_is_the_same_for_the_same_files() -> None:
    backwards = dict(reversed(vectors.A.items()))
    assert pack(vectors.A) == pack(backwards)


def test_an_archive_says_nothing_of_when_and_by_whom() -> None:
    data = pack(vectors.A)
    assert data[4:8] == bytes(4), "no time"
    assert data[3] == 0, "no name"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        infos = archive.getmembers()
    assert [info.name for info in infos] == sorted(vectors.A, key=str.encode)
    for info in infos:
        assert (info.type, info.mode, info.mtime) == (tarfile.REGTYPE, 0o644, 0)
        assert (info.uid, info.gid, info.uname, info.gname) == (0, 0, "", "")


def test_others_read_what_we_pack(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(vectors.A))) as archive:
        archive.extractall(tmp_path, filter="data")
    for path, content in vectors.A.items():
        assert (tmp_path / path).read_bytes() == content


@pytest.mark.parametrize("files", [{}, vectors.A, {FLAG: b""}, {FLAG: b"x" * 512}, {FLAG: b"x" * 513}])
def test_the_size_without_compression(files: dict[str, bytes]) -> None:
    assert tar_size(files) == len(gzip.decompress(pack(files)))
    assert unpack(pack(files)) == (files, ())


def test_nothing_else_is_packed() -> None:
    for path in ("../a.toml", "readme.md", "flags/A.toml", "/namespace.toml", "flags/x/a.toml"):
        with pytest.raises(BadArchive):
            pack({path: b""})


@given(worlds())
def test_pulling_and_pushing_changes_nothing(world: World) -> None:
    data = pack(world.files)
    again = unpack(data)
    assert again.files == world.files
    assert not again.found
    assert pack(again.files) == data


@given(st.dictionaries(st.sampled_from(("namespace.toml", FLAG, "segments/a.toml")), st.binary(max_size=2_000)))
def test_every_byte_survives(files: dict[str, bytes]) -> None:
    assert unpack(pack(files)).files == files


# -- what others make


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_common_form_is_read(form: int) -> None:
    entries = [
        (member("./", kind=tarfile.DIRTYPE), b""),
        (member("./flags/", kind=tarfile.DIRTYPE), b""),
        (member("./" + FLAG, b"1", mtime=1.5, uname="somebody"), b"1"),
        (member("segments", kind=tarfile.DIRTYPE), b""),
        (member("segments/s.toml", b"2", mode=0o600), b"2"),
        (member("namespace.toml", b"3"), b"3"),
    ]
    data = gzip.compress(tar(*entries, form=form))
    assert unpack(data) == ({FLAG: b"1", "segments/s.toml": b"2", "namespace.toml": b"3"}, ())


def prefixed(prefix: bytes, name: bytes, magic: bytes = b"ustar\x0000") -> bytes:
    """A header whose name is in two parts, as some writers have it where both fit into one."""
    header = bytearray(member(name.decode(), b"1").tobuf(tarfile.USTAR_FORMAT))
    header[257:265] = magic
    header[345 : 345 + len(prefix)] = prefix
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return gzip.compress(bytes(header) + b"1" + bytes(511) + bytes(1024))


def test_a_name_may_be_in_two_parts() -> None:
    assert unpack(prefixed(b"flags", b"a.toml")).files == {FLAG: b"1"}
    assert unpack(prefixed(b"x" * 155, b"a.toml")).files == {}
    with pytest.raises(BadArchive):
        unpack(prefixed(b"..", b"a.toml"))


def test_other_forms_keep_something_else_where_the_first_part_would_be() -> None:
    assert unpack(prefixed(b"14700000000", b"flags/a.toml", magic=b"ustar  \0")).files == {FLAG: b"1"}


def test_the_oldest_tars_know_a_folder_by_its_slash() -> None:
    assert unpack(gzip.compress(raw(b"0", b"", name="flags/") + bytes(1024))) == ({}, ())
    assert codes(gzip.compress(raw(b"\0", b"", name="flags/old/") + bytes(1024))) == [("W009", "warning", "flags/old")]
    with pytest.raises(BadArchive):
        unpack(gzip.compress(raw(b"0", b"1", name="flags/a.toml/") + bytes(1024)))


def test_the_archive_of_a_commit_is_read() -> None:
    """Version control says first which commit it is."""
    data = gzip.compress(raw(b"g", pax({"comment": "0123abcd"})) + tar((member(FLAG, b"1"), b"1")))
    assert unpack(data).files == {FLAG: b"1"}


def test_what_no_manifest_consists_of_is_passed_over() -> None:
    ignored = (
        "readme.md", ".exdignore", ".git/config", "flags/.hidden.toml", "flags/._a.toml", "flags/notes.txt",
        "docs/a.toml", "flags", "other.toml", "flags/.cache/a.toml", "segments/.toml",
    )  # fmt: skip
    assert unpack(of(*((name, b"x") for name in ignored), (FLAG, b"1"))) == ({FLAG: b"1"}, ())


def test_a_badly_named_file_is_for_the_linter() -> None:
    assert unpack(of(("flags/Bad Name.toml", b"1"))) == ({"flags/Bad Name.toml": b"1"}, ())


def codes(data: bytes) -> list[tuple[str, str, str]]:
    return [(found.code, found.severity, found.path) for found in unpack(data).found]


@pytest.mark.parametrize("name", ["link", FLAG, "flags", ".hidden", "docs/deep/link"])
def test_a_symbolic_link_is_diagnosed_wherever_it_is(name: str) -> None:
    data = one(member(name, kind=tarfile.SYMTYPE, linkname="/etc/passwd"))
    assert unpack(data).files == {}
    assert codes(data) == [("E018", "error", name)]


def test_a_folder_within_the_folders_is_diagnosed_once() -> None:
    data = gzip.compress(
        tar(
            (member("flags/old", kind=tarfile.DIRTYPE), b""),
            (member("flags/old/a.toml"), b""),
            (member("flags/old/deep/b.toml"), b""),
            (member("segments/x/y.toml"), b""),
        )
    )
    assert unpack(data).files == {}
    assert codes(data) == [("W009", "warning", "flags/old"), ("W009", "warning", "segments/x")]


@pytest.mark.parametrize(
    "entries",
    [
        [member(FLAG, b"1"), member(FLAG, b"2")],
        [member(FLAG, b"1"), member("./" + FLAG, b"2")],
        [member(FLAG, b"1"), member(FLAG, kind=tarfile.DIRTYPE)],
    ],
)
def test_a_path_that_comes_twice_is_diagnosed(entries: list[tarfile.TarInfo]) -> None:
    data = gzip.compress(tar(*((info, bytes([49 + place])[: info.size]) for place, info in enumerate(entries))))
    assert unpack(data).files == {FLAG: b"1"}
    assert codes(data) == [("E907", "error", FLAG)]


def test_a_link_with_the_path_of_a_file_is_diagnosed_twice() -> None:
    link = member(FLAG, kind=tarfile.SYMTYPE, linkname="b.toml")
    data = gzip.compress(tar((link, b""), (member(FLAG, b"1"), b"1")))
    assert unpack(data).files == {}
    assert codes(data) == [("E018", "error", FLAG), ("E907", "error", FLAG)]


# -- attacks

ATTACKS: dict[str, Callable[[], bytes]] = {
    "traversal": lambda: of(("../a.toml", b"")),
    "traversal, inside": lambda: of(("flags/../../a.toml", b"")),
    "traversal, after a dot": lambda: of(("./../a.toml", b"")),
    "traversal, at the end": lambda: one(member("flags/..", kind=tarfile.DIRTYPE)),
    "traversal that would come back": lambda: of(("flags/../flags/a.toml", b"")),
    "absolute": lambda: of(("/flags/a.toml", b"")),
    "absolute, twice": lambda: of(("//flags/a.toml", b"")),
    "backslashes": lambda: of(("flags\\a.toml", b"")),
    "an empty part": lambda: of(("flags//a.toml", b"")),
    "a dot within": lambda: of(("flags/./a.toml", b"")),
    "dots at the start": lambda: of(("././flags/a.toml", b"")),
    "no name": lambda: gzip.compress(raw(b"0", b"1", name="")),
    "a name with an escape": lambda: of(("flags/\x1b[2J.toml", b"")),
    "a name with a line break": lambda: of(("flags/a\n.toml", b"")),
    "a name that is not UTF-8": lambda: gzip.compress(tar((member(FLAG), b"")).replace(b"a.toml", b"\xff.toml")),
    "hard link": lambda: one(member(FLAG, kind=tarfile.LNKTYPE, linkname="namespace.toml")),
    "character device": lambda: one(member(FLAG, kind=tarfile.CHRTYPE)),
    "block device": lambda: one(member(FLAG, kind=tarfile.BLKTYPE)),
    "pipe": lambda: one(member(FLAG, kind=tarfile.FIFOTYPE)),
    "contiguous": lambda: one(member(FLAG, kind=tarfile.CONTTYPE)),
    "sparse": lambda: gzip.compress(raw(b"S", b"1", name=FLAG)),
    "some other kind": lambda: gzip.compress(raw(b"Z", b"1", name=FLAG)),
    "GNU long name": lambda: one(member("flags/" + "a" * 200 + ".toml"), form=tarfile.GNU_FORMAT),
    "GNU long name over a short one": lambda: gzip.compress(
        raw(b"L", b"flags/b.toml\0") + tar((member(FLAG, b"1"), b"1"))
    ),
    "GNU long link": lambda: gzip.compress(raw(b"K", b"x\0") + tar((member(FLAG), b""))),
    "GNU volume": lambda: gzip.compress(raw(b"V", b"") + tar((member(FLAG), b""))),
    "pax path": lambda: with_pax(path="flags/b.toml"),
    "pax path out of here": lambda: with_pax(path="../b.toml"),
    "pax link path": lambda: with_pax(linkpath="/etc/passwd"),
    "pax size": lambda: with_pax(size="0"),
    "pax character set": lambda: with_pax(hdrcharset="BINARY"),
    "pax sparse": lambda: with_pax(**{"GNU.sparse.major": "1", "GNU.sparse.name": "flags/b.toml"}),
    "pax path for all": lambda: gzip.compress(raw(b"g", pax({"path": "flags/b.toml"})) + tar((member(FLAG), b""))),
    "pax twice": lambda: gzip.compress(raw(b"x", pax({"mtime": "1"})) * 2 + tar((member(FLAG), b""))),
    "pax of nothing": lambda: gzip.compress(raw(b"x", pax({"mtime": "1"})) + bytes(1024)),
    "pax that is damaged": lambda: gzip.compress(raw(b"x", b"99 mtime=1\n") + tar((member(FLAG), b""))),
    "pax without an end": lambda: gzip.compress(raw(b"x", b"8 mtime=1") + tar((member(FLAG), b""))),
    "pax that hides a record": lambda: gzip.compress(raw(b"x", b"0 path=b\n") + tar((member(FLAG), b""))),
    "a folder with content": lambda: gzip.compress(raw(b"5", b"x" * 512, name="flags/") + bytes(1024)),
    "a link with content": lambda: gzip.compress(raw(b"2", b"x" * 512, name="link") + bytes(1024)),
    "a size in base 256": lambda: gzip.compress(base_256(tar((member(FLAG, b"1"), b"1")))),
    "a negative size": lambda: gzip.compress(resized(tar((member(FLAG, b"1"), b"1")), b"-0000000001\0")),
    "a size with an underscore": lambda: gzip.compress(resized(tar((member(FLAG, b"1"), b"1")), b"0000000_001\0")),
    "no size": lambda: gzip.compress(resized(tar((member(FLAG, b"1"), b"1")), bytes(12))),
    "a size beyond the end": lambda: gzip.compress(resized(tar((member(FLAG, b"1"), b"1")), b"00000777777\0")),
    "a wrong check sum": lambda: gzip.compress(tar((member(FLAG, b"1"), b"1")).replace(b"flags/a", b"flags/b")),
    "no gzip": lambda: tar((member(FLAG, b"1"), b"1")),
    "nothing": lambda: b"",
    "an empty gzip": lambda: gzip.compress(b""),
    "no tar": lambda: gzip.compress(b"hello"),
    "a raw zlib stream": lambda: zlib.compress(tar((member(FLAG), b""))),
    "truncated gzip": lambda: pack(vectors.A)[:-1],
    "truncated to its head": lambda: pack(vectors.A)[:12],
    "truncated tar": lambda: gzip.compress(gzip.decompress(pack(vectors.A))[:700]),
    "no end": lambda: gzip.compress(gzip.decompress(pack(vectors.A))[:-1024]),
    "garbage after the gzip": lambda: pack(vectors.A) + b"x",
    "zeros after the gzip": lambda: pack(vectors.A) + bytes(512),
    "a second gzip": lambda: pack(vectors.A) + pack(vectors.B),
    "an empty second gzip": lambda: pack(vectors.A) + gzip.compress(b""),
    "a tar in two gzips": lambda: b"".join(map(gzip.compress, in_two(tar((member(FLAG), b""))))),
    "garbage after the tar": lambda: gzip.compress(gzip.decompress(pack(vectors.A)) + b"x"),
    "a second tar": lambda: gzip.compress(gzip.decompress(pack(vectors.A)) * 2),
    "a damaged check sum of the gzip": lambda: pack(vectors.A)[:-8] + bytes(8),
}


def in_two(data: bytes) -> tuple[bytes, bytes]:
    return data[:512], data[512:]


def base_256(data: bytes) -> bytes:
    return resized(data, b"\x80" + (1).to_bytes(11, "big"))


def resized(data: bytes, size: bytes) -> bytes:
    """The first header with another size, and a check sum that holds."""
    header = bytearray(data[:512])
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(attack: str) -> None:
    with pytest.raises(BadArchive):
        unpack(ATTACKS[attack]())


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(lambda: of((FLAG, bytes(ARCHIVE_UNPACKED_BYTES_MAX))), id="one file"),
        pytest.param(lambda: of(("readme.md", bytes(ARCHIVE_UNPACKED_BYTES_MAX))), id="a file that nobody wants"),
        pytest.param(lambda: gzip.compress(resized(tar((member(FLAG), b"")), b"77777777777\0")), id="a size alone"),
        pytest.param(lambda: gzip.compress(raw(b"x", bytes(70_000))), id="a description"),
        pytest.param(lambda: gzip.compress(bytes(ARCHIVE_UNPACKED_BYTES_MAX + 1)), id="an end without end"),
        pytest.param(lambda: bytes(ARCHIVE_BYTES_MAX + 1), id="compressed"),
    ],
)
def test_a_bomb_is_refused(bomb: Callable[[], bytes]) -> None:
    with pytest.raises(ArchiveTooLarge):
        unpack(bomb())


def test_a_bomb_is_not_inflated_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted at the source, which is asked for little at a time."""
    inflated = 0
    inflate = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._machine = inflate(wbits=wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal inflated
            assert 0 < most <= 1024 * 1024
            piece = self._machine.decompress(data, most)
            inflated += len(piece)
            return piece

        def __getattr__(self, name: str) -> object:
            return getattr(self._machine, name)

    bomb = gzip.compress(bytes(4 * ARCHIVE_UNPACKED_BYTES_MAX))
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    with pytest.raises(ArchiveTooLarge):
        unpack(bomb)
    assert inflated == ARCHIVE_UNPACKED_BYTES_MAX + 1


@pytest.mark.parametrize(
    ("name", "archive"),
    [
        ("ARCHIVE_BYTES_MAX", pack(vectors.A)),
        ("ARCHIVE_PAX_BYTES_MAX", gzip.compress(raw(b"x", pax({"mtime": "1"})) + tar((member(FLAG, b"1"), b"1")))),
    ],
)
def test_bounds_are_what_is_still_allowed(monkeypatch: pytest.MonkeyPatch, name: str, archive: bytes) -> None:
    most = len(archive) if name == "ARCHIVE_BYTES_MAX" else len(pax({"mtime": "1"}))
    monkeypatch.setattr(f"seamark.manifest.tarball.{name}", most)
    assert unpack(archive).files
    monkeypatch.setattr(f"seamark.manifest.tarball.{name}", most - 1)
    with pytest.raises(ArchiveTooLarge):
        unpack(archive)


def test_the_bounds_themselves_are_allowed() -> None:
    room = ARCHIVE_UNPACKED_BYTES_MAX - 512 - 1024
    files = {FLAG: bytes(room)}
    assert tar_size(files) == ARCHIVE_UNPACKED_BYTES_MAX
    assert len(unpack(pack(files)).files[FLAG]) == room


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_our_words(data: bytes) -> None:
    for attempt in (data, gzip.compress(data), pack(vectors.A) + data):
        try:
            unpack(attempt)
        except BadArchive:
            continue
        assert attempt == pack(vectors.A) or not data.strip(b"\0")


@given(st.integers(0, 2_000), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_changes_nothing(place: int, flip: int) -> None:
    """Within the tar, so that only its own check sums help: never anything but a file of a manifest comes out."""
    plain = bytearray(gzip.decompress(pack(vectors.A)))
    plain[place] ^= flip
    try:
        files = unpack(gzip.compress(bytes(plain))).files
    except BadArchive:
        return
    for path in files:
        assert path == "namespace.toml" or path.startswith(("flags/", "segments/"))
