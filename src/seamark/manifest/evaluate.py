"""Which variant a flag has for a context: the five steps of the contract, made into one function for each flag and environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from seamark import limits
from seamark.errors import FlagNotFound, UnknownEnvironment
from seamark.manifest.matching import Lookup, Matcher, matcher_of, never, segment_matcher
from seamark.manifest.model import Context, Flag, Manifest, Rule
from seamark.manifest.paths import CATCH_ALL, is_environment
from seamark.manifest.reach import Extent, extent_of, extent_of_segment, in_order, together

DEFAULT = "default"
MATCHED_RULE = "matched_rule"
FALLTHROUGH = "fallthrough"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One value of this is made for each answer that a flag can give, and handed to everybody: leave `value` as it is."""

    flag: str
    variant: str
    value: object
    rule_matched: str
    reason: str


Decision: TypeAlias = Callable[[Context], Outcome]


class Evaluator:
    """Answers for one manifest. What it needs is made when it is first asked for, and may be asked for from any thread."""

    __slots__ = ("_asked", "_decisions", "_direct", "_elsewhere", "_extents", "_made", "_stored", "manifest")

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._decisions: dict[tuple[str, str, bool], Decision] = {}
        self._elsewhere: dict[tuple[str, bool], Decision] = {}  # in every environment that nothing names
        self._extents: dict[str, Extent] = {}
        self._asked: dict[str, int | None] = {}
        self._made: dict[tuple[str, int, str], Decision] = {}
        self._direct: dict[str, Matcher] = {}
        self._stored: dict[str, Matcher] = {}

    def evaluate(self, key: str, environment: str, context: Context, *, include_testing: bool = False) -> Outcome:
        """Raises UnknownEnvironment or FlagNotFound, and nothing else."""
        decide = self._decisions.get((key, environment, include_testing))
        if decide is None:
            decide = self._decision(key, environment, include_testing)
        return decide(context)

    def questions(self, key: str) -> int | None:
        """How much there may be to ask about a flag, in whichever environment; None for so much that it is not counted."""
        if key not in self._asked:
            flag = self.manifest.flags.get(key)
            if flag is None:
                return 0
            self._reach(flag.segments)
            rules = [rule for block in flag.environments.values() for rule in block.rules or ()]
            steps = together(extent_of(rule.audience, self._extents) for rule in rules).steps
            self._asked[key] = steps if steps <= limits.EVALUATION_STEPS_MAX else None
        return self._asked[key]

    def check_environment(self, environment: str) -> None:
        """Raises UnknownEnvironment where nothing can be evaluated."""
        known = self.manifest.namespace.environments
        if environment in known if known is not None else is_environment(environment):
            return
        slug = self.manifest.namespace.slug
        raise UnknownEnvironment(f"namespace {slug} has no environment {environment!r:.80}", environment=environment)

    def _decision(self, key: str, environment: str, include_testing: bool) -> Decision:
        self.check_environment(environment)
        flag = self.manifest.flags.get(key)
        if flag is None:
            raise FlagNotFound(f"there is no flag {key!r:.80}", flag=key)
        if environment in flag.environments:
            decide = self._compiled(flag, environment, include_testing)
            self._decisions[key, environment, include_testing] = decide
            return decide
        found = self._elsewhere.get((key, include_testing))
        if found is None:
            found = self._elsewhere[key, include_testing] = self._compiled(flag, environment, include_testing)
        if self.manifest.namespace.environments is not None:  # else there is no end of names
            self._decisions[key, environment, include_testing] = found
        return found

    def _compiled(self, flag: Flag, environment: str, include_testing: bool) -> Decision:
        """Made once for all environments that come to the same rules: there may be far more of them than of rules."""
        rules, variant = steps(flag, environment, include_testing=include_testing)
        key = (flag.key, id(rules), variant)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._decide_by(flag, rules, variant)
        return found

    def _decide_by(self, flag: Flag, rules: Sequence[Rule], variant: str) -> Decision:
        default = Outcome(flag.key, variant, flag.variants[variant], DEFAULT, FALLTHROUGH)
        outcomes = [
            Outcome(flag.key, rule.variant, flag.variants[rule.variant], f"rule:{place}", MATCHED_RULE)
            for place, rule in enumerate(rules)
        ]
        if not rules:
            return lambda context: default
        self._reach(flag.segments)
        if together(extent_of(rule.audience, self._extents) for rule in rules).is_small:
            self._make(flag.segments, self._direct, lambda name: self._direct.get(name, never))
            tests = [matcher_of(rule.audience, lambda name: self._direct.get(name, never)) for rule in rules]
            return _first(tests, outcomes, default)
        self._make(flag.segments, self._stored, _stored)
        first = _first([matcher_of(rule.audience, _stored) for rule in rules], outcomes, default)
        return self._beforehand(flag.segments, first)

    def _reach(self, named: Iterable[str]) -> None:
        """How far these segments extend. Many flags may come to the same ones, so what is known is not looked at again."""
        segments = self.manifest.segments
        for key in in_order(named, segments, self._extents):
            self._extents[key] = extent_of_segment(segments[key], self._extents)

    def _make(self, named: Iterable[str], tests: dict[str, Matcher], lookup: Lookup) -> None:
        segments = self.manifest.segments
        for key in in_order(named, segments, tests):
            tests[key] = segment_matcher(segments[key], lookup)

    def _beforehand(self, named: Iterable[str], decide: Decision) -> Decision:
        """Every segment once, each after those it names, so that neither their number nor their depth multiplies. In which order
        is found each time: to keep it for each flag could take more memory than everything else."""

        def decided(context: Context) -> Outcome:
            known: dict[Any, Any] = dict(context)
            for key in in_order(named, self.manifest.segments):
                known[key,] = self._stored[key](known)
            return decide(known)

        return decided


def steps(flag: Flag, environment: str, *, include_testing: bool) -> tuple[tuple[Rule, ...], str]:
    """The rules to ask in an environment, and the variant where none matches. Declaring rules hides those of the catch-all, even
    when they are for testing and testing is off; a variant without rules hides them as well."""
    catch_all = flag.environments[CATCH_ALL]
    assert catch_all.variant is not None
    block = flag.environments.get(environment)
    if block is None:
        return catch_all.rules or (), catch_all.variant
    default = catch_all.variant if block.variant is None else block.variant
    if block.rules is not None:
        return block.rules if include_testing or not block.testing else (), default
    return catch_all.rules or () if block.variant is None else (), default


def _first(tests: Sequence[Matcher], outcomes: Sequence[Outcome], default: Outcome) -> Decision:
    if len(tests) == 1:
        (test,), (outcome,) = tests, outcomes
        return lambda context: outcome if test(context) else default
    pairs = tuple(zip(tests, outcomes, strict=True))

    def decide(context: Context) -> Outcome:
        for test, outcome in pairs:
            if test(context):
                return outcome
        return default

    return decide


def _stored(key: str) -> Matcher:
    """What was found beforehand. No attribute has a tuple for its name."""
    place: Any = (key,)

    def test(context: Context) -> bool:
        return context.get(place) is True

    return test
