from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.errors import FlagNotFound, UnknownEnvironment
from seamark.limits import EVALUATION_DEPTH_MAX, EVALUATION_STEPS_MAX
from seamark.manifest.evaluate import Evaluator, Outcome
from seamark.manifest.lint import lint
from seamark.manifest.matching import Lookup, Matcher, matcher_of
from seamark.manifest.model import Block, Bucket, Context, Environment, Flag, Manifest, Namespace, Rule, Segment
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Node, Not, Op, SegmentRef
from seamark.manifest.reach import in_order
from tests.manifest.plain import plain_answer
from tests.manifest.tables import CONTEXTS, files_of, flag_and_segments

YES = Atom("user.id", Op.IS_SET)
NO = Atom("nobody", Op.IS_SET)
CONTEXT: Context = {"user.id": "u-1"}
VARIANTS = {"e-rule": 1, "e-default": 2, "u-rule": 3, "u-default": 4}


def manifest(
    blocks: Mapping[str, Block], segments: Mapping[str, Node] | None = None, environments: tuple[str, ...] | None = None
) -> Manifest:
    """One flag `f`, in typed mode where environments are given."""
    typed = None if environments is None else dict.fromkeys(environments, Environment())
    named = {name for block in blocks.values() for rule in block.rules or () for name in names(rule.audience)}
    flag = Flag("f", "integer", VARIANTS, blocks, segments=frozenset(named))
    made = {key: Segment(key, node, segments=frozenset(names(node))) for key, node in (segments or {}).items()}
    return Manifest(Namespace("billing", environments=typed), {"f": flag}, made)


def names(node: Node) -> set[str]:
    if isinstance(node, SegmentRef):
        return {node.key}
    if isinstance(node, Not):
        return names(node.part)
    return {key for part in node.parts for key in names(part)} if isinstance(node, AllOf | AnyOf) else set()


def catch_all(*rules: Node) -> Block:
    return Block("u-default", tuple(Rule(rule, "u-rule") for rule in rules))


# -- the five steps


def expected_of(variant: bool, rules: bool | None, testing: bool, include: bool, elsewhere: bool) -> tuple[str, str]:
    """`rules` says whether the one rule matches, None that there are none; `elsewhere` the same of the catch-all's."""
    if rules and (include or not testing):
        return "e-rule", "rule:0"
    if variant:
        return "e-default", "default"
    if rules is None and elsewhere:
        return "u-rule", "rule:0"
    return "u-default", "default"


@pytest.mark.parametrize(
    ("variant", "rules", "testing", "include", "elsewhere"),
    list(product([False, True], [None, False, True], [False, True], [False, True], [False, True])),
)
def test_all_cases(variant: bool, rules: bool | None, testing: bool, include: bool, elsewhere: bool) -> None:
    declared = None if rules is None else (Rule(YES if rules else NO, "e-rule"),)
    block = Block("e-default" if variant else None, declared, testing)
    blocks = {"_": catch_all(YES if elsewhere else NO), "prod": block}
    for environments in (None, ("prod",)):
        evaluator = Evaluator(manifest(blocks, environments=environments))
        outcome = evaluator.evaluate("f", "prod", CONTEXT, include_testing=include)
        assert (outcome.variant, outcome.rule_matched) == expected_of(variant, rules, testing, include, elsewhere)
        assert outcome.value == VARIANTS[outcome.variant]
        assert outcome.reason == ("fallthrough" if outcome.rule_matched == "default" else "matched_rule")


@pytest.mark.parametrize(
    ("block", "include", "variant", "matched"),
    [
        (None, False, "u-rule", "rule:1"),  # not named by the flag: the rules of the catch-all, by their own places
        (Block(), False, "u-rule", "rule:1"),  # named, and saying nothing
        (Block("e-default"), False, "e-default", "default"),  # a kill switch
        (Block(None, ()), False, "u-default", "default"),  # no rules are rules as well
        (Block(None, (Rule(NO, "e-rule"),)), False, "u-default", "default"),  # all miss
        (Block(None, (Rule(YES, "e-rule"),), testing=True), False, "u-default", "default"),  # hidden, still declared
        (Block(None, (Rule(NO, "e-rule"), Rule(YES, "e-rule")), testing=True), True, "e-rule", "rule:1"),
        (Block(None, None, testing=True), False, "u-rule", "rule:1"),  # a gate before nothing
    ],
)
def test_cases_worth_a_name(block: Block | None, include: bool, variant: str, matched: str) -> None:
    blocks = {"_": catch_all(NO, YES), **({} if block is None else {"prod": block})}
    outcome = Evaluator(manifest(blocks)).evaluate("f", "prod", CONTEXT, include_testing=include)
    assert (outcome.variant, outcome.rule_matched) == (variant, matched)


def test_the_first_rule_that_matches_decides() -> None:
    evaluator = Evaluator(manifest({"_": catch_all(NO, YES, YES)}))
    assert evaluator.evaluate("f", "prod", CONTEXT) == Outcome("f", "u-rule", 3, "rule:1", "matched_rule")
    assert evaluator.evaluate("f", "prod", {}) == Outcome("f", "u-default", 4, "default", "fallthrough")
    assert evaluator.evaluate("f", "prod", CONTEXT) is evaluator.evaluate("f", "prod", CONTEXT)


