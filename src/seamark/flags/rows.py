"""What is kept of manifests beside the log, on the shelf: the file index of each version, and the contents, each once.

A content's row begins with the version that brought it: the start of its latest unbroken run of versions, because a commit
stores whatever the version before it did not have. So whether anybody newer needs it is seen from its row alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from seamark.errors import Corrupt
from seamark.flags import tree
from seamark.log.protocol import Put, Shelf
from seamark.manifest.closure import Index

PREFIX = "flags:"
TREES, BLOBS, FLOORS = "flags:tree", "flags:blob", "flags:floor"
_NUMBER_BYTES = 8


def stream_of(tenant: str, namespace: str) -> str:
    """The stream whose records are the versions of a namespace: a seq is a version's number."""
    return f"{PREFIX}{tenant}/{namespace}"


def owner_of(stream: str) -> tuple[str, str]:
    """Tenant and namespace of such a stream."""
    tenant, _, namespace = stream.removeprefix(PREFIX).partition("/")
    return tenant, namespace


def version_puts(stream: str, number: int, index: Index, contents: Mapping[bytes, bytes]) -> list[Put]:
    """A version's file index, and the contents that the version before did not have."""
    stamp = _number(number)
    puts = [Put(BLOBS, _blob_key(stream, digest), stamp + content) for digest, content in contents.items()]
    puts.append(Put(TREES, _tree_key(stream, number), tree.pack(index)))
    return puts


def index_of(shelf: Shelf, stream: str, number: int) -> dict[str, bytes] | None:
    """The file index of a version; None when it was pruned, or never was. Raises Corrupt."""
    packed = shelf.fetch(TREES, _tree_key(stream, number))
    return None if packed is None else tree.unpack(packed)


def content(shelf: Shelf, stream: str, digest: bytes) -> bytes:
    """The bytes with this digest, which some version of the namespace has. Raises Corrupt."""
    row = shelf.fetch(BLOBS, _blob_key(stream, digest))
    if row is None:
        where = f"{BLOBS}/{digest.hex()}"
        raise Corrupt(f"a file of {stream} is missing from the store", stream=stream, seq=0, where=where)
    return row[_NUMBER_BYTES:]


def floor(shelf: Shelf, stream: str) -> int:
    """The first version that has its file index."""
    row = shelf.fetch(FLOORS, stream.encode())
    return 1 if row is None else int.from_bytes(row, "big")


def removal(shelf: Shelf, stream: str, number: int, index: Index, following: Index) -> list[Put]:
    """What goes with the file index of the oldest version that has one; `following` is the index of the version after it."""
    needed = frozenset(following.values())
    puts = [Put(TREES, _tree_key(stream, number), None)]
    puts += [
        Put(BLOBS, _blob_key(stream, digest), None)
        for digest in frozenset(index.values()) - needed
        if _brought_by(shelf, stream, digest) <= number
    ]
    return puts


def floor_put(stream: str, number: int) -> Put:
    return Put(FLOORS, stream.encode(), _number(number))


def _brought_by(shelf: Shelf, stream: str, digest: bytes) -> int:
    row = shelf.fetch(BLOBS, _blob_key(stream, digest))
    return 0 if row is None else int.from_bytes(row[:_NUMBER_BYTES], "big")


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _tree_key(stream: str, number: int) -> bytes:
    return stream.encode() + b"\0" + _number(number)


def _blob_key(stream: str, digest: bytes) -> bytes:
    return stream.encode() + b"\0" + digest
