"""Reading a tar.gz in memory, one member at a time, without ever inflating more than is allowed.

Only what plain archives are made of is read. Whatever lets two readers see two different archives is refused: names or
sizes that are given a second time (pax, GNU long names), sparse files, a second gzip member, bytes after the end.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import Enum
from tarfile import BLOCKSIZE
from typing import NamedTuple

from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import ARCHIVE_BYTES_MAX, ARCHIVE_PAX_BYTES_MAX, ARCHIVE_UNPACKED_BYTES_MAX, MIB

_GZIP = 31  # zlib's word for: a gzip header, and its check sum at the end
_FEED_BYTES = 64 * 1024
_NOTHING = bytes(BLOCKSIZE)
_POSIX = b"ustar\x0000"
_HARMLESS = frozenset({"atime", "charset", "comment", "ctime", "gid", "gname", "mtime", "uid", "uname"})
_HARMLESS_VENDORS = ("LIBARCHIVE.", "SCHILY.")


class Kind(Enum):
    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a symbolic link"


class Member(NamedTuple):
    path: str  # without `./` in front or `/` behind; empty for the root itself
    kind: Kind
    content: bytes


_KINDS = {b"0": Kind.FILE, b"\0": Kind.FILE, b"5": Kind.FOLDER, b"2": Kind.LINK}
_REFUSED = {
    b"1": "a hard link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"L": "a long name",
    b"K": "a long link",
    b"S": "a sparse file",
}


class _Inflated:
    """The bytes inside the gzip, as far as somebody asked for them."""

    def __init__(self, data: bytes) -> None:
        self._machine = zlib.decompressobj(wbits=_GZIP)
        self._data = memoryview(data)
        self._fed = 0
        self._tail = b""
        self._left = ARCHIVE_UNPACKED_BYTES_MAX
        self._ready = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next bytes; fewer only at the end."""
        pieces = []
        while size:
            if self._at == len(self._ready) and not self._more():
                break
            piece = self._ready[self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _more(self) -> bool:
        while not self._machine.eof:
            if not self._tail:
                if self._fed == len(self._data):
                    raise BadArchive("the archive ends too early")
                self._tail = bytes(self._data[self._fed : self._fed + _FEED_BYTES])
                self._fed += len(self._tail)
            try:
                self._ready = self._machine.decompress(self._tail, min(MIB, self._left + 1))
            except zlib.error as error:
                raise BadArchive("the archive is not gzip, or is damaged") from error
            self._tail = self._machine.unconsumed_tail
            self._at = 0
            self._left -= len(self._ready)
            if self._left < 0:
                raise ArchiveTooLarge("the archive unpacks to too much", max=ARCHIVE_UNPACKED_BYTES_MAX)
            if self._ready:
                return True
        if self._machine.unused_data or self._fed < len(self._data):
            raise BadArchive("the archive goes on after its end")
        return False


def members(data: bytes) -> Iterator[Member]:
    """The files, folders and symbolic links of an archive, in its order. Raises BadArchive, ArchiveTooLarge; also after
    members were handed out, so take none of them before all of them came."""
    if len(data) > ARCHIVE_BYTES_MAX:
        raise ArchiveTooLarge("the archive is too large", max=ARCHIVE_BYTES_MAX)
    inflated = _Inflated(data)
    described = False  # the header before this one was about this one
    while (header := inflated.take(BLOCKSIZE)) != _NOTHING:
        if len(header) != BLOCKSIZE or not _is_sound(header):
            raise BadArchive("the archive is not a tar, or is damaged")
        kind, size = header[156:157], _size_of(header)
        if kind in (b"x", b"g"):
            if described and kind == b"x":
                raise BadArchive("the archive describes a member twice")
            _check_pax(_content(inflated, size, most=ARCHIVE_PAX_BYTES_MAX))
            described = described or kind == b"x"
            continue
        described = False
        yield _member(header, kind, size, inflated)
    if described:
        raise BadArchive("the archive describes a member that is not there")
    while rest := inflated.take(MIB):
        if rest.strip(b"\0"):
            raise BadArchive("the archive goes on after its end")


def _member(header: bytes, kind: bytes, size: int, inflated: _Inflated) -> Member:
    name = _name_of(header)
    if kind in _REFUSED or kind not in _KINDS:
        raise BadArchive(f"the archive holds {_REFUSED.get(kind, 'something else than files')}", member=name)
    found = _KINDS[kind]
    if found is Kind.FILE and name.endswith("/"):
        found = Kind.FOLDER  # as the oldest tars say it
    if found is not Kind.FILE and size:
        raise BadArchive(f"{found.value} has no content", member=name)
    return Member(clean_path(name), found, _content(inflated, size, most=ARCHIVE_UNPACKED_BYTES_MAX))


def _content(inflated: _Inflated, size: int, *, most: int) -> bytes:
    if size > most:
        raise ArchiveTooLarge("a member of the archive is too large", max=most)
    content = inflated.take(size)
    padding = inflated.take(-size % BLOCKSIZE)
    if len(content) < size or len(padding) < -size % BLOCKSIZE:
        raise BadArchive("the archive ends too early")
    return content


def _is_sound(header: bytes) -> bool:
    """Whether the header's check sum holds; it is made as if it were eight spaces itself."""
    return _octal(header[148:156]) == sum(header) - sum(header[148:156]) + 8 * 0x20


def _octal(digits: bytes) -> int | None:
    digits = digits.strip(b"\0 ")
    return None if not digits or digits.strip(b"01234567") else int(digits, 8)


def _size_of(header: bytes) -> int:
    size = _octal(header[124:136])
    if size is None:
        raise BadArchive("a member of the archive has no plain size")
    return size


def _name_of(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:265] == _POSIX else b""
    try:
        return (prefix + b"/" + name if prefix else name).decode()
    except UnicodeDecodeError:
        raise BadArchive("the name of a member is not UTF-8") from None


def clean_path(name: str) -> str:
    """Where a member belongs, seen from the root. Raises BadArchive when that is not plain, or outside."""
    parts = name.removesuffix("/").split("/")
    if parts[0] == ".":
        del parts[0]
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or not name.isprintable():
        raise BadArchive(f"the archive holds a path that is not allowed: {name!a}", member=name)
    return "/".join(parts)


def _check_pax(block: bytes) -> None:
    """What is said beside a header may be about times and owners, never about name, size or kind."""
    while block:
        length, _, _ = block.partition(b" ")
        size = int(length) if length.isdigit() and len(length) < 7 else 0
        record, block = block[:size], block[size:]
        key, equals, _ = record[len(length) + 1 :].partition(b"=")
        if len(record) < size or not size or not equals or not record.endswith(b"\n"):
            raise BadArchive("what the archive says about a member is damaged")
        name = key.decode("utf-8", "replace")
        if name not in _HARMLESS and not name.startswith(_HARMLESS_VENDORS):
            raise BadArchive(f"the archive says {name!a} of a member, beside its header")