# -- environments


def test_a_namespace_that_names_its_environments_has_no_others() -> None:
    evaluator = Evaluator(manifest({"_": catch_all(YES)}, environments=("prod", "dev")))
    assert evaluator.evaluate("f", "dev", CONTEXT).variant == "u-rule"
    for name in ("staging", "_", "", "PROD"):
        with pytest.raises(UnknownEnvironment) as refused:
            evaluator.evaluate("f", name, CONTEXT)
        assert refused.value.fields == {"environment": name}
    with pytest.raises(UnknownEnvironment):
        Evaluator(manifest({"_": catch_all(YES)}, environments=())).evaluate("f", "prod", CONTEXT)


def test_a_namespace_that_does_not_has_all_that_are_well_formed() -> None:
    evaluator = Evaluator(manifest({"_": catch_all(YES), "prod": Block("e-default")}))
    for name in ("staging", "a", "x" * 63, "a-0"):
        assert evaluator.evaluate("f", name, CONTEXT).variant == "u-rule"
    assert evaluator.evaluate("f", "prod", CONTEXT).variant == "e-default"
    for name in ("_", "", "Staging", "a_b", "x" * 64):
        with pytest.raises(UnknownEnvironment):
            evaluator.evaluate("f", name, CONTEXT)


def test_names_of_environments_are_not_collected() -> None:
    evaluator = Evaluator(manifest({"_": catch_all(YES)}))
    for number in range(1_000):
        evaluator.evaluate("f", f"env-{number}", CONTEXT)
    assert len(evaluator._decisions) + len(evaluator._elsewhere) == 1


def test_environments_that_come_to_the_same_rules_share_what_is_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file can have ten thousand environments beside three thousand questions."""
    made: list[Node] = []

    def noted(node: Node, lookup: Lookup) -> Matcher:
        made.append(node)
        return matcher_of(node, lookup)

    monkeypatch.setattr("seamark.manifest.evaluate.matcher_of", noted)
    blocks = {f"e{number}": Block() for number in range(100)} | {"off": Block("e-default"), "own": catch_all(NO)}
    evaluator = Evaluator(manifest({"_": catch_all(YES), **blocks}))
    said = {name: evaluator.evaluate("f", name, CONTEXT).variant for name in (*blocks, "other")}
    assert said == {**dict.fromkeys((*blocks, "other"), "u-rule"), "off": "e-default", "own": "u-default"}
    assert made == [YES, NO]


def test_a_flag_that_is_not_there() -> None:
    with pytest.raises(FlagNotFound) as missing:
        Evaluator(manifest({"_": catch_all(YES)})).evaluate("g", "prod", CONTEXT)
    assert missing.value.fields == {"flag": "g"}


# -- what could be endless


def test_segments_that_multiply_are_each_asked_once() -> None:
    """Every one names the next twice: written out, the last would be asked more often than there are atoms."""
    count = 300
    for last, variant in ((YES, "u-rule"), (NO, "u-default")):
        segments: dict[str, Node] = {
            f"s{number}": AnyOf((AllOf((SegmentRef(f"s{number + 1}"), NO)), SegmentRef(f"s{number + 1}")))
            for number in range(count)
        }
        evaluator = Evaluator(manifest({"_": catch_all(SegmentRef("s0"))}, {**segments, f"s{count}": last}))
        assert evaluator.evaluate("f", "prod", CONTEXT).variant == variant


def test_nor_do_a_few_that_are_named_often() -> None:
    segments: dict[str, Node] = {f"s{number}": AnyOf((SegmentRef(f"s{number + 1}"),) * 10) for number in range(12)}
    evaluator = Evaluator(manifest({"_": catch_all(SegmentRef("s0"))}, {**segments, "s12": NO}))
    assert evaluator.evaluate("f", "prod", CONTEXT).variant == "u-default"


def test_how_much_there_is_to_ask_is_known_before() -> None:
    def questions(blocks: Mapping[str, Block], segments: Mapping[str, Node] | None = None) -> int | None:
        return Evaluator(manifest(blocks, segments)).questions("f")

    none, one = questions({"_": catch_all()}), questions({"_": catch_all(YES)})
    assert none is not None
    assert one == none + 1
    assert questions({"_": catch_all(), "prod": catch_all(YES)}) == one
    through = questions({"_": catch_all(SegmentRef("s"))}, {"s": AllOf((YES, NO))})
    assert through is not None
    assert through >= one + 2
    assert questions({"_": catch_all(AnyOf((YES,) * EVALUATION_STEPS_MAX))}) is None
    assert Evaluator(manifest({"_": catch_all(YES)})).questions("gone") == 0


@pytest.mark.parametrize("count", [EVALUATION_DEPTH_MAX - 2, EVALUATION_DEPTH_MAX + 2, 5_000])
def test_a_chain_may_be_long(count: int) -> None:
    segments: dict[str, Node] = {f"s{number}": Not(SegmentRef(f"s{number + 1}")) for number in range(count)}
    evaluator = Evaluator(manifest({"_": catch_all(SegmentRef("s0"))}, {**segments, f"s{count}": YES}))
    assert evaluator.evaluate("f", "prod", CONTEXT).variant == ("u-rule" if count % 2 == 0 else "u-default")


def test_many_flags_over_one_chain_walk_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them is asked first, and from wherever it enters."""
    count, walked = 500, 0

    def noted(*args: Any) -> list[str]:
        nonlocal walked
        order = in_order(*args)
        walked += len(order)
        return order

    monkeypatch.setattr("seamark.manifest.evaluate.in_order", noted)
    chain = {
        f"s{n}": Segment(f"s{n}", SegmentRef(f"s{n + 1}"), segments=frozenset({f"s{n + 1}"})) for n in range(count)
    }
    chain[f"s{count}"] = Segment(f"s{count}", YES)
    flags = {
        f"f{n}": Flag(
            f"f{n}", "integer", VARIANTS, {"_": catch_all(SegmentRef(f"s{n}"))}, segments=frozenset({f"s{n}"})
        )
        for n in range(count)
    }
    evaluator = Evaluator(Manifest(Namespace("billing"), flags, chain))
    for n in reversed(range(count)):
        evaluator.questions(f"f{n}")
        evaluator._decision(f"f{n}", "prod", False)
    assert walked <= 3 * len(chain)
    assert {evaluator.evaluate(f"f{n}", "prod", CONTEXT).variant for n in (0, 250, 499)} == {"u-rule"}


