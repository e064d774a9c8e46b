"""The seal on every stored value: eight bytes of checksum over key and body, so that neither can change unnoticed."""

from __future__ import annotations

import struct

from xxhash import xxh3_64_intdigest

Buffer = bytes | bytearray | memoryview

SEAL = struct.Struct(">Q")


class Damaged(Exception):
    """A value does not match its seal, or its inside makes no sense. Never leaves the log: it becomes `Corrupt`."""


def checksum(key: bytes, body: Buffer) -> int:
    """The key is the seed's source, so that a value filed under another key is damaged too."""
    return xxh3_64_intdigest(body, seed=xxh3_64_intdigest(key))


def seal(key: bytes, body: Buffer) -> bytes:
    return SEAL.pack(checksum(key, body)) + body


def unseal(key: bytes, value: Buffer) -> memoryview:
    """The body, once proven."""
    if len(value) < SEAL.size:
        raise Damaged("shorter than its seal")
    body = memoryview(value)[SEAL.size :]
    if SEAL.unpack_from(value)[0] != checksum(key, body):
        raise Damaged("checksum")
    return body
