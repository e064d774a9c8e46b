"""Tokens that a service which we trust has signed with a secret that we share (JWT, HS256), and the users behind them."""

from __future__ import annotations

import jwt
import msgspec
from jwt.algorithms import HMACAlgorithm

from seamark import limits
from seamark.access.user import User
from seamark.clock import NS_PER_SECOND, Clock
from seamark.errors import BadConfig, Unauthenticated
from seamark.kinds import Secret

ALGORITHM = "HS256"
INVALID = "Invalid or expired token"  # the same words whatever is wrong: why helps only those who make tokens up


class _Claims(msgspec.Struct):
    """What counts of a token. Others, the audience among them, are left unread."""

    exp: int | float
    username: str | None = None
    sub: str | None = None
    realm: str | None = None
    roles: list[str] = []
    attributes: dict[str, object] = {}


class _Hmac(HMACAlgorithm):
    """The contract sets no least length for the secret, and a warning for every request helps nobody."""

    def check_key_length(self, key: bytes) -> str | None:
        return None


_CLAIMS = msgspec.json.Decoder(_Claims)


class Tokens:
    """Raises BadConfig for a secret that cannot be one."""

    def __init__(self, secret: Secret, clock: Clock, *, place: str = "") -> None:
        self._secret = secret.reveal().encode()
        self._clock = clock
        algorithm = _Hmac(_Hmac.SHA256)
        # Whatever a token says of itself, there is this one algorithm: neither "none" nor a public key taken for a secret.
        self._jws = jwt.PyJWS(algorithms=[ALGORITHM])
        self._jws.unregister_algorithm(ALGORITHM)
        self._jws.register_algorithm(ALGORITHM, algorithm)
        try:
            algorithm.prepare_key(self._secret)
        except jwt.InvalidKeyError:
            accepts = "the text that tokens are signed with, not a key pair's or a JWK"
            message = f"auth.jwt_secret ({place}): it is not valid; accepted: {accepts}"
            raise BadConfig(message, name="auth.jwt_secret", place=place, accepts=accepts) from None

    def user(self, token: str) -> User:
        """Who the token is about. Raises Unauthenticated."""
        if len(token) > limits.TOKEN_BYTES_MAX:
            raise Unauthenticated(INVALID)
        try:
            claims = _CLAIMS.decode(self._jws.decode(token, self._secret, algorithms=[ALGORITHM]))
        except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, RecursionError):
            raise Unauthenticated(INVALID) from None
        expires = claims.exp + limits.TOKEN_LEEWAY_SECONDS
        if expires < self._clock.now_ns() / NS_PER_SECOND:
            raise Unauthenticated(INVALID)
        name = claims.sub if claims.username is None else claims.username
        if not name:
            raise Unauthenticated(INVALID)
        return User(name=name, realm=claims.realm or "", roles=frozenset(claims.roles), attributes=claims.attributes)
