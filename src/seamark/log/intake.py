"""What may come in at all: every append is measured against the limits before it is queued, so that nothing in a
group commit can fail for a reason of its own making."""

from __future__ import annotations

from collections.abc import Sequence

from seamark import limits
from seamark.errors import BadInput, RecordTooLarge
from seamark.log.protocol import Append, Put
from seamark.log.record import Draft, Geometry
from seamark.log.settings import Discard, Durability, StreamSettings

_sound = StreamSettings()  # the last that were found good: most appends bring the very same ones
_BOUNDS = ("cap_records", "cap_bytes", "ttl_ms", "latest_per_subject", "dedupe_window_ms")


def measure(append: Append) -> tuple[int, int]:
    """Bytes of the records, and of everything. Raises BadInput, RecordTooLarge."""
    global _sound
    if append.stream:
        check_text("stream name", append.stream, limits.STREAM_NAME_BYTES_MAX)
    elif append.drafts or append.key is not None or append.create is not None or append.expect_head is not None:
        raise BadInput("an append of records names a stream")
    elif not append.puts:
        raise BadInput("an append brings records or puts")
    if len(append.drafts) > limits.RECORDS_PER_APPEND_MAX:
        raise BadInput(
            f"an append has at most {limits.RECORDS_PER_APPEND_MAX} records", max=limits.RECORDS_PER_APPEND_MAX
        )
    if append.key is not None:
        check_text("idempotency key", append.key, limits.KEY_BYTES_MAX)
    if append.create is not None and append.create is not _sound:
        check_settings(append.create)
        _sound = append.create
    if not 0 <= append.stamp_bytes <= limits.STAMP_BYTES_MAX:
        raise BadInput(f"a stamp has at most {limits.STAMP_BYTES_MAX} bytes", max=limits.STAMP_BYTES_MAX)
    records_size = size = measure_drafts(append.drafts, append.stamp_bytes)
    for put in append.puts:
        size += check_put(put)
    if size > limits.COMMIT_BYTES_MAX:
        raise RecordTooLarge(
            f"an append has at most {limits.COMMIT_BYTES_MAX} bytes", bytes=size, max=limits.COMMIT_BYTES_MAX
        )
    return records_size, size


def measure_drafts(drafts: Sequence[Draft], stamp_bytes: int = 0) -> int:
    """Every draft once, quickly: this runs for each record that comes in."""
    meta_max, record_max = limits.META_BYTES_MAX + stamp_bytes, limits.RECORD_BYTES_MAX + stamp_bytes
    total = 0
    for draft in drafts:
        payload, meta, tag, node = draft.payload, draft.meta, draft.tag, draft.node
        if type(payload) is not bytes:
            raise BadInput("a payload is bytes")
        size = len(payload)
        if meta is not None:
            if type(meta) is not bytes:
                raise BadInput("meta is bytes")
            if len(meta) > meta_max:
                raise RecordTooLarge(f"meta has at most {meta_max} bytes", bytes=len(meta), max=meta_max)
            size += len(meta)
        if size > record_max:
            raise RecordTooLarge(f"a record has at most {record_max} bytes", bytes=size, max=record_max)
        if tag is not None:
            check_text("tag", tag, limits.TAG_BYTES_MAX, empty=True)
        if node is not None:
            check_text("node", node, limits.NODE_BYTES_MAX, empty=True)
        if draft.subject is not None:
            _check_subject(draft.subject)
        if draft.geometry is not None:
            _check_geometry(draft.geometry)
        total += size
    return total


def check_text(what: str, text: str, bytes_max: int, *, empty: bool = False) -> None:
    """Text that UTF-8 can hold within a bound."""
    if not isinstance(text, str):
        raise BadInput(f"the {what} is text")
    if not text and not empty:
        raise BadInput(f"the {what} is not empty")
    if text.isascii() or len(text) > bytes_max:
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise BadInput(f"the {what} has no lone surrogates") from error
    if size > bytes_max:
        raise BadInput(f"the {what} has at most {bytes_max} bytes", max=bytes_max)


def check_settings(settings: StreamSettings) -> None:
    """Types and signs; what the values mean is the surface's business."""
    bounds = (
        settings.cap_records,
        settings.cap_bytes,
        settings.ttl_ms,
        settings.latest_per_subject,
        settings.dedupe_window_ms,
    )
    for place, value in enumerate(bounds):
        if type(value) is not int or not 0 <= value <= limits.SEQ_MAX:
            name = _BOUNDS[place]
            raise BadInput(f"{name} is a whole number from 0 to {limits.SEQ_MAX}", field=name)
    if settings.ttl_ms > limits.SPAN_MS_MAX or settings.dedupe_window_ms > limits.SPAN_MS_MAX:
        # As a moment it would not fit the store, and the commit would fail for everybody in it.
        raise BadInput(f"ttl_ms and dedupe_window_ms are {limits.SPAN_MS_MAX} at the most", max=limits.SPAN_MS_MAX)
    if not isinstance(settings.durability, Durability) or not isinstance(settings.discard, Discard):
        raise BadInput("durability and discard are names from their lists")
    if type(settings.sparse) is not bool or type(settings.indexed) is not bool or type(settings.extra) is not bytes:
        raise BadInput("sparse and indexed are true or false, extra is bytes")
    if len(settings.extra) > limits.SETTINGS_EXTRA_BYTES_MAX:
        raise BadInput(
            f"extra has at most {limits.SETTINGS_EXTRA_BYTES_MAX} bytes", max=limits.SETTINGS_EXTRA_BYTES_MAX
        )


def check_put(put: Put) -> int:
    check_text("space", put.space, limits.PUT_SPACE_BYTES_MAX)
    if "\0" in put.space:
        raise BadInput("a space has no NUL")
    if type(put.key) is not bytes or len(put.key) > limits.PUT_KEY_BYTES_MAX:
        raise BadInput(f"a key is bytes, at most {limits.PUT_KEY_BYTES_MAX}", max=limits.PUT_KEY_BYTES_MAX)
    if put.value is None:
        return 0
    if type(put.value) is not bytes:
        raise BadInput("a value is bytes")
    return len(put.value)


def _check_subject(subject: tuple[str, ...]) -> None:
    if type(subject) is not tuple or len(subject) > limits.SUBJECT_TOKENS_MAX:
        raise BadInput(f"a subject has at most {limits.SUBJECT_TOKENS_MAX} tokens", max=limits.SUBJECT_TOKENS_MAX)
    try:
        whole = "".join(subject)
    except TypeError:
        whole = ""  # something in it is no text
    if whole and whole.isascii() and len(whole) <= limits.SUBJECT_BYTES_MAX:
        return  # nearly always; else it is said what is wrong with which token
    for token in subject:
        check_text("subject token", token, limits.SUBJECT_BYTES_MAX, empty=True)
    if sum(len(token.encode()) for token in subject) > limits.SUBJECT_BYTES_MAX:
        raise BadInput(f"a subject has at most {limits.SUBJECT_BYTES_MAX} bytes", max=limits.SUBJECT_BYTES_MAX)


def _check_geometry(geometry: Geometry) -> None:
    if not isinstance(geometry, Geometry):
        raise BadInput("a geometry is a Geometry")
    if geometry.text is not None:
        check_text("geometry", geometry.text, limits.GEOMETRY_BYTES_MAX, empty=True)
    for bound in (geometry.min_lat, geometry.min_lon, geometry.max_lat, geometry.max_lon):
        if type(bound) not in (float, int):
            raise BadInput("the bounds of a geometry are numbers")
