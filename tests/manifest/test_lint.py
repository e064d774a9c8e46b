from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark import limits
from seamark.limits import DIAGNOSTICS_MAX, DIAGNOSTICS_PER_FILE_MAX, PREDICATE_DEPTH_MAX, VARIANT_DEPTH_MAX
from seamark.manifest.closure import closure_of, index_of
from seamark.manifest.diagnostic import CODES, diagnostic
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import Linted, Linting, lint
from seamark.manifest.memo import Memo
from seamark.manifest.model import Block, Bucket, Context, Environment, Flag, Manifest, Namespace, Rule, Segment
from seamark.manifest.predicate import Atom, Op, SegmentRef
from seamark.manifest.subscription import FlagList
from tests.manifest.tables import CONTEXTS, manifests
from tests.manifest.tomls import CLEAN, VERSION, bucket, flag, inline, namespace, segment

F, S, N = "flags/f.toml", "segments/s.toml", "namespace.toml"
HEAVY = flag() + b"#" + b"[" * 250_000  # as if each were an array
RULE = "[[flag.environments._.rules]]\n"
PROD = '\n[[flag.environments._.rules]]\nsegment = "s"\nvariant = "on"\n[flag.environments.prod]\n'


def linted(files: dict[str, bytes | None]) -> Linted:
    """The clean manifest with some files changed, or gone where they are None."""
    changed = {path: content for path, content in {**CLEAN, **files}.items() if content is not None}
    return lint(changed, slug="billing")


def said(found: Linted) -> list[str]:
    return [f"{one.code} {one.path} {one.location or ''}".strip() for one in found.diagnostics]


def nested(depth: int) -> str:
    return "{ not = " * (depth - 1) + '{ segment = "s" }' + " }" * (depth - 1)


def test_a_clean_manifest() -> None:
    found = linted({})
    assert found.diagnostics == ()
    assert found.passed
    assert found.manifest == Manifest(
        Namespace("billing"),
        {
            "f": Flag(
                "f",
                "boolean",
                {"on": True, "off": False},
                {"_": Block("off", (Rule(SegmentRef("s"), "on"),))},
                description="A flag",
                owner="team",
                segments=frozenset({"s"}),
            )
        },
        {"s": Segment("s", Atom("plan", Op.EQ, "gold"), description="A segment")},
        frozenset({"0.1"}),
    )


