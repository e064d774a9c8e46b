"""A manifest as it is uploaded: a form with one field, in it an archive, in it the files. Nothing of it is trusted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from multipart import MultipartError, PushMultipartParser, parse_options_header

from seamark import limits
from seamark.errors import ArchiveTooLarge, BadRequest, BodyTooLarge, Busy, UnsupportedMedia
from seamark.flags.problem import flags_problem
from seamark.flags.seats import Seats
from seamark.manifest.archive import Unpacked, unpack
from seamark.wire.exchange import Exchange, Headers

FIELD = "archive"
BODY_BYTES_MAX = limits.ARCHIVE_BYTES_MAX + limits.FORM_BYTES_MAX


def upload_problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    """Where the body is an archive and little else, a body that is too large is an archive that is."""
    if isinstance(error, BodyTooLarge):
        error = too_large()
    return flags_problem(error, request_id)


def too_large() -> ArchiveTooLarge:
    most = limits.ARCHIVE_BYTES_MAX
    return ArchiveTooLarge(f"the archive is larger than {most} bytes", max=most)


class Uploads:
    """A few manifests at a time, from the archive to the version, and one of each tenant: what an archive is inflated to and
    what it means may take a hundred times its size."""

    def __init__(self) -> None:
        self._seats = Seats(limits.UPLOADS_AT_ONCE)
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def unpacked(self, exchange: Exchange, tenant: str) -> AsyncIterator[Unpacked]:
        """The files of the manifest in the body, and room to work on them. Raises UnsupportedMedia, BadRequest, BadArchive,
        ArchiveTooLarge, Busy."""
        archive = archive_in(exchange)
        async with self.room(tenant):
            yield await asyncio.to_thread(unpack, archive)

    @asynccontextmanager
    async def room(self, tenant: str) -> AsyncIterator[None]:
        """To work on the files of a manifest. Raises Busy."""
        for count, most in (
            (self._waiting[tenant], limits.UPLOADS_PER_TENANT_MAX),
            (self._waiting.total(), limits.UPLOADS_WAITING_MAX),
        ):
            if count >= most:
                raise Busy("too many uploads wait to be looked at", limit="uploads", max=most)
        self._waiting[tenant] += 1
        try:
            async with self._seats.of(tenant):
                yield
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]


def archive_in(exchange: Exchange) -> bytes:
    """The one field of the form. Raises UnsupportedMedia, BadRequest, ArchiveTooLarge."""
    found: list[bytes] = []
    parts: list[bytes] | None = None
    try:
        with PushMultipartParser(
            _boundary(exchange),
            max_header_count=limits.FORM_HEADERS_MAX,
            max_segment_count=limits.FORM_FIELDS_MAX,
            strict=True,
        ) as parser:
            for event in parser.parse(exchange.body):
                if event is None:
                    if parts is not None:
                        found.append(b"".join(parts))
                        parts = None
                elif isinstance(event, bytes | bytearray):
                    if parts is not None:
                        parts.append(bytes(event))
                else:
                    parts = [] if event.name == FIELD else None
    except (MultipartError, UnicodeError) as error:
        raise BadRequest(f"the body is no multipart/form-data: {error}") from None
    if len(found) != 1:
        raise BadRequest(f"the form must have one field {FIELD!r} with a tar.gz in it, not {len(found)}", name=FIELD)
    if len(found[0]) > limits.ARCHIVE_BYTES_MAX:
        raise too_large()
    return found[0]


def _boundary(exchange: Exchange) -> str:
    media, options = parse_options_header((exchange.header(b"content-type") or b"").decode("latin-1"))
    if media != "multipart/form-data":
        raise UnsupportedMedia(f"the body must be sent as multipart/form-data with one field {FIELD!r}")
    boundary: str = options.get("boundary", "")
    if not boundary:
        raise BadRequest("the Content-Type names no boundary")
    return boundary
