"""Flags inside the process: how fast one is evaluated, and how fast a manifest is linted from its bytes."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Mapping, Sequence

from seamark.bench.bench import Bench
from seamark.bench.notify_validate import beside
from seamark.bench.row import Row, against, aim
from seamark.bench.sample import median
from seamark.manifest.bucket import bucket_of
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import Files, lint
from seamark.manifest.memo import Memo
from seamark.manifest.model import Context
from seamark.manifest.paths import flag_path, segment_path

SCENARIO = "flags in the process"
BY_HAND = "the same rules as Python by hand"
PARSED = "the same files, only parsed as TOML"
ENVIRONMENT = "prod"
RULES = 10
CONTEXTS, CONTEXTS_QUICK = 10_000, 500
ROUNDS, ROUNDS_QUICK = 15, 3
FLAGS, FLAGS_QUICK = (1_000, 10_000), (50,)
FLAGS_AIMED = 1_000
EVALUATIONS_AIM = 300_000
LINTED_AIM = 1_000 / 0.15  # a cold start with a thousand flags is to take 300 ms, of which half is this

_HEAD = 'schema_version = "0.1"\n'
_FLAG = (
    _HEAD
    + """
[flag]
type = "boolean"
description = "The new way to pay"
owner = "team-billing"
tags = ["checkout", "web"]

[flag.variants]
on = true
off = false

[flag.environments._]
variant = "off"

[flag.environments.prod]
variant = "off"
"""
)
_EMPLOYEES = (
    _HEAD
    + """
[segment]
description = "Everybody who works here"

[segment.predicate]
attribute = "user.email"
op = "ends_with"
value = "@example.com"
"""
)
_TENTH = (
    _HEAD
    + """
[segment]
description = "One in ten"

[segment.bucket]
entity_id_attribute = "user.id"
salt = "2026"
start = 0
end = 999
"""
)


def run(bench: Bench) -> list[Row]:
    """Evaluations of rules of several kinds, then manifests of several sizes, cold and with one changed file."""
    contexts = _contexts(CONTEXTS_QUICK if bench.quick else CONTEXTS)
    rounds = ROUNDS_QUICK if bench.quick else ROUNDS
    rows = [_evaluated(key, by_hand, contexts, rounds) for key, by_hand in CHAINS.items()]
    for count in FLAGS_QUICK if bench.quick else FLAGS:
        rows += _linted(count, rounds)
    return rows


def _simple(context: Context) -> bool:
    return context.get("user.plan") == "gold"


def _segment(context: Context) -> bool:
    email = context.get("user.email")
    return isinstance(email, str) and email.endswith("@example.com")


def _bucket(context: Context) -> bool:
    user = context.get("user.id")
    return isinstance(user, str) and 0 <= bucket_of("2026", user) <= 999


def _ten(context: Context) -> bool:
    age = context.get("user.age")
    if age == 0:
        return True
    if age == 1:
        return True
    if age == 2:
        return True
    if age == 3:
        return True
    if age == 4:
        return True
    if age == 5:
        return True
    if age == 6:
        return True
    if age == 7:
        return True
    if age == 8:
        return True
    return age == 9


CHAINS: dict[str, Callable[[Context], bool]] = {
    "simple-rule": _simple,
    "segment": _segment,
    "bucket": _bucket,
    "ten-rules": _ten,
}


def flags() -> Files:
    """A manifest with a flag for each of the chains."""
    rules = {
        "simple-rule": [_rule('predicate = { attribute = "user.plan", op = "eq", value = "gold" }')],
        "segment": [_rule('segment = "employees"')],
        "bucket": [_rule('segment = "tenth"')],
        "ten-rules": [
            _rule(f'predicate = {{ attribute = "user.age", op = "eq", value = {age} }}') for age in range(RULES)
        ],
    }
    files = {flag_path(key): (_FLAG + "".join(texts)).encode() for key, texts in rules.items()}
    return {**files, segment_path("employees"): _EMPLOYEES.encode(), segment_path("tenth"): _TENTH.encode()}


def manifest(count: int) -> dict[str, bytes]:
    """As many flags, each with a rule on a segment and one of its own, and no two of the same bytes."""
    files = {segment_path("employees"): _EMPLOYEES.encode()}
    for number in range(count):
        own = f'predicate = {{ attribute = "user.plan", op = "in", values = ["gold", "plan-{number}"] }}'
        files[flag_path(f"flag-{number}")] = (_FLAG + _rule('segment = "employees"') + _rule(own)).encode()
    return files


def _rule(audience: str) -> str:
    return f'\n[[flag.environments.prod.rules]]\n{audience}\nvariant = "on"\n'


def _contexts(count: int) -> list[Context]:
    """Half of them match the simple rule, the segment, and one of the ten rules; a tenth is in the bucket."""
    return [
        {
            "user.id": f"u-{number}",
            "user.plan": "gold" if number % 2 else "free",
            "user.email": f"u-{number}@example.{'com' if number % 2 else 'org'}",
            "user.age": number % (2 * RULES),
        }
        for number in range(count)
    ]


def _evaluated(key: str, by_hand: Callable[[Context], bool], contexts: Sequence[Context], rounds: int) -> Row:
    linted = lint(flags(), slug="bench")
    assert linted.manifest is not None
    evaluate = Evaluator(linted.manifest).evaluate

    def ours(context: Context) -> object:
        return evaluate(key, ENVIRONMENT, context)

    wrong = sum(evaluate(key, ENVIRONMENT, context).value is not by_hand(context) for context in contexts)
    assert not wrong, f"{key}: {wrong} contexts are answered otherwise by hand"
    spent, reference = beside(ours, by_hand, contexts, rounds)
    row = Row(scenario=SCENARIO, parameters={"figure": key}, value=1e6 / spent, unit="evaluations/s")
    against(row, BY_HAND, 1e6 / reference)
    return aim(row, f">= {EVALUATIONS_AIM:,}", 1e6 / spent >= EVALUATIONS_AIM) if key == "simple-rule" else row


def _linted(count: int, rounds: int) -> list[Row]:
    """Cold, and once more after a change of one file: the rate is that of all files, read or not."""
    files = manifest(count)
    memo = Memo()
    lint(files, slug="bench", memo=memo)
    cold, warm, parsed = [], [], []
    for turn in range(rounds):
        parsed.append(_rate(files, lambda: _parse(files)))
        cold.append(_rate(files, lambda: _lint(files, None)))
        changed = {**files, flag_path("flag-0"): (_FLAG + f"# {turn}\n").encode()}
        warm.append(_rate(changed, lambda changed=changed: _lint(changed, memo)))  # type: ignore[misc]
    rows = []
    for figure, rates in (("lint, cold", cold), ("lint, one file changed", warm)):
        row = Row(scenario=SCENARIO, parameters={"figure": figure, "flags": count}, value=median(rates), unit="files/s")
        rows.append(against(row, PARSED, median(parsed)))
    if count == FLAGS_AIMED:
        aim(rows[0], f">= {LINTED_AIM:,.0f}", median(cold) >= LINTED_AIM)
    return rows


def _parse(files: Mapping[str, bytes]) -> None:
    for content in files.values():
        tomllib.loads(content.decode())


def _lint(files: Files, memo: Memo | None) -> None:
    assert lint(files, slug="bench", memo=memo).passed


def _rate(files: Files, work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return len(files) / (time.process_time() - began)