CASES: list[tuple[str, dict[str, bytes | None], list[str]]] = [
    ("not TOML", {F: b"a = = 1"}, [f"E001 {F}"]),
    ("no version", {S: b'[segment]\ndescription = "x"\n[segment.predicate]\nsegment = "s"'}, [f"E001 {S}", f"E906 {S} segment.predicate.segment"]),
    ("bad version", {N: b'schema_version = "1"'}, [f"E001 {N} schema_version"]),
    ("version in a table", {N: b'[namespace]\nschema_version = "0.1"'}, [f"E001 {N}", f"E016 {N} namespace.schema_version"]),
    ("default variant", {F: flag(head='[flag.environments.prod]\nvariant = "no"')}, [f"E004 {F} flag.environments.prod.variant"]),
    ("rule's variant", {F: flag(f'{RULE}segment = "s"\nvariant = "no"')}, [f"E004 {F} flag.environments._.rules[0].variant"]),
    ("unknown segment", {F: flag(f'{RULE}segment = "t"\nvariant = "on"')}, [f"E005 {F} flag.environments._.rules[0].segment", f"W901 {S}"]),
    ("unknown inline", {F: inline('{ any = [{ segment = "s" }, { not = { segment = "t" } }] }')}, [f"E005 {F} flag.environments._.rules[0].predicate.any[1].not.segment"]),
    ("unknown from segment", {S: segment('[segment.predicate]\nsegment = "t"')}, [f"E005 {S} segment.predicate.segment"]),
    ("segment lost to its name", {"segments/T.toml": segment(), F: flag(f'{RULE}segment = "T"\nvariant = "on"')}, [f"E005 {F} flag.environments._.rules[0].segment", "E032 segments/T.toml", f"W901 {S}"]),
    ("a broken segment is there", {S: b"x"}, [f"E001 {S}"]),
    ("no entity", {S: bucket('salt = "x"\nstart = 0\nend = 9')}, [f"E006 {S} segment.bucket.entity_id_attribute"]),
    ("empty entity", {S: bucket('entity_id_attribute = ""\nsalt = "x"\nstart = 0\nend = 9')}, [f"E006 {S} segment.bucket.entity_id_attribute"]),
    ("entity no text", {S: bucket('entity_id_attribute = 1\nsalt = "x"\nstart = 0\nend = 9')}, [f"E006 {S} segment.bucket.entity_id_attribute"]),
    ("no range", {S: bucket('entity_id_attribute = "id"\nsalt = "x"')}, [f"E006 {S} segment.bucket.end", f"E006 {S} segment.bucket.start"]),
    ("range reversed", {S: bucket('entity_id_attribute = "id"\nsalt = "x"\nstart = 9\nend = 8')}, [f"E006 {S} segment.bucket"]),
    ("range too wide", {S: bucket('entity_id_attribute = "id"\nsalt = "x"\nstart = -1\nend = 10000')}, [f"E006 {S} segment.bucket.end", f"E006 {S} segment.bucket.start"]),
    ("range of others", {S: bucket('entity_id_attribute = "id"\nsalt = "x"\nstart = false\nend = 1.0')}, [f"E006 {S} segment.bucket.end", f"E006 {S} segment.bucket.start"]),
    ("typed environments", {N: namespace("[namespace.environments]\ndev = {}"), F: flag(f'{PROD}variant = "on"')}, [f"E010 {F} flag.environments.prod"]),
    ("no environments at all", {N: namespace("[namespace.environments]"), F: flag(f'{PROD}variant = "on"')}, [f"E010 {F} flag.environments.prod"]),
    ("an empty segment", {S: f'{VERSION}[segment]\ndescription = "x"'.encode()}, [f"E011 {S} segment"]),
    ("no type", {F: flag().replace(b'type = "boolean"', b"")}, [f"E014 {F} flag.type"]),
    ("bad type", {F: flag(kind="bool")}, [f"E014 {F} flag.type"]),
    ("type no text", {F: flag().replace(b'"boolean"', b"true")}, [f"E014 {F} flag.type"]),
    ("unknown at the top", {F: b"x = 1\n" + flag()}, [f"E016 {F} x"]),
    ("unknown in flag", {F: flag(head="enabled = true\nkey = 'f'")}, [f"E016 {F} flag.enabled", f"E016 {F} flag.key"]),
    ("unknown in block", {F: flag(head='[flag.environments.prod]\n"my value" = 1')}, [f"E016 {F} flag.environments.prod.'my value'"]),
    ("unknown in rule", {F: flag(f'{RULE}segment = "s"\nvariant = "on"\nif = 1')}, [f"E016 {F} flag.environments._.rules[0].if"]),
    ("unknown in atom", {F: inline('{ attribute = "a", op = "is_set", x = 1 }')}, [f"E016 {F} flag.environments._.rules[0].predicate.x"]),
    ("unknown in reference", {F: inline('{ segment = "s", op = "eq" }')}, [f"E016 {F} flag.environments._.rules[0].predicate.op"]),
    ("unknown in combinator", {F: inline('{ all = [{ segment = "s" }], x = 1 }')}, [f"E016 {F} flag.environments._.rules[0].predicate.x"]),
    ("unknown in segment", {S: segment("key = 's'\n[segment.predicate]\nattribute = 'a'\nop = 'is_set'")}, [f"E016 {S} segment.key"]),
    ("unknown in bucket", {S: bucket('entity_id_attribute = "id"\nslat = "x"\nsalt = "x"\nstart = 0\nend = 9')}, [f"E016 {S} segment.bucket.slat"]),
    ("unknown in namespace", {N: namespace("tenant = 'acme'")}, [f"E016 {N} namespace.tenant"]),
    ("unknown in environment", {N: namespace("[namespace.environments]\nprod = { x = 1 }")}, [f"E016 {N} namespace.environments.prod.x"]),
    ("bad stem", {"flags/A b.toml": flag()}, ["E032 flags/A b.toml"]),
    ("bad slug", {N: namespace('slug = "a_b"')}, [f"E032 {N} namespace.slug"]),
    ("bad environment", {F: flag(f'{PROD.replace("prod", "Prod")}variant = "on"')}, [f"E032 {F} flag.environments.Prod"]),
    ("bad environment declared", {N: namespace("[namespace.environments]\n_ = {}")}, [f"E032 {N} namespace.environments._"]),
    ("torn in one list", {F: inline('{ attribute = "a", op = "in", values = ["x", 1] }'), S: None}, [f"E034 {F} flag.environments._.rules[0].predicate.values"]),
    ("torn in one file", {F: inline('{ all = [{ attribute = "a", op = "eq", value = 1 }, { attribute = "a", op = "eq", value = true }] }'), S: None}, [f"E034 {F} flag.environments._.rules[0].predicate.all[1].value"]),
    ("torn across files", {"flags/g.toml": inline('{ attribute = "plan", op = "gt", value = 1 }')}, [f"E034 {S} segment.predicate.value"]),
    ("torn twice in one file", {F: inline('{ all = [{ attribute = "a", op = "eq", value = "x" }, { attribute = "a", op = "eq", value = 1 }, { attribute = "a", op = "eq", value = true }] }'), S: None}, [f"E034 {F} flag.environments._.rules[0].predicate.all[1].value"]),
    ("torn by a bucket", {S: bucket('entity_id_attribute = "id"\nsalt = "x"\nstart = 0\nend = 9'), "flags/g.toml": inline('{ attribute = "id", op = "lt", value = 1.5 }')}, [f"E034 {S} segment.bucket.entity_id_attribute"]),
    ("numbers are numbers", {F: inline('{ any = [{ attribute = "a", op = "eq", value = 1 }, { attribute = "a", op = "eq", value = 1.5 }] }'), S: None}, []),
    ("versions are text", {F: inline('{ any = [{ attribute = "a", op = "semver_eq", value = "1.0.0" }, { attribute = "a", op = "contains", value = "1" }] }'), S: None}, []),
    ("presence has no type", {F: inline('{ any = [{ attribute = "a", op = "is_set" }, { attribute = "a", op = "eq", value = true }] }'), S: None}, []),
    ("both audiences", {F: flag(f'{RULE}segment = "s"\npredicate = {{ segment = "s" }}\nvariant = "on"')}, [f"E036 {F} flag.environments._.rules[0]"]),
    ("no audience", {F: flag(f'{RULE}variant = "on"'), S: None}, [f"E036 {F} flag.environments._.rules[0]"]),
    ("no catch-all", {F: flag().replace(b"environments._", b"environments.prod")}, [f"E037 {F} flag"]),
    ("no environments", {F: f'{VERSION}[flag]\ntype = "boolean"\nowner = "x"\ndescription = "x"\nvariants = {{ on = true }}'.encode(), S: None}, [f"E037 {F} flag"]),
    ("catch-all without variant", {F: flag().replace(b'variant = "off"', b"")}, [f"E038 {F} flag.environments._"]),
    ("catch-all for testing", {F: flag(f'testing = false\n{RULE}segment = "s"\nvariant = "on"')}, [f"E039 {F} flag.environments._.testing"]),
    ("another slug", {N: namespace('slug = "growth"')}, [f"E901 {N} namespace.slug"]),
    ("bad lifecycle", {F: flag(head='lifecycle = "permanent"')}, [f"E902 {F} flag.lifecycle"]),
    ("segments of a broken flag", {F: flag(head='lifecycle = "x"'), "segments/t.toml": segment()}, [f"E902 {F} flag.lifecycle"]),
    ("variant of another type", {F: flag(variants="on = true\noff = 0")}, [f"E903 {F} flag.variants.off"]),
    ("unknown operator", {S: segment('[segment.predicate]\nattribute = "a"\nop = "matches"\nvalue = "x"')}, [f"E904 {S} segment.predicate.op"]),
    ("operator no text", {S: segment('[segment.predicate]\nattribute = "a"\nop = 1')}, [f"E904 {S} segment.predicate.op"]),
    ("too deep", {F: inline(nested(PREDICATE_DEPTH_MAX + 1)), S: None}, [f"E905 {F} flag.environments._.rules[0].predicate{'.not' * PREDICATE_DEPTH_MAX}"]),
    ("deep enough", {F: inline(nested(PREDICATE_DEPTH_MAX))}, []),
    ("naming itself", {S: segment('[segment.predicate]\nsegment = "s"')}, [f"E906 {S} segment.predicate.segment"]),
    ("a circle", {S: segment('[segment.predicate]\nsegment = "t"'), "segments/t.toml": segment('[segment.predicate]\nnot = { segment = "s" }')}, ["E906 segments/t.toml segment.predicate.not.segment"]),
    ("fields of other types", {F: flag(head='lifecycle = 1\ntags = ["a", 1]\nprivate_attributes = "a"').replace(b'"team"', b"[]").replace(b'"A flag"', b"1")}, [f"E908 {F} flag.{name}" for name in ("description", "lifecycle", "owner", "private_attributes", "tags")] + [f"I001 {F} flag", f"I002 {F} flag"]),
    ("flag no table", {F: VERSION.encode() + b"flag = 1", S: None}, [f"E908 {F} flag"]),
    ("variants no table", {F: f'{VERSION}[flag]\ntype = "boolean"\nowner = "x"\ndescription = "x"\nvariants = 1\nenvironments = 1'.encode(), S: None}, [f"E908 {F} flag.environments", f"E908 {F} flag.variants"]),
    ("blocks no tables", {F: flag().replace(b"[flag.environments._]", b"[flag.environments]\n_ = 1\nprod = []\n[x]").replace(b"[[flag.environments._.rules]]", b"[y]"), S: None}, [f"E016 {F} x", f"E016 {F} y", f"E908 {F} flag.environments._", f"E908 {F} flag.environments.prod"]),
    ("rules no array", {F: flag('rules = "x"'), S: None}, [f"E908 {F} flag.environments._.rules"]),
    ("a rule no table", {F: flag("rules = [1]"), S: None}, [f"E908 {F} flag.environments._.rules[0]"]),
    ("fields of rules", {F: flag(f"{RULE}segment = 1\nvariant = 1\ndescription = 1"), S: None}, [f"E908 {F} flag.environments._.rules[0].{name}" for name in ("description", "segment", "variant")]),
    ("testing no boolean", {F: flag(f"{PROD}testing = 1")}, [f"E908 {F} flag.environments.prod.testing"]),
    ("segment no table", {S: VERSION.encode() + b"segment = 1"}, [f"E908 {S} segment"]),
    ("bucket no table", {S: segment("bucket = 1")}, [f"E908 {S} segment.bucket"]),
    ("salt no text", {S: bucket('entity_id_attribute = "id"\nsalt = 1\nstart = 0\nend = 9')}, [f"E908 {S} segment.bucket.salt"]),
    ("fields of the namespace", {N: namespace("slug = 1\ndisplay_name = 1\ndescription = 1\ntelemetry_enabled = 1\nraw_entity_ids = 1\nprivate_attributes = 1\nenvironments = 1")}, [f"E908 {N} namespace.{name}" for name in ("description", "display_name", "environments", "private_attributes", "raw_entity_ids", "slug", "telemetry_enabled")]),
    ("namespace no table", {N: VERSION.encode() + b"namespace = 1"}, [f"E908 {N} namespace"]),
    ("environments no tables", {N: namespace("[namespace.environments]\nprod = true\ndev = { display_name = 1, public_evaluate = 1 }")}, [f"E908 {N} namespace.environments.{name}" for name in ("dev.display_name", "dev.public_evaluate", "prod")]),
    ("no flag", {F: VERSION.encode(), S: None}, [f"E909 {F}"]),
    ("no variants", {F: f'{VERSION}[flag]\ntype = "boolean"\nowner = "x"\ndescription = "x"\n[flag.environments._]\nvariant = "on"'.encode(), S: None}, [f"E909 {F} flag"]),
    ("empty variants", {F: flag(variants="")}, [f"E909 {F} flag.variants"]),
    ("rule without variant", {F: flag(f'{RULE}segment = "s"')}, [f"E909 {F} flag.environments._.rules[0]"]),
    ("no segment", {S: VERSION.encode()}, [f"E909 {S}"]),
    ("too large", {S: b"#" * 1_000_000}, [f"E910 {S}"]),
    ("too much", {f"flags/{key}.toml": HEAVY for key in "abcd"}, ["E911 flags/c.toml"]),
    ("retired with rules", {F: flag(head='lifecycle = "retired"')}, [f"W002 {F} flag"]),
    ("retired without", {F: flag("rules = []", head='lifecycle = "retired"'), S: None}, [f"W003 {F} flag"]),
    ("no salt", {S: bucket('entity_id_attribute = "id"\nstart = 0\nend = 9')}, [f"W004 {S} segment.bucket.salt"]),
    ("empty salt", {S: bucket('entity_id_attribute = "id"\nsalt = ""\nstart = 0\nend = 9')}, [f"W004 {S} segment.bucket.salt"]),
    ("nested", {"flags/old/a.toml": b"", "flags/old/b.toml": b"", "segments/x/y/z": b""}, ["W009 flags/old/", "W009 segments/x/"]),
    ("no flags", {F: None, S: None}, ["W011 flags/"]),
    ("nothing", {F: None, S: None, N: None}, ["W011 flags/"]),
    ("orphans", {"segments/a.toml": segment('[segment.predicate]\nsegment = "b"'), "segments/b.toml": segment()}, ["W901 segments/a.toml", "W901 segments/b.toml"]),
    ("used by a segment", {S: segment('[segment.predicate]\nsegment = "b"'), "segments/b.toml": segment()}, []),
    ("no owner, no words", {F: flag().replace(b'owner = "team"', b"").replace(b'"A flag"', b'""'), S: segment(description="")}, [f"I001 {F} flag", f"I002 {F} flag", f"I003 {S} segment"]),
    ("whatever else lies there", {"README.md": b"x", ".exdignore": b"", "flags/notes.txt": b"", "docs/a.toml": b"", "segments": b"", "x.toml": b"x"}, []),
    ("no namespace file", {N: None}, []),
    ("an empty namespace file", {N: VERSION.encode()}, []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_found(files: dict[str, bytes | None], expected: list[str]) -> None:
    found = linted(files)
    assert sorted(said(found)) == sorted(expected)
    assert list(found.diagnostics) == sorted(found.diagnostics, key=lambda one: (one.path, one.code))
    assert found.passed == (not found.errors)
    assert {*found.errors, *found.warnings, *found.infos} == set(found.diagnostics)


GIVEN = {"E018", "E907"}  # by whoever reads an archive or a folder


def test_every_code_has_an_example() -> None:
    shown = {line.split()[0] for _, _, lines in CASES for line in lines}
    assert set(CODES) - GIVEN == shown


def test_a_part_at_a_time_comes_to_the_same() -> None:
    files = {**CLEAN, **{f"flags/f{number}.toml": flag() for number in range(20)}, "flags/g.toml": b"a ="}
    whole, memo = lint(files, slug="other"), Memo()
    for expected in (len(files), 0):
        linting, parts = Linting(files, slug="other", memo=memo), 0
        while (found := linting.go_on(1)) is None:
            parts += 1
        assert found == whole
        assert parts == expected  # what was read before is no work


def test_what_is_too_much_is_not_read_to_the_end() -> None:
    memo = Memo()
    found = lint({f"flags/{key}.toml": HEAVY for key in "abcdefgh"}, slug="billing", memo=memo)
    assert said(found) == ["E911 flags/c.toml"]
    assert not found.passed
    assert len(memo) == 1  # of the two that were read; for both there is no room


def test_a_manifest_knows_what_it_weighs() -> None:
    manifest = lint(CLEAN, slug="billing").manifest
    assert manifest is not None
    assert sum(map(len, CLEAN.values())) < manifest.weight < limits.MANIFEST_WEIGHT_MAX


def test_what_the_words_are() -> None:
    found = linted({F: flag(f'{RULE}segment = "t"\nvariant = "no"'), S: segment(f"x = 1\n{'y' * 100} = 1\nbucket = 1")})
    assert [one.message for one in found.diagnostics] == [
        "flag 'f' rule[0]: unknown variant 'no'",
        "flag 'f' rule[0]: unknown segment 't'",
        f"segment 's': unknown field '{'y' * 80}...'",
        "segment 's': unknown field 'x'",
        "segment 's': 'bucket' has to be a table",
    ]
    (found_in_prod,) = linted({F: flag(f'{PROD}variant = "no"')}).diagnostics
    assert found_in_prod.message == "flag 'f' environment 'prod': unknown variant 'no'"


def test_everything_that_files_can_say() -> None:
    found = linted(
        {
            N: namespace(
                """display_name = "Billing"
description = "All about money"
telemetry_enabled = false
private_attributes = ["user.email"]
raw_entity_ids = true
[namespace.environments]
prod = { display_name = "Production", public_evaluate = true }
dev = {}"""
            ),
            F: flag(
                f'''[flag.environments.prod]
testing = true
rules = []
[flag.environments.dev]
variant = "on"
{RULE}description = "our own"
segment = "s"
variant = "on"''',
                head='lifecycle = "development"\ntags = ["a", "b"]\nprivate_attributes = ["plan"]',
            ),
            S: segment(
                """[segment.predicate]
segment = "t"
[segment.bucket]
entity_id_attribute = "user.id"
salt = "2026"
start = 0
end = 4_999"""
            ),
            "segments/t.toml": bucket('entity_id_attribute = "user.id"\nstart = 9999\nend = 9999'),
        }
    )
    assert found.manifest == Manifest(
        Namespace(
            "billing",
            display_name="Billing",
            description="All about money",
            telemetry_enabled=False,
            private_attributes=("user.email",),
            raw_entity_ids=True,
            environments={"prod": Environment("Production", public_evaluate=True), "dev": Environment()},
        ),
        {
            "f": Flag(
                "f",
                "boolean",
                {"on": True, "off": False},
                {
                    "_": Block("off", (Rule(SegmentRef("s"), "on", "our own"),)),
                    "prod": Block(None, (), testing=True),
                    "dev": Block("on"),
                },
                description="A flag",
                owner="team",
                lifecycle="development",
                tags=("a", "b"),
                private_attributes=("plan",),
                segments=frozenset({"s"}),
            )
        },
        {
            "s": Segment("s", SegmentRef("t"), Bucket("user.id", "2026", 0, 4999), "A segment", frozenset({"t"})),
            "t": Segment("t", None, Bucket("user.id", "t", 9999, 9999), "A segment"),
        },
        frozenset({"0.1"}),
    )


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("boolean", "true", True),
        ("boolean", "1", False),
        ("boolean", '"true"', False),
        ("string", '""', True),
        ("string", "1", False),
        ("string", "2026-01-01", False),
        ("integer", "0", True),
        ("integer", "9223372036854775807", True),
        ("integer", "-9223372036854775808", True),
        ("integer", "9223372036854775808", False),
        ("integer", "true", False),
        ("integer", "1.0", False),
        ("float", "1.0", True),
        ("float", "1", False),
        ("float", "inf", False),
        ("float", "nan", False),
        ("json", "1", True),
        ("json", "{ a = [1, 1.5, 'x', true, {}], b = { c = [] } }", True),
        ("json", "[[[]]]", True),
        ("json", "{ a = 2026-01-01T00:00:00Z }", False),
        ("json", "[07:00:00]", False),
        ("json", "[-inf]", False),
        ("json", "[9223372036854775808]", False),
        ("json", "[" * VARIANT_DEPTH_MAX + "]" * VARIANT_DEPTH_MAX, True),
        ("json", "[" * (VARIANT_DEPTH_MAX + 1) + "]" * (VARIANT_DEPTH_MAX + 1), False),
    ],
)
def test_values_of_variants(kind: str, value: str, fits: bool) -> None:
    found = linted({F: flag(kind=kind, variants=f"on = {value}\noff = {value}")})
    assert [one.code for one in found.diagnostics] == ([] if fits else ["E903", "E903"])


