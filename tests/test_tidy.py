"""The house rules that a machine can keep. STYLE says why; this says no."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

import seamark
from seamark import limits

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "seamark"
TESTS = ROOT / "tests"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
TABLES = frozenset({"errors.py", "limits.py"})  # one table each, as long as it has rows
BANNED = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"})

# A room may import itself and what stands before it (docs/decisions/0001).
FACTS = frozenset({"errors", "limits", "clock", "kinds", "contract", "config"})
DOWNHILL = ("facts", "manifest", "telemetry", "log", "match", "stream", "access", "wire", "surfaces", "http", "top")
SURFACES = frozenset({"raw", "notify", "topics", "flags", "console"})
TOP = frozenset({"cli", "__main__"})
ASIDE = frozenset({"bench", "testing"})  # may import anything; nothing imports them
DOOR = "__init__"

# Modules that the tests of their room do not work through, and what proves them instead.
UNMIRRORED = {
    "__init__.py": "the public door; test_the_public_door",
    "__main__.py": "tests/cli/test_main.py starts it",
    "bench/bare.py": "a process of its own, which the scenarios in tests/bench start",
    "log/verify.py": "tests/crash/test_damage.py flips bytes and cuts files; tests/cli/test_verify.py the rest",
    "log/findings.py": "values of log/verify.py",
    "log/inspection.py": "a part of log/verify.py",
    "access/principal.py": "a protocol; every principal in access/keys.py is one",
    "log/protocol.py": "protocols; tests/contract proves every engine against them",
    "stream/dialect.py": "protocols and plain values; every surface's script is one",
    "wire/exchange.py": "protocols; tests/http runs the same routes through both implementations",
}


@cache
def sources() -> tuple[Path, ...]:
    return tuple(sorted(SRC.rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> frozenset[str]:
    return frozenset(module_of(path) for path in sources())


def room_of(module: str) -> str:
    """`seamark.log.reader` lives in `log`, `seamark.errors` in `facts`, `seamark` is the door."""
    parts = module.split(".")
    if len(parts) == 1:
        return DOOR
    return "facts" if parts[1] in FACTS else parts[1]


def storey(room: str) -> int:
    if room in SURFACES:
        return DOWNHILL.index("surfaces")
    return DOWNHILL.index("top" if room in TOP else room)


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of every Seamark module that a file imports, also lazily or for types only."""
    return tuple(found_imports(path))


def found_imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else str(node.module) for name in names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "seamark")


def verdict(module: str, imported: str) -> str | None:
    """Why `module` must not import `imported`, or None."""
    here, there = room_of(module), room_of(imported)
    if here in ASIDE or there in {here, DOOR}:
        return None
    if there in ASIDE:
        return None if (there, module) == ("bench", "seamark.cli.bench") else f"nothing imports {there}"
    if (there, module) == ("console", "seamark.http.app"):
        return None  # the wiring is the one place that knows everything that answers requests
    if here == DOOR:
        return None if there in {"facts", "client"} else "the door opens on facts and client only"
    if here == "client":
        known = there in {"facts", "manifest"} or imported == "seamark.stream.sse"
        return None if known else "client imports facts, manifest and stream.sse"
    if here == "manifest":
        return None if there == "facts" else "manifest imports facts"
    if here == "lake":
        return "lake never imports http" if there in {"http", "cli", "console"} else None
    if there in {"client", "lake"}:
        return None if here in TOP or (here, there) == ("http", "lake") else f"only the top imports {there}"
    if here in SURFACES and there in SURFACES:
        return "surfaces never import one another"
    return None if storey(there) <= storey(here) else "uphill"


def test_imports_run_downhill() -> None:
    broken = [
        f"{name_of(path)}:{line} imports {imported}: {why}"
        for path in sources()
        for line, imported in imports(path)
        if (why := verdict(module_of(path), imported)) is not None
    ]
    assert not broken, "\n".join(broken)


def test_the_rule_of_imports_can_say_no() -> None:
    for module, imported in (
        ("seamark.log.reader", "seamark.stream.hub"),
        ("seamark.raw.routes", "seamark.http.app"),
        ("seamark.raw.routes", "seamark.topics.model"),
        ("seamark.errors", "seamark.telemetry.logs"),
        ("seamark.client.watch", "seamark.stream.hub"),
        ("seamark.client.watch", "seamark.log.record"),
        ("seamark.manifest.lint", "seamark.telemetry.logs"),
        ("seamark.lake.source", "seamark.http.app"),
        ("seamark.http.app", "seamark.testing.server"),
        ("seamark.cli.serve", "seamark.bench.run"),
        ("seamark.stream.hub", "seamark.access.keys"),
    ):
        assert verdict(module, imported) is not None, f"{module} may import {imported}"
    for module, imported in (
        ("seamark.client.watch", "seamark.stream.sse"),
        ("seamark.client.flags", "seamark.manifest.evaluate"),
        ("seamark.topics.model", "seamark.manifest.paths"),
        ("seamark.cli.bench", "seamark.bench.run"),
        ("seamark.raw.routes", "seamark.wire.exchange"),
        ("seamark.http.app", "seamark.raw.routes"),
    ):
        assert verdict(module, imported) is None, f"{module} may not import {imported}"


