"""CloudEvents, from stored records. Only what differs from one record to the next is written; the payload's bytes go in as they
are stored."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from seamark.errors import BadConfig
from seamark.log.record import Record
from seamark.match.spatial import CLOUD_MARK
from seamark.match.subject import WILDCARD
from seamark.notify.clocktext import instant_text
from seamark.notify.eventtype import EventType
from seamark.notify.scalars import ENCODER

TYPE_PREFIX = "int.ecmwf.aviso."
_NAMES = msgspec.json.Decoder(list[str])
_NO_SCHEME = re.compile(
    r"[A-Za-z][A-Za-z0-9.-]*:[0-9]{1,5}"
)  # `localhost:8000`, as files of this contract often have it
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Renderer:
    """The events of one event type. `event` None: it has no schema, and records carry the names of their fields."""

    __slots__ = ("_after_id", "_after_payload", "_after_seq", "_after_time", "_key_order", "_place")

    def __init__(self, name: str, event: EventType | None, *, base_url: str) -> None:
        """Raises BadConfig when `base_url` is no address."""
        self._key_order = () if event is None else event.key_order
        self._place = None if event is None or event.place is None else event.place.name
        schema, identity, kind = map(_quoted, (dataschema(base_url, name), name, TYPE_PREFIX + name))
        self._after_payload = b'},"datacontenttype":"application/json","dataschema":"%b","id":"%b@' % (schema, identity)
        self._after_id = b'","sequence":'
        self._after_seq = b',"source":"%b","specversion":"1.0","time":"' % _quoted(base_url)
        self._after_time = b'","type":"%b"}' % kind

    def event(self, record: Record) -> bytes:
        """One compact JSON object, keys sorted."""
        seq = b"%d" % record.seq
        return b"".join(
            (
                b'{"data":{"identifier":',
                ENCODER.encode(self.identifier(record)),
                b',"payload":',
                record.payload or b"null",
                self._after_payload,
                seq,
                self._after_id,
                seq,
                self._after_seq,
                instant_text(record.ts).encode(),
                self._after_time,
            )
        )

    def identifier(self, record: Record) -> dict[str, Any]:
        """Fields and canonical values, without those that say nothing; the place as its producer wrote it."""
        subject = record.subject or ()
        names = self._key_order if record.meta is None else _NAMES.decode(record.meta)
        # Not strict: the schema may have got other keys since the record was stored.
        found: dict[str, Any] = dict(zip(names, subject, strict=False))
        if "" in subject or WILDCARD in subject:
            found = {name: value for name, value in found.items() if value not in ("", WILDCARD)}
        if self._place is not None and record.geometry is not None and record.geometry.text is not None:
            found[self._place] = _written(record.geometry.text)
        return found


def dataschema(base_url: str, name: str) -> str:
    """Where the schema of an event type is said to be. Raises BadConfig."""
    accepts = "an http:// or https:// address"
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if _NO_SCHEME.fullmatch(base_url):
        return f"{base_url}/schema/{quote(name)}"
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise BadConfig(
            f"application.base_url: {base_url!r} is not an address; accepted: {accepts}",
            name="application.base_url",
            place="file",
            accepts=accepts,
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port is None or port == _DEFAULT_PORTS[parts.scheme] else f":{port}"
    path = quote(f"{parts.path}/schema/{name}", safe="/!$%&'()*+,-.:;=@_~|[]\\^")
    return f"{parts.scheme}://{host}{shown}{path}"


def _written(text: str) -> str | msgspec.Raw:
    """A geometry as its producer wrote it: text, or JSON pairs."""
    if text[0] == "[":
        return msgspec.Raw(text.encode())
    return msgspec.Raw(text.removeprefix(CLOUD_MARK).encode()) if text.startswith(CLOUD_MARK) else text


def _quoted(text: str) -> bytes:
    """As it stands inside a JSON string."""
    return ENCODER.encode(text)[1:-1]