ATOMS = {
    "eq": ['value = "x"', "value = 1", "value = 1.5", "value = true", "value = inf"],
    "gt": ["value = 1", "value = -1.5"],
    "in": ['values = ["x"]', "values = [1, 1.5]", "values = [true, false]"],
    "contains": ['value = ""', 'value = "x"'],
    "semver_gt": ['value = "1.0.0"', 'value = "1.0.0-a.1+b"'],
    "is_set": [""],
}
BAD_ATOMS = {
    "eq": [
        "",
        "values = [1]",
        "value = [1]",
        "value = {}",
        "value = 2026-01-01",
        "value = nan",
        "value = 9223372036854775808",
    ],
    "gt": ["", 'value = "1"', "value = true", "value = nan", "values = [1]"],
    "in": ["", "value = 1", "values = []", "values = 1", "values = [[1]]", "values = [nan]", "values = [1], value = 1"],
    "contains": ["", "value = 1", "value = true", 'values = ["x"]'],
    "semver_gt": ["", "value = 1", 'value = "1.0"', 'value = "v1.0.0"', "value = 1.0"],
    "is_set": ["value = true", "values = []"],
}
ALIKE = {
    "eq": ("neq",),
    "gt": ("gte", "lt", "lte"),
    "in": ("not_in",),
    "contains": ("not_contains", "starts_with", "ends_with"),
    "semver_gt": ("semver_eq", "semver_gte", "semver_lt", "semver_lte"),
    "is_set": ("is_not_set",),
}


