"""The first token of an installation, which no other token can have made: printed once by a person's command, or kept in a
file for programs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from seamark.access.tokens import Token, new_secret, type_of
from seamark.errors import BadConfig, SuperadminExists
from seamark.flags.audit import Author
from seamark.flags.directory import Directory, Grant
from seamark.telemetry import events
from seamark.telemetry.logs import logger

SUPERADMIN = "superadmin"
SETTING = "superadmin_token_file"
_MODE = 0o600
_MOST_BYTES = 4_096  # of a file that holds one line
_log = logger("flags")


async def bootstrap(directory: Directory, *, another: bool = False) -> tuple[Token, str]:
    """The first superadmin token; with `another` also a further one. Raises SuperadminExists."""
    there = directory.live_superadmins()
    if there and not another:
        message = "this installation has a superadmin token already; --another makes one more"
        raise SuperadminExists(message, tokens=[token.id for token in there])
    return await directory.mint(Grant(type=SUPERADMIN, name="bootstrap"), Author("bootstrap"))


def secret_in(path: Path, *, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """The secret of the file. A new one is written there when the file is missing or empty, before anybody knows it: a crash
    leaves a file that the next start takes over. Raises BadConfig for a file with anything else in it."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode("ascii", "replace").strip()
    except FileNotFoundError:
        text = ""
    if not text:
        secret = new_secret(SUPERADMIN, random_bytes)
        _write(path, secret)
        return secret
    if type_of(text) != SUPERADMIN:
        # Written over would be what somebody else may need, or what a person mistyped and then cannot log in with.
        accepts = "a file that holds one superadmin secret, or an empty or missing one, which is then written"
        message = f"{SETTING}: {path} holds something else; accepted: {accepts}"
        raise BadConfig(message, name=SETTING, place=str(path), accepts=accepts)
    return text


async def adopt(directory: Directory, secret: str) -> None:
    """See to it that the secret opens the server. One that was revoked stays so."""
    holder = directory.known(secret)
    if holder is None:
        token, _ = await directory.mint(Grant(type=SUPERADMIN, name=SETTING), Author(SETTING), secret=secret)
        _log.info(events.SUPERADMIN_ADOPTED, token=token.id)
    elif holder.token.revoked_at is not None:
        _log.warning(events.SUPERADMIN_REVOKED, token=holder.token.id)


def _write(path: Path, secret: str) -> None:
    line = f"{secret}\n".encode("ascii")
    if path.exists():  # and empty: it may be all of a mount, which cannot be replaced
        with path.open("r+b") as file:
            os.fchmod(file.fileno(), _MODE)
            _fill(file.fileno(), line)
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        _fill(number, line)
        os.rename(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(number)


def _fill(number: int, line: bytes) -> None:
    os.write(number, line)
    os.fsync(number)
