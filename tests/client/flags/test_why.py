from __future__ import annotations

import pytest

from seamark.client.flags.why import why
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import lint
from tests.flags.manifests import HEAD

FILES = {
    "flags/f.toml": f"""{HEAD}[flag]
type = "boolean"
[flag.variants]
on = true
off = false
[flag.environments._]
variant = "off"
[[flag.environments._.rules]]
segment = "staff"
variant = "on"
[[flag.environments._.rules]]
segment = "share"
variant = "on"
[[flag.environments._.rules]]
predicate = {{ any = [{{ attribute = "x", op = "is_set" }}, {{ not = {{ segment = "outer" }} }}] }}
variant = "on"
[flag.environments.off]
variant = "off"
[flag.environments.test]
testing = true
[[flag.environments.test.rules]]
segment = "staff"
variant = "on"
""".encode(),
    "segments/staff.toml": f'{HEAD}[segment]\n[segment.predicate]\nattribute = "staff"\nop = "is_set"\n'.encode(),
    "segments/share.toml": f'{HEAD}[segment]\n[segment.bucket]\nentity_id_attribute = "id"\nstart = 0\nend = 10\n'.encode(),
    "segments/outer.toml": f'{HEAD}[segment]\n[segment.predicate]\nsegment = "share"\n'.encode(),
}


@pytest.mark.parametrize(
    ("environment", "rule", "testing", "expected"),
    [
        ("production", "rule:0", False, "TARGETING_MATCH"),
        ("production", "rule:1", False, "SPLIT"),
        ("production", "rule:2", False, "SPLIT"),  # by way of a segment within a predicate
        ("production", "default", False, "DEFAULT"),
        ("off", "default", False, "STATIC"),  # the rules of the others do not run here
        ("test", "default", False, "STATIC"),
        ("test", "default", True, "DEFAULT"),
        ("test", "rule:0", True, "TARGETING_MATCH"),
    ],
)
def test_what_an_answer_is_called(environment: str, rule: str, testing: bool, expected: str) -> None:
    manifest = lint(FILES, slug="ns").manifest
    assert manifest is not None
    assert why(manifest, "f", environment, rule, include_testing=testing) == expected
    given = Evaluator(manifest).evaluate("f", environment, {"staff": True}, include_testing=testing)
    assert given.rule_matched in ("rule:0", "default")