def atom(op: str, operand: str) -> bytes:
    return inline(f'{{ attribute = "a", op = "{op}"{", " if operand else ""}{operand} }}')


@pytest.mark.parametrize("op", [each for op in ATOMS for each in (op, *ALIKE[op])])
def test_what_operators_take(op: str) -> None:
    row = next(name for name in ATOMS if op in (name, *ALIKE[name]))
    for operand in ATOMS[row]:
        assert said(linted({F: atom(op, operand), S: None})) == [], operand
    for operand in BAD_ATOMS[row]:
        found = linted({F: atom(op, operand), S: None})
        assert [one.code for one in found.diagnostics] == ["E905"], operand


@pytest.mark.parametrize(
    "predicate",
    [
        "1",
        "[]",
        "{}",
        '{ op = "eq", value = 1 }',
        '{ attribute = "", op = "is_set" }',
        '{ attribute = 1, op = "is_set" }',
        '{ attribute = "a" }',
        '{ attribute = "a", op = "is_set", segment = "s" }',
        '{ all = [{ segment = "s" }], any = [{ segment = "s" }] }',
        "{ all = [] }",
        '{ any = { segment = "s" } }',
        "{ not = [] }",
        "{ not = 1 }",
        '{ any = [{ segment = "s" }, 1] }',
    ],
)
def test_predicates_that_are_none(predicate: str) -> None:
    assert {one.code for one in linted({F: inline(predicate)}).errors} == {"E905"}