def test_a_circle_ends() -> None:
    """No linted manifest has one. What closes it matches nothing."""
    circle: dict[str, Node] = {"a": SegmentRef("b"), "b": AnyOf((SegmentRef("a"), SegmentRef("gone"), YES))}
    for key in "ab":
        evaluator = Evaluator(manifest({"_": catch_all(SegmentRef(key))}, circle))
        assert evaluator.evaluate("f", "prod", CONTEXT).variant == "u-rule"
        assert evaluator.evaluate("f", "prod", {}).variant == "u-default"


def test_many_rules_are_all_asked_and_leave_the_context_alone() -> None:
    count = EVALUATION_STEPS_MAX + 1
    segments: dict[str, Node] = {f"s{number}": Atom("age", Op.EQ, number) for number in range(count)}
    rules = [SegmentRef(f"s{number}") for number in range(count)]
    evaluator = Evaluator(manifest({"_": catch_all(*rules)}, segments))
    for number in (0, 17, count - 1):
        context: Context = {"age": number}
        assert evaluator.evaluate("f", "prod", context).rule_matched == f"rule:{number}"
        assert context == {"age": number}


# -- beside a plain reading of the contract


@settings(max_examples=100, deadline=None)
@given(flag_and_segments(), st.lists(CONTEXTS, min_size=1, max_size=8), st.booleans())
def test_what_a_plain_reading_says(
    described: tuple[dict[str, Any], dict[str, Any]], contexts: list[Context], typed: bool
) -> None:
    flag, segments = described
    files = files_of({"f": flag}, segments, typed=typed)
    found = lint(files, slug="billing")
    assert found.errors == ()
    assert found.manifest is not None
    evaluator = Evaluator(found.manifest)
    for context, environment, testing in product(contexts, ("prod", "dev", "qa"), (False, True)):
        outcome = evaluator.evaluate("f", environment, context, include_testing=testing)
        expected = plain_answer(flag, environment, context, testing, segments)
        assert (outcome.variant, outcome.rule_matched) == expected
        assert outcome.value == outcome.variant.upper()


def test_threads_may_share_one() -> None:
    segments: dict[str, Node] = {f"s{number}": Atom("age", Op.EQ, number) for number in range(50)}
    whole = manifest({"_": catch_all(*(SegmentRef(key) for key in segments))}, segments)
    shared = Evaluator(whole)
    ages = list(range(60)) * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda age: shared.evaluate("f", "prod", {"age": age}).rule_matched, ages))
    assert found == [f"rule:{age}" if age < 50 else "default" for age in ages]


def test_a_bucket_only_grows() -> None:
    for end in range(0, 10_000, 997):
        segment = Segment("s", None, Bucket("user.id", "2026", 0, end))
        narrow, wide = (
            Evaluator(
                Manifest(
                    Namespace("n"),
                    {"f": Flag("f", "integer", VARIANTS, {"_": catch_all(SegmentRef("s"))}, segments=frozenset({"s"}))},
                    {"s": made},
                )
            )
            for made in (segment, Segment("s", None, Bucket("user.id", "2026", 0, min(end + 500, 9_999))))
        )
        for number in range(200):
            context: Context = {"user.id": f"u-{number}"}
            if narrow.evaluate("f", "prod", context).variant == "u-rule":
                assert wide.evaluate("f", "prod", context).variant == "u-rule"
