"""`seamark flags`: manifests of feature flags, and who may change them."""

from __future__ import annotations

import click

from seamark.cli.verbs import Verb, Verbs

VERBS: tuple[Verb, ...] = (
    Verb("lint", "Check a manifest on this machine."),
    Verb("push", "Check a manifest, and make it the next version of a namespace."),
    Verb("pull", "Fetch the files of a version."),
    Verb("versions", "List the versions of a manifest."),
    Verb("rollback", "Make the files of an earlier version the newest version."),
    Verb("eval", "Show which variants a context gets.", holds="evaluate"),
    Verb("tenants", "Make and list tenants."),
    Verb("namespaces", "Make and list namespaces."),
    Verb("tokens", "Make, list and revoke tokens."),
    Verb("bootstrap", "Make the first superadmin token of an installation."),
)


@click.group(cls=Verbs, rows=VERBS, package="seamark.cli.flags")
def flags() -> None:
    """Manifests of feature flags, and who may change them."""