def test_every_operator_is_tried() -> None:
    assert {op.value for op in Op} == {each for op in ATOMS for each in (op, *ALIKE[op])}


def test_what_a_reader_found_counts() -> None:
    link = diagnostic("E018", "flags/x.toml", "a symbolic link")
    nested = diagnostic("W009", "flags/old/", "a directory")
    assert not lint(CLEAN, slug="billing", found=[nested, link]).passed
    found = lint(CLEAN, slug="billing", found=[nested])
    assert found.passed
    assert found.diagnostics == (nested,)


def test_the_slug_is_the_one_that_is_asked_for_where_no_file_says() -> None:
    for files in ({}, {N: VERSION.encode()}, {N: namespace()}):
        manifest = lint(files, slug="growth").manifest
        assert manifest is not None
        assert manifest.namespace == Namespace("growth")


def test_findings_are_bounded_and_errors_are_among_them() -> None:
    many = "\n".join(f"a{number} = 1" for number in range(1_000))
    found = linted({F: flag(head=many)})
    assert len(found.diagnostics) == DIAGNOSTICS_PER_FILE_MAX
    assert not found.passed
    orphans: dict[str, bytes | None] = {f"segments/o{number}.toml": segment() for number in range(DIAGNOSTICS_MAX)}
    found = linted({**orphans, "segments/zz.toml": segment(), "namespace.toml": namespace("slug = 'other'")})
    assert len(found.diagnostics) == DIAGNOSTICS_MAX
    assert [one.code for one in found.errors] == ["E901"]
    rules = f'{RULE}segment = "nobody"\nvariant = "on"\n' * 2_000
    found = linted({f"flags/f{number}.toml": flag(rules) for number in range(6)})
    assert len(found.errors) == len(found.diagnostics) == DIAGNOSTICS_MAX


