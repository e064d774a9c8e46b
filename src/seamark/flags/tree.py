"""The file index of a version as stored bytes: every path with the digest of its content, in path order."""

from __future__ import annotations

import struct

from seamark.manifest.closure import Index

_LENGTH = struct.Struct(">H")
_DIGEST_BYTES = 32


def pack(index: Index) -> bytes:
    """Equal indexes give equal bytes."""
    parts: list[bytes] = []
    for path, digest in sorted((path.encode(), digest) for path, digest in index.items()):
        assert len(digest) == _DIGEST_BYTES
        parts += _LENGTH.pack(len(path)), path, digest
    return b"".join(parts)


def unpack(packed: bytes) -> dict[str, bytes]:
    """What `pack` was given. The store's checksum has vouched for the bytes."""
    index: dict[str, bytes] = {}
    at, end = 0, len(packed)
    while at < end:
        path_end = at + _LENGTH.size + int.from_bytes(packed[at : at + _LENGTH.size], "big")
        index[packed[at + _LENGTH.size : path_end].decode()] = packed[path_end : path_end + _DIGEST_BYTES]
        at = path_end + _DIGEST_BYTES
    assert at == end
    return index
