"""Which of ten thousand buckets an entity is in. The one place that knows: the contract leaves the function open, so another may
take its place here, and nothing but evaluation would change."""

from __future__ import annotations

from hashlib import sha256

BUCKETS = 10_000


def bucket_of(salt: str, entity_id: str) -> int:
    """A number from 0 to 9999, the same for the same salt and entity everywhere and for ever."""
    digest = sha256(f"{salt}:{entity_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS
