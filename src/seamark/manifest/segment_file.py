"""`segments/<key>.toml`: a named audience, by a predicate, a share of all entities, or both."""

from __future__ import annotations

from typing import Any

from seamark.manifest.bucket import BUCKETS
from seamark.manifest.document import SCHEMA_VERSION, Document
from seamark.manifest.grammar import read_predicate
from seamark.manifest.model import Bucket, Segment
from seamark.manifest.reading import Piece, Reading, Spot, Use, quoted

_TOP = frozenset({SCHEMA_VERSION, "segment"})
_FIELDS = frozenset({"description", "predicate", "bucket"})
_BUCKET = frozenset({"entity_id_attribute", "salt", "start", "end"})


def read_segment(key: str, document: Document, reading: Reading) -> Piece:
    """The segment, or what is wrong with it."""
    top = Spot(f"segment {quoted(key)}", "")
    table = document.table or {}
    reading.only(table, _TOP, top)
    spot = Spot(top.words, "segment")
    fields = reading.table(table, "segment", top)
    if fields is None:
        if "segment" not in table:
            reading.say("E909", top, "there is no [segment]")
        return reading.piece(None, document.version)
    reading.only(fields, _FIELDS, spot)
    description = reading.text(fields, "description", spot) or ""
    if not description:
        reading.say("I003", spot, "there is no description")
    if "predicate" not in fields and "bucket" not in fields:
        reading.say("E011", spot, "there is neither a predicate nor a bucket")
    predicate = None
    if "predicate" in fields:
        predicate = read_predicate(fields["predicate"], reading, Spot(top.words, "segment.predicate"))
    bucket = _bucket(key, fields, reading, spot)
    named = frozenset(mention.name for mention in reading.segments)
    return reading.piece(Segment(key, predicate, bucket, description, named), document.version)


def _bucket(key: str, fields: dict[str, Any], reading: Reading, above: Spot) -> Bucket | None:
    table = reading.table(fields, "bucket", above)
    if table is None:
        return None
    spot = Spot(above.words, above.of("bucket"))
    reading.only(table, _BUCKET, spot)
    attribute = table.get("entity_id_attribute")
    if not isinstance(attribute, str) or not attribute:
        reading.say("E006", spot, "'entity_id_attribute' has to be a non-empty string", "entity_id_attribute")
        attribute = ""
    else:
        reading.uses.append(Use(attribute, "text", Spot(spot.words, spot.of("entity_id_attribute"))))
    salt = reading.text(table, "salt", spot)
    if not salt and ("salt" not in table or salt == ""):
        reading.say("W004", spot, "there is no salt; the key of the segment is used", "salt")
    start, end = _edge(table, "start", reading, spot), _edge(table, "end", reading, spot)
    if start is None or end is None:
        return None
    if start > end:
        reading.say("E006", spot, f"the range starts at {start}, after its end at {end}")
    return Bucket(attribute, salt or key, start, end)


def _edge(table: dict[str, Any], name: str, reading: Reading, spot: Spot) -> int | None:
    value = table.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < BUCKETS:
        return value
    reading.say("E006", spot, f"{quoted(name)} has to be an integer from 0 to {BUCKETS - 1}", name)
    return None