def test_a_long_chain_is_no_burden_and_a_long_circle_is_found() -> None:
    def chain(last: str) -> Linted:
        files: dict[str, bytes | None] = {
            f"segments/s{number}.toml": segment(f'[segment.predicate]\nsegment = "s{number + 1}"')
            for number in range(3_000)
        }
        end = {"segments/s3000.toml": segment(last), F: flag(f'{RULE}segment = "s0"\nvariant = "on"'), S: None}
        return linted({**files, **end})

    assert chain("").diagnostics == ()
    (found,) = chain('[segment.predicate]\nsegment = "s0"').diagnostics
    assert found.code == "E906"
    assert found.message.endswith(
        ": 3001 segments name one another: s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> ... -> s0"
    )


# -- whatever comes in

WORDS = [
    *(
        "schema_version",
        "flag",
        "segment",
        "namespace",
        "type",
        "description",
        "owner",
        "lifecycle",
        "tags",
        "variants",
    ),
    *("environments", "_", "prod", "variant", "rules", "testing", "predicate", "bucket", "entity_id_attribute", "salt"),
    *(
        "start",
        "end",
        "attribute",
        "op",
        "value",
        "values",
        "all",
        "any",
        "not",
        "slug",
        "public_evaluate",
        "on",
        "'x y'",
    ),
]
SCALARS = st.sampled_from(
    [
        '"0.1"',
        '"boolean"',
        '"json"',
        '"on"',
        '"s"',
        '"t"',
        '"eq"',
        '"in"',
        '"billing"',
        "true",
        "0",
        "9999",
        "-1",
        "1.5",
        "nan",
        "2026-01-01",
        "9" * 30,
        '""',
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5).map(
            lambda table: f"{{{', '.join(f'{key} = {value}' for key, value in table.items())}}}"
        )
    ),
    max_leaves=20,
)
TOMLS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=4).map(
    lambda table: VERSION.encode() + "\n".join(f"{key} = {value}" for key, value in table.items()).encode()
)


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """A file that was fine until somebody took away, doubled or moved some of its lines."""
    lines = draw(st.sampled_from([*CLEAN.values(), bucket("start = 1\nend = 2"), inline(nested(3))])).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(lines) - 1))
        lines.insert(draw(st.integers(0, len(lines))), lines[place])
        if draw(st.booleans()):
            del lines[place]
    return b"\n".join(lines)