def test_every_room_has_its_storey() -> None:
    rooms = {room_of(module) for module in modules()} - ASIDE - {DOOR, "client", "lake"}
    for room in rooms:
        assert storey(room) >= 0


def test_no_file_is_named_after_nothing() -> None:
    named = [path for top in (SRC, TESTS) for path in top.rglob("*.py")]
    broken = [str(path.relative_to(ROOT)) for path in named if words_of(path) & BANNED]
    assert not broken, broken


def words_of(path: Path) -> set[str]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return {word for part in parts for word in (part, *part.removeprefix("test_").split("_"))}


def test_files_and_functions_are_short() -> None:
    broken = []
    for path in sources():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES_MAX and name_of(path) not in TABLES:
            broken.append(f"{name_of(path)} has {lines} lines")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES_MAX:
                    broken.append(f"{name_of(path)}:{node.lineno} {node.name} has {length} lines")
    assert not broken, "\n".join(broken)


def test_nobody_prints_and_only_clock_asks_for_the_time() -> None:
    wall = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
    broken = []
    for path in sources():
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            tail = ".".join(called.split(".")[-2:])
            if called == "print" or (tail in wall and path.name != "clock.py"):
                broken.append(f"{name_of(path)}:{node.lineno} calls {called}")
    for path in sources():
        broken += [
            f"{name_of(path)}:{node.lineno} imports {alias.name} from time"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom) and node.module == "time" and path.name != "clock.py"
            for alias in node.names
            if alias.name in {"time", "time_ns"}
        ]
    assert not broken, "\n".join(broken)


def test_every_limit_is_cited() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources() if path != SRC / "limits.py")
    cited = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", text))
    assert sorted(set(limits.LIMITS) - cited) == []


def test_limits_are_named_after_their_constants() -> None:
    for name, limit in limits.LIMITS.items():
        assert getattr(limits, name) == limit.value
        assert limit.why
        assert limit.unit


def test_ignored_types_say_which_and_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
    ignore = re.compile(r"#\s*type:\s*" + r"ignore(?!\[)")
    broken = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for top in (SRC, TESTS)
        for path in sorted(top.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if later.search(line) or ignore.search(line)
    ]
    assert not broken, "\n".join(broken)


def test_the_public_door() -> None:
    assert seamark.__all__ == sorted(seamark.__all__)
    for name in seamark.__all__:
        assert hasattr(seamark, name), f"seamark.__all__ names {name}, which is not there"
    assert (SRC / "py.typed").exists()
    assert seamark.__version__ == importlib.metadata.version("seamark")


def files_of_tests_for(path: Path) -> tuple[Path, ...]:
    """The test files of the room that `path` is in; for a fact, those beside test_tidy.py."""
    room = path.relative_to(SRC).parts[0]
    folder = TESTS / room
    if room == "testing":  # what ships for proving others is itself at work in these
        return tuple(sorted(file for name in ("testing", "contract", "crash") for file in (TESTS / name).rglob("*.py")))
    return tuple(sorted(folder.rglob("*.py") if folder.is_dir() else TESTS.glob("*.py")))


@cache
def reached_from(tests: tuple[Path, ...]) -> frozenset[str]:
    """Modules that these tests import, and what those import in turn."""
    files = {module_of(path): path for path in sources()}
    ahead = [imported for test in tests for _, imported in imports(test)]
    reached: set[str] = set()
    while ahead:
        module = ahead.pop()
        if module in files and module not in reached:
            reached.add(module)
            ahead += [imported for _, imported in imports(files[module])]
    return frozenset(reached)


def is_mirrored(path: Path) -> bool:
    """Whether tests/ mirrors a module: by a file of its name, or by tests in the folder of its room that work through it."""
    if (TESTS / path.relative_to(SRC).parent / f"test_{path.stem}.py").exists():
        return True
    return module_of(path) in reached_from(files_of_tests_for(path))


def test_every_module_has_tests_in_the_mirror_of_its_room_or_a_reason() -> None:
    files = {name_of(path): path for path in sources() if not is_only_a_docstring(path)}
    missing = [name for name, path in files.items() if name not in UNMIRRORED and not is_mirrored(path)]
    assert not missing, "\n".join(missing)
    assert sorted(set(UNMIRRORED) - set(files)) == [], "reasons for files that are gone"


def is_only_a_docstring(path: Path) -> bool:
    """Also true of an empty file."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree(path).body)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(row) == 2 for row in rows), "a pin is name==version"
    return {canonical(name): version for name, version in rows}


def wanted(line: str, seen: set[str]) -> None:
    """Add what the requirement `line` pulls in here, as far as it is installed, to `seen`."""
    requirement = Requirement(line)
    name = canonical(requirement.name)
    if name in seen or name == "seamark" or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
        return
    seen.add(name)
    try:
        deeper = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for needed in deeper:
        wanted(needed, seen)


def test_everything_that_is_installed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seen: set[str] = set()
    for requirements in (project["dependencies"], *project["optional-dependencies"].values()):
        for requirement in requirements:
            wanted(requirement, seen)
    assert sorted(seen - set(pins())) == []
