"""`flags/<key>.toml`: a flag, its variants, and which of them whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.manifest.document import SCHEMA_VERSION, Document
from seamark.manifest.grammar import read_predicate, read_segment_ref
from seamark.manifest.model import Block, Flag, Rule
from seamark.manifest.paths import CATCH_ALL, is_environment
from seamark.manifest.predicate import Node
from seamark.manifest.reading import Mention, Piece, Reading, Spot, quoted
from seamark.manifest.variant import TYPES, refusal

_TOP = frozenset({SCHEMA_VERSION, "flag"})
_FIELDS = frozenset(
    {"type", "description", "owner", "lifecycle", "tags", "private_attributes", "variants", "environments"}
)
_BLOCK = frozenset({"variant", "rules", "testing"})
_RULE = frozenset({"description", "segment", "predicate", "variant"})
_LIFECYCLES = ("development", "active", "retired")
RETIRED = "retired"


def read_flag(key: str, document: Document, reading: Reading) -> Piece:
    """The flag, or what is wrong with it."""
    words = f"flag {quoted(key)}"
    top, spot = Spot(words, ""), Spot(words, "flag")
    table = document.table or {}
    reading.only(table, _TOP, top)
    fields = reading.table(table, "flag", top)
    if fields is None:
        if "flag" not in table:
            reading.say("E909", top, "there is no [flag]")
        return reading.piece(None, document.version)
    reading.only(fields, _FIELDS, spot)
    kind = _kind(fields, reading, spot)
    variants = _variants(fields, kind, reading, spot)
    environments = _environments(fields, variants, reading, spot)
    flag = Flag(
        key,
        kind,
        variants or {},
        environments,
        description=reading.text(fields, "description", spot) or "",
        owner=reading.text(fields, "owner", spot) or "",
        lifecycle=_lifecycle(fields, reading, spot),
        tags=reading.texts(fields, "tags", spot),
        private_attributes=reading.texts(fields, "private_attributes", spot),
        segments=frozenset([mention.name for mention in reading.segments]),
    )
    _advise(flag, reading, spot)
    return reading.piece(flag, document.version)


def _kind(fields: Mapping[str, Any], reading: Reading, spot: Spot) -> str:
    """The type, or nothing where there is none that could be."""
    kind = fields.get("type")
    if isinstance(kind, str) and kind in TYPES:
        return kind
    reading.say("E014", spot, f"'type' has to be one of {', '.join(map(quoted, TYPES))}", "type")
    return ""


def _lifecycle(fields: Mapping[str, Any], reading: Reading, spot: Spot) -> str:
    word = reading.text(fields, "lifecycle", spot)
    if word is not None and word not in _LIFECYCLES:
        reading.say("E902", spot, f"'lifecycle' has to be one of {', '.join(map(quoted, _LIFECYCLES))}", "lifecycle")
    return word or "active"


def _variants(fields: Mapping[str, Any], kind: str, reading: Reading, above: Spot) -> dict[str, Any] | None:
    """None where it cannot be said which variants there are."""
    table = reading.table(fields, "variants", above)
    if table is None:
        if "variants" not in fields:
            reading.say("E909", above, "there is no [flag.variants]")
        return None
    if not table:
        reading.say("E909", above, "[flag.variants] needs at least one variant", "variants")
        return None
    spot = Spot(above.words, above.of("variants"))
    for name, value in table.items() if kind else ():
        why = refusal(kind, value)
        if why is not None:
            reading.say("E903", spot, f"variant {quoted(name)} {why}", name)
    return table


def _environments(
    fields: Mapping[str, Any], variants: Mapping[str, Any] | None, reading: Reading, above: Spot
) -> dict[str, Block]:
    table = reading.table(fields, "environments", above)
    if table is None or CATCH_ALL not in table:
        if table is not None or "environments" not in fields:
            reading.say("E037", above, "there is no [flag.environments._]")
        if table is None:
            return {}
    spot = Spot(above.words, above.of("environments"))
    blocks = {}
    for name in table:
        block = reading.table(table, name, spot)
        here = Spot(above.words if name == CATCH_ALL else f"{above.words} environment {quoted(name)}", spot.of(name))
        if name != CATCH_ALL:
            if is_environment(name):
                reading.environments.append(Mention(name, here))
            else:
                reading.say("E032", spot, f"{quoted(name)} cannot be the name of an environment", name)
        if block is not None:
            blocks[name] = _block(block, variants, reading, here)
    catch_all = table.get(CATCH_ALL)
    if isinstance(catch_all, dict):
        here = Spot(above.words, spot.of(CATCH_ALL))
        if "variant" not in catch_all:
            reading.say("E038", here, "the block for '_' needs a variant")
        if "testing" in catch_all:
            reading.say("E039", here, "the block for '_' cannot be for testing", "testing")
    return blocks


def _block(table: Mapping[str, Any], variants: Mapping[str, Any] | None, reading: Reading, spot: Spot) -> Block:
    reading.only(table, _BLOCK, spot)
    variant = _variant(table, variants, reading, spot)
    testing = reading.boolean(table, "testing", spot, default=False)
    declared = table.get("rules")
    if declared is None:
        return Block(variant, None, testing)
    if not isinstance(declared, list):
        reading.say("E908", spot, "'rules' has to be an array of tables", "rules")
        return Block(variant, (), testing)
    rules = []
    for place, rule in enumerate(declared):
        here = Spot(f"{spot.words} rule[{place}]", f"{spot.location}.rules[{place}]")
        if not isinstance(rule, dict):
            reading.say("E908", here, "a rule has to be a table")
        elif (read := _rule(rule, variants, reading, here)) is not None:
            rules.append(read)
    return Block(variant, tuple(rules), testing)


def _rule(table: Mapping[str, Any], variants: Mapping[str, Any] | None, reading: Reading, spot: Spot) -> Rule | None:
    reading.only(table, _RULE, spot)
    description = reading.text(table, "description", spot) or ""
    variant = _variant(table, variants, reading, spot)
    if "variant" not in table:
        reading.say("E909", spot, "a rule needs a variant")
    if ("segment" in table) == ("predicate" in table):
        reading.say("E036", spot, "a rule has either a segment or a predicate")
    audience: Node | None = None
    if "segment" in table:
        audience = read_segment_ref(table["segment"], reading, spot)
    if "predicate" in table:
        audience = read_predicate(table["predicate"], reading, Spot(spot.words, spot.of("predicate")))
    return None if audience is None or variant is None else Rule(audience, variant, description)


def _variant(table: Mapping[str, Any], variants: Mapping[str, Any] | None, reading: Reading, spot: Spot) -> str | None:
    """The variant that a block or a rule names; it has to be declared, if that can be known."""
    variant = reading.text(table, "variant", spot)
    if variant is not None and variants is not None and variant not in variants:
        reading.say("E004", spot, f"unknown variant {quoted(variant)}", "variant")
    return variant


def _advise(flag: Flag, reading: Reading, spot: Spot) -> None:
    """What is no fault, but should be looked at."""
    has_rules = any(block.rules for block in flag.environments.values())
    if flag.lifecycle == RETIRED and has_rules:
        reading.say("W002", spot, "the flag is retired and still has rules")
    if not has_rules and not reading.failed:
        reading.say("W003", spot, "no environment has rules")
    if not flag.owner:
        reading.say("I001", spot, "there is no owner")
    if not flag.description:
        reading.say("I002", spot, "there is no description")