PATHS = st.sampled_from([F, S, N, "flags/g.toml", "segments/t.toml", "flags/X.toml", "flags/a/b", "x", ""]) | st.text()
FILES = st.dictionaries(PATHS, st.binary(max_size=60) | TOMLS | spoilt(), max_size=5)


@settings(max_examples=200, deadline=None)
@given(FILES, st.booleans())
def test_anything_is_linted_the_same_each_time_and_with_a_memo(files: dict[str, bytes], beside: bool) -> None:
    whole = {**CLEAN, **files} if beside else files
    found = lint(whole, slug="billing")
    assert (found.manifest is None) == bool(found.errors)
    backwards = dict(reversed(list(whole.items())))
    assert lint(backwards, slug="billing").diagnostics == found.diagnostics
    memo = Memo()
    for _ in range(2):
        again = lint(whole, slug="billing", memo=memo)
        assert again.diagnostics == found.diagnostics
        assert repr(again.manifest) == repr(found.manifest)  # not a number may be a part of both


@settings(max_examples=100, deadline=None)
@given(manifests(), st.lists(CONTEXTS, max_size=3), st.sets(st.sampled_from("abcd")))
def test_closures_of_what_passes_pass_and_say_the_same(
    files: dict[str, bytes], contexts: list[Context], keys: set[str]
) -> None:
    whole = lint(files, slug="billing")
    assert whole.manifest is not None
    wanted = closure_of(whole.manifest, index_of(files), FlagList.of(sorted(keys)))
    part = lint({path: files[path] for path in wanted}, slug="billing")
    assert part.manifest is not None
    assert {one.code for one in part.diagnostics} <= {one.code for one in whole.diagnostics} | {"W011"}
    assert "W901" not in {one.code for one in part.diagnostics}
    evaluators = Evaluator(whole.manifest), Evaluator(part.manifest)
    assert set(part.manifest.flags) == keys & set(whole.manifest.flags)
    for key in part.manifest.flags:
        for context in contexts:
            one, other = (evaluator.evaluate(key, "prod", context, include_testing=True) for evaluator in evaluators)
            assert one == other
