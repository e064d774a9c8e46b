"""`seamark flags`: manifests of feature flags, and who may change them."""

from __future__ import annotations

import click

from seamark.cli.verbs import Verb, Verbs

VERBS: tuple[Verb, ...] = (Verb("bootstrap", "Make the first superadmin token of an installation."),)


@click.group(cls=Verbs, rows=VERBS, package="seamark.cli.flags")
def flags() -> None:
    """Manifests of feature flags, and who may change them."""
