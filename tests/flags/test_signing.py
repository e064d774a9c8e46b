from __future__ import annotations

import hashlib
import hmac
import stat
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.errors import BadConfig, ClosureTokenInvalid
from seamark.flags.signing import Claim, Signer, key_in, message

KEY = bytes(range(32))
CLAIM = Claim("tok_01HV5XK1EFQT8N3JRDCP7MW04A", "acme", "billing", 42, "checkout-redesign")
EXPIRES_AT = 1_767_225_660


def clock(at: float) -> ManualClock:
    return ManualClock(int(at * 1_000_000_000))


def check(signer: Signer, token: str, claim: Claim = CLAIM) -> str:
    return signer.principal_of(
        token,
        tenant=claim.tenant,
        namespace=claim.namespace,
        version=claim.version,
        subscription=claim.subscription,
    )


def test_the_vector() -> None:
    signed = message(CLAIM, EXPIRES_AT)
    assert len(signed) == 112
    mac = "e6ef54f3882af6cb309369c9fce8bfdc7efbc1e8f6702d2ad9d8eb0d988194c5"
    assert hmac.new(KEY, signed, hashlib.sha256).hexdigest() == mac
    said = urlsafe_b64encode(f"{CLAIM.principal}\n{EXPIRES_AT}".encode()).rstrip(b"=").decode()
    assert Signer(KEY, clock(EXPIRES_AT - 60)).sign(CLAIM) == f"{said}.{mac}"


def test_a_token_says_whom_it_was_made_for() -> None:
    signer = Signer(KEY, clock(1_000))
    assert check(signer, signer.sign(CLAIM)) == CLAIM.principal


def test_another_process_with_the_same_key_agrees_and_one_with_another_does_not() -> None:
    token = Signer(KEY, clock(1_000)).sign(CLAIM)
    assert check(Signer(KEY, clock(1_000)), token) == CLAIM.principal
    with pytest.raises(ClosureTokenInvalid):
        check(Signer(bytes(32), clock(1_000)), token)


def test_a_token_is_good_for_a_minute() -> None:
    time = clock(1_000)
    signer = Signer(KEY, time)
    token = signer.sign(CLAIM)
    time.advance(59.999)
    assert check(signer, token)
    time.advance(0.001)
    with pytest.raises(ClosureTokenInvalid):
        check(signer, token)


@pytest.mark.parametrize(
    "other",
    [
        CLAIM._replace(tenant="acm"),
        CLAIM._replace(namespace="growth"),
        CLAIM._replace(version=43),
        CLAIM._replace(version=4),
        CLAIM._replace(subscription="*"),
        CLAIM._replace(subscription="checkout-redesig"),
        CLAIM._replace(tenant="acmeb", namespace="illing"),
    ],
)
def test_a_token_opens_nothing_else(other: Claim) -> None:
    signer = Signer(KEY, clock(1_000))
    with pytest.raises(ClosureTokenInvalid):
        check(signer, signer.sign(CLAIM), other)


@given(st.integers(0), st.integers(1, 127))
def test_a_token_that_was_touched_opens_nothing(place: int, flip: int) -> None:
    signer = Signer(KEY, clock(1_000))
    token = bytearray(signer.sign(CLAIM).encode())
    token[place % len(token)] ^= flip
    with pytest.raises(ClosureTokenInvalid):
        check(signer, token.decode())


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(ClosureTokenInvalid):
        check(Signer(KEY, clock(1_000)), text)


@pytest.mark.parametrize("ending", ["=", "\n", "%", " ", "A", ".", "\udc80"])
def test_what_comes_after_a_token_makes_it_another(ending: str) -> None:
    signer = Signer(KEY, clock(1_000))
    said, _, mac = signer.sign(CLAIM).partition(".")
    for token in (f"{said}.{mac}{ending}", f"{said}{ending}.{mac}"):
        with pytest.raises(ClosureTokenInvalid):
            check(signer, token)


def test_a_later_expiry_needs_the_key() -> None:
    signer = Signer(KEY, clock(1_000))
    mac = signer.sign(CLAIM).partition(".")[2]
    said = urlsafe_b64encode(f"{CLAIM.principal}\n9999999999".encode()).rstrip(b"=").decode()
    with pytest.raises(ClosureTokenInvalid):
        check(signer, f"{said}.{mac}")


# -- the key


def test_a_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "below" / "signing.key"
    asked: list[int] = []

    def random_bytes(size: int) -> bytes:
        asked.append(size)
        return b"r" * size

    assert key_in(path, random_bytes) == key_in(path, random_bytes) == b"r" * 32
    assert asked == [32]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_of_two_who_make_a_key_the_first_wins(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"

    def beaten(size: int) -> bytes:
        path.write_bytes(b"1" * size)
        return b"2" * size

    assert key_in(path, beaten) == b"1" * 32


@pytest.mark.parametrize("content", [b"", b"x" * 31])
def test_a_key_that_is_too_short_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "signing.key"
    path.write_bytes(content)
    with pytest.raises(BadConfig, match="signing_key"):
        key_in(path, bytes)


def test_a_key_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="signing_key"):
        key_in(tmp_path, bytes)
