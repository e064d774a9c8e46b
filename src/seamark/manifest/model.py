"""What the files of a manifest say, as values. Only `lint` makes them, and only from files without an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from seamark.manifest.predicate import Node, Scalar

__all__ = ["Block", "Bucket", "Context", "Environment", "Flag", "Manifest", "Namespace", "Rule", "Scalar", "Segment"]

Context: TypeAlias = Mapping[str, Scalar]  # flat: a dot in a key is a letter like any other


@dataclass(frozen=True, slots=True)
class Bucket:
    """A share of all entities: those whose number lies from `start` to `end`, both included. `salt` is the one to use."""

    attribute: str
    salt: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    audience: Node
    variant: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """What a flag says for one environment. `rules` is None where none are declared, which is not the same as no rules."""

    variant: str | None = None
    rules: tuple[Rule, ...] | None = None
    testing: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """`segments` are the keys that its rules name, in any environment and at any depth, but not what those name in turn."""

    key: str
    type: str
    variants: Mapping[str, object]
    environments: Mapping[str, Block]
    description: str = ""
    owner: str = ""
    lifecycle: str = "active"
    tags: tuple[str, ...] = ()
    private_attributes: tuple[str, ...] = ()
    segments: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Segment:
    """With both a predicate and a bucket, both have to match. `segments` are the keys that its predicate names."""

    key: str
    predicate: Node | None = None
    bucket: Bucket | None = None
    description: str = ""
    segments: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Environment:
    display_name: str = ""
    public_evaluate: bool = False


@dataclass(frozen=True, slots=True)
class Namespace:
    """`environments` is None where the namespace does not name them: then every well-formed name is one."""

    slug: str
    display_name: str = ""
    description: str = ""
    telemetry_enabled: bool = True
    private_attributes: tuple[str, ...] = ()
    raw_entity_ids: bool = False
    environments: Mapping[str, Environment] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """`schema_versions` are those that its files name; which of them a server takes is the server's to say."""

    namespace: Namespace
    flags: Mapping[str, Flag] = field(default_factory=lambda: MappingProxyType({}))
    segments: Mapping[str, Segment] = field(default_factory=lambda: MappingProxyType({}))
    schema_versions: frozenset[str] = frozenset()
    weight: int = field(default=0, compare=False)  # bytes of memory, about
