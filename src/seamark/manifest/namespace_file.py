"""`namespace.toml`: what holds for all flags of a namespace, and which environments there are if it says so."""

from __future__ import annotations

from seamark.manifest.document import SCHEMA_VERSION, Document
from seamark.manifest.model import Environment, Namespace
from seamark.manifest.paths import is_environment, is_slug
from seamark.manifest.reading import Piece, Reading, Spot, quoted

_TOP = frozenset({SCHEMA_VERSION, "namespace"})
_FIELDS = frozenset(
    {
        "slug",
        "display_name",
        "description",
        "telemetry_enabled",
        "private_attributes",
        "raw_entity_ids",
        "environments",
    }
)
_ENVIRONMENT = frozenset({"display_name", "public_evaluate"})


def read_namespace(document: Document, reading: Reading) -> Piece:
    """The namespace, or what is wrong with it. Its slug is empty where the file names none."""
    top = Spot("namespace", "")
    table = document.table or {}
    reading.only(table, _TOP, top)
    fields = reading.table(table, "namespace", top) or {}
    spot = Spot("namespace", "namespace")
    reading.only(fields, _FIELDS, spot)
    slug = reading.text(fields, "slug", spot)
    if slug is not None and not is_slug(slug):
        reading.say("E032", spot, f"{quoted(slug)} cannot be the slug of a namespace", "slug")
    namespace = Namespace(
        slug=slug or "",
        display_name=reading.text(fields, "display_name", spot) or "",
        description=reading.text(fields, "description", spot) or "",
        telemetry_enabled=reading.boolean(fields, "telemetry_enabled", spot, default=True),
        private_attributes=reading.texts(fields, "private_attributes", spot),
        raw_entity_ids=reading.boolean(fields, "raw_entity_ids", spot, default=False),
        environments=_environments(fields, reading, spot),
    )
    return reading.piece(namespace, document.version)


def _environments(fields: dict[str, object], reading: Reading, above: Spot) -> dict[str, Environment] | None:
    table = reading.table(fields, "environments", above)
    if table is None:
        return None
    found = {}
    spot = Spot(above.words, above.of("environments"))
    for name in table:
        if not is_environment(name):
            reading.say("E032", spot, f"{quoted(name)} cannot be the name of an environment", name)
        inner = reading.table(table, name, spot) or {}
        here = Spot(f"namespace environment {quoted(name)}", spot.of(name))
        reading.only(inner, _ENVIRONMENT, here)
        found[name] = Environment(
            reading.text(inner, "display_name", here) or "",
            reading.boolean(inner, "public_evaluate", here, default=False),
        )
    return found
