"""Random manifests without errors, and random commits to them: as files, and as the model that those files mean."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from seamark.manifest.model import Block, Flag, Manifest, Namespace, Segment
from seamark.manifest.paths import NAMESPACE_FILE, flag_path, segment_path
from seamark.manifest.subscription import EVERY_FLAG, FlagList

# Keys that sort one way as keys and another as paths, and keys that are beginnings of others.
KEYS = ("a", "a-b", "a_b", "b", "b1", "c")
SLUG = "billing"


@dataclass(frozen=True)
class World:
    """What each flag and segment refers to, with a number that makes its file another one. Segments refer backwards only."""

    namespace: int | None
    flags: dict[str, tuple[frozenset[str], int]]
    segments: dict[str, tuple[frozenset[str], int]]

    @property
    def files(self) -> dict[str, bytes]:
        files = {flag_path(key): _flag(*what) for key, what in self.flags.items()}
        files |= {segment_path(key): _segment(*what) for key, what in self.segments.items()}
        if self.namespace is not None:
            files[NAMESPACE_FILE] = _namespace(self.namespace)
        return files

    @property
    def manifest(self) -> Manifest:
        return Manifest(
            namespace=Namespace(slug=SLUG),
            flags={
                key: Flag(key, "boolean", {"on": True}, {"_": Block("on")}, segments=refs)
                for key, (refs, _) in self.flags.items()
            },
            segments={key: Segment(key, segments=refs) for key, (refs, _) in self.segments.items()},
            schema_versions=frozenset(),
        )


def _namespace(number: int) -> bytes:
    return f'schema_version = "0.1"\n[namespace]\nslug = "{SLUG}"\ndescription = "{number}"\n'.encode()


def _flag(refs: frozenset[str], number: int) -> bytes:
    rules = "".join(
        f'[[flag.environments.{environment}.rules]]\n{audience}\nvariant = "on"\n'
        for environment, audience in _audiences(sorted(refs))
    )
    return (
        f'schema_version = "0.1"\n[flag]\ntype = "boolean"\nowner = "us"\ndescription = "{number}"\n'
        '[flag.variants]\non = true\noff = false\n[flag.environments._]\nvariant = "off"\n'
        f"[flag.environments.dark]\ntesting = true\n{rules}"
    ).encode()


def _audiences(refs: list[str]) -> list[tuple[str, str]]:
    """A segment of its own for some, within a predicate for others, and behind the testing gate for the rest."""
    ways = ('segment = "{}"', 'predicate = {{ not = {{ segment = "{}" }} }}')
    return [(("_", "dark")[place % 2], ways[place % 3 % 2].format(ref)) for place, ref in enumerate(refs)]


def _segment(refs: frozenset[str], number: int) -> bytes:
    nodes = ['{ attribute = "user.id", op = "is_set" }', *(f'{{ segment = "{ref}" }}' for ref in sorted(refs))]
    return (
        f'schema_version = "0.1"\n[segment]\ndescription = "{number}"\n[segment.predicate]\nany = [{", ".join(nodes)}]\n'
    ).encode()


def _some(keys: tuple[str, ...] | list[str]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(keys), max_size=3) if keys else st.just(frozenset())


@st.composite
def worlds(draw: st.DrawFn) -> World:
    numbers = st.integers(0, 1)
    segments: dict[str, tuple[frozenset[str], int]] = {}
    for key in KEYS:
        if draw(st.booleans()):
            segments[key] = draw(_some(sorted(segments))), draw(numbers)
    flags = {key: (draw(_some(sorted(segments))), draw(numbers)) for key in KEYS if draw(st.booleans())}
    return World(draw(st.none() | numbers), flags, segments)


@st.composite
def commits(draw: st.DrawFn, world: World) -> World:
    """The world after somebody changed, added or removed a few things; often nothing at all."""
    segments, flags = dict(world.segments), dict(world.flags)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(KEYS) - 1))
        key, number = KEYS[place], draw(st.integers(0, 3))
        below = [other for other in KEYS[:place] if other in segments]
        what = draw(st.sampled_from(("flag", "segment", "no flag", "no segment")))
        if what == "flag":
            flags[key] = draw(_some(sorted(segments))), number
        elif what == "segment":
            segments[key] = draw(_some(below)), number
        elif what == "no flag":
            flags.pop(key, None)
        elif key in segments:
            del segments[key]
            segments = {name: (refs - {key}, mark) for name, (refs, mark) in segments.items()}
            flags = {name: (refs - {key}, mark) for name, (refs, mark) in flags.items()}
    namespace = draw(st.sampled_from((world.namespace, world.namespace, None, 7)))
    return World(namespace, flags, segments)


subscriptions = st.just(EVERY_FLAG) | st.frozensets(st.sampled_from((*KEYS, "unknown")), min_size=1, max_size=4).map(
    FlagList.of
)
