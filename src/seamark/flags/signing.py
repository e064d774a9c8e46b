"""Signed closure tokens: they let whoever was sent to a closure fetch that one, for a minute, without anything else."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from seamark.clock import NS_PER_SECOND, Clock
from seamark.errors import BadConfig, ClosureTokenInvalid
from seamark.limits import CLOSURE_TOKEN_SECONDS

KEY_BYTES = 32
KEY_FILE = "signing.key"
_PURPOSE = "exd-closure-v1"
_LENGTH = Struct(">I").pack


class Claim(NamedTuple):
    """What one token opens. `subscription` is in canonical form."""

    principal: str
    tenant: str
    namespace: str
    version: int
    subscription: str


class Signer:
    """Makes tokens and checks them. Those of another process are good if its key is the same."""

    __slots__ = ("_clock", "_key")

    def __init__(self, key: bytes, clock: Clock) -> None:
        assert len(key) >= KEY_BYTES, "a key that can be guessed signs nothing"
        self._key = key
        self._clock = clock

    def sign(self, claim: Claim) -> str:
        """A token that is good from now on, for as long as the contract says."""
        return self._token(claim, self._clock.now_ns() // NS_PER_SECOND + CLOSURE_TOKEN_SECONDS)

    def principal_of(self, token: str, *, tenant: str, namespace: str, version: int, subscription: str) -> str:
        """Whom the token was made for, if it opens exactly this. Raises ClosureTokenInvalid, always in the same words."""
        try:
            said = token.partition(".")[0].encode("ascii")
            principal, _, expiry = urlsafe_b64decode(said + b"==").decode("ascii").rpartition("\n")
            expires_at = int(expiry) if expiry.isdigit() and len(expiry) < 19 else -1
        except (binascii.Error, ValueError):
            principal, expires_at = "", -1
        expected = self._token(Claim(principal, tenant, namespace, version, subscription), expires_at)
        good = hmac.compare_digest(expected.encode(), token.encode("utf-8", "surrogatepass"))
        if not good or self._clock.now_ns() >= expires_at * NS_PER_SECOND:
            raise ClosureTokenInvalid("the token is not good for this closure, or not any more")
        return principal

    def _token(self, claim: Claim, expires_at: int) -> str:
        said = urlsafe_b64encode(f"{claim.principal}\n{expires_at}".encode()).rstrip(b"=").decode()
        return f"{said}.{self._mac(claim, expires_at)}"

    def _mac(self, claim: Claim, expires_at: int) -> str:
        return hmac.new(self._key, message(claim, expires_at), hashlib.sha256).hexdigest()


def message(claim: Claim, expires_at: int) -> bytes:
    """What is signed: every part behind its length, so that none can reach into the next."""
    parts = (_PURPOSE, *claim[:3], str(claim.version), claim.subscription, str(expires_at))
    return b"".join(_LENGTH(len(part)) + part for part in map(str.encode, parts))


def key_in(path: Path, random_bytes: Callable[[int], bytes]) -> bytes:
    """The key in a file, which is made if it is not there. Raises BadConfig."""
    try:
        if not path.exists():
            _make(path, random_bytes(KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise _refusal(path, (error.strerror or "it cannot be used").lower()) from None
    if len(key) < KEY_BYTES:
        raise _refusal(path, f"it holds {len(key)} bytes")
    return key


def _make(path: Path, key: bytes) -> None:
    """Under another name first, and then at once: nobody reads half a key, and of two who make one the first wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _refusal(path: Path, why: str) -> BadConfig:
    accepts = f"a file with at least {KEY_BYTES} secret bytes, or a place where one can be made"
    return BadConfig(f"signing_key: {path}: {why}", name="signing_key", place=str(path), accepts=accepts)
