"""Files of manifests with nothing to say about them, to be spoilt by tests."""

from __future__ import annotations

VERSION = 'schema_version = "0.1"\n'


def flag(rules: str = "", *, head: str = "", kind: str = "boolean", variants: str = "on = true\noff = false") -> bytes:
    """A flag with one rule unless `rules` has others; `head` goes into [flag]."""
    rules = rules or '[[flag.environments._.rules]]\nsegment = "s"\nvariant = "on"'
    return f"""{VERSION}
[flag]
type = "{kind}"
description = "A flag"
owner = "team"
{head}
[flag.variants]
{variants}
[flag.environments._]
variant = "off"
{rules}
""".encode()


def inline(predicate: str) -> bytes:
    """A flag whose one rule has a predicate."""
    return flag(f'[[flag.environments._.rules]]\npredicate = {predicate}\nvariant = "on"')


def segment(body: str = "", description: str = "A segment") -> bytes:
    body = body or '[segment.predicate]\nattribute = "plan"\nop = "eq"\nvalue = "gold"'
    return f'{VERSION}[segment]\ndescription = "{description}"\n{body}\n'.encode()


def bucket(body: str) -> bytes:
    return segment(f"[segment.bucket]\n{body}")


def namespace(body: str = "") -> bytes:
    return f"{VERSION}[namespace]\n{body}\n".encode()


CLEAN = {"namespace.toml": namespace('slug = "billing"'), "flags/f.toml": flag(), "segments/s.toml": segment()}
