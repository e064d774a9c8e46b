"""Manifests for tests: small, valid, and different from one another where a test wants that."""

from __future__ import annotations

from seamark.manifest.lint import Linted, lint
from seamark.manifest.paths import flag_path, segment_path

HEAD = 'schema_version = "0.1"\n'


def flag(*, segment: str | None = None, note: str = "n") -> bytes:
    """A boolean flag; `note` makes its bytes its own."""
    text = f'{HEAD}\n[flag]\ntype = "boolean"\ndescription = "{note}"\nowner = "o"\n\n[flag.variants]\non = true\noff = false\n\n'
    text += '[flag.environments._]\nvariant = "off"\n'
    if segment is not None:
        text += f'\n[[flag.environments._.rules]]\nsegment = "{segment}"\nvariant = "on"\n'
    return text.encode()


def segment(*, uses: str | None = None, note: str = "n") -> bytes:
    """An audience; one that `uses` another is that other."""
    text = f'{HEAD}\n[segment]\ndescription = "{note}"\n\n[segment.predicate]\n'
    text += f'segment = "{uses}"\n' if uses else 'attribute = "user.email"\nop = "ends_with"\nvalue = "@example.com"\n'
    return text.encode()


def manifest(
    flags: dict[str, bytes] | None = None, segments: dict[str, bytes] | None = None, **root: bytes
) -> dict[str, bytes]:
    files = {flag_path(key): content for key, content in (flags or {}).items()}
    files |= {segment_path(key): content for key, content in (segments or {}).items()}
    return files | {f"{name}.toml": content for name, content in root.items()}


def passed(files: dict[str, bytes], slug: str = "ns") -> Linted:
    linted = lint(files, slug=slug)
    assert linted.passed, linted.errors
    return linted
