"""Manifests over HTTP: pushed, fetched, checked, and put back as they were."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import msgspec

from seamark.access.tokens import TokenHolder
from seamark.errors import (
    BadRequest,
    ClosureUnavailable,
    LintFailed,
    ManifestNotFound,
    SchemaVersionMismatch,
    VersionConflict,
    VersionNotFound,
)
from seamark.flags import audit, instant
from seamark.flags.answer import answer, listed
from seamark.flags.body import json_body, page_wanted, version_number
from seamark.flags.caller import Callers, author_of
from seamark.flags.etag import matches
from seamark.flags.manifest_docs import BASE, OPERATIONS
from seamark.flags.rows import stream_of
from seamark.flags.table import row
from seamark.flags.tars import Tars
from seamark.flags.tenancy import Namespace
from seamark.flags.upload import BODY_BYTES_MAX, Uploads, upload_problem
from seamark.flags.version import Entry
from seamark.flags.versions import Committed, Versions
from seamark.log.protocol import Put
from seamark.manifest.diagnostic import Diagnostic
from seamark.manifest.lint import Files, Linted
from seamark.manifest.subscription import EVERY_FLAG
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Route

SCHEMA_MAJOR = 0  # of the manifests that this server reads
_log = logger("flags")


class RollbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Which version is to be the newest again."""

    version: int


class _Change(NamedTuple):
    """Who makes a version, of what, and over which one."""

    exchange: Exchange
    holder: TokenHolder
    namespace: Namespace
    expect: int | None


_ROLLBACK = msgspec.json.Decoder(RollbackBody)


class ManifestRoutes:
    """Handlers bound to the versions of one log."""

    def __init__(
        self,
        versions: Versions,
        tars: Tars,
        *,
        uploads: Uploads,
        debts: audit.Debts,
        callers: Callers,
        metrics: Metrics,
    ) -> None:
        self._debts = debts
        self._versions = versions
        self._tars = tars
        self._callers = callers
        self._uploads = uploads
        self._pushes = {
            outcome: metrics.counter("seamark_flags_pushes_total", outcome)
            for outcome in ("accepted", "refused", "conflict")
        }

    def table(self) -> list[Route]:
        """Rows of the route table."""
        upload = partial(row, OPERATIONS, body_bytes_max=BODY_BYTES_MAX, problem=upload_problem)
        return [
            row(OPERATIONS, "GET", BASE, self.get),
            upload("PUT", BASE, self.push),
            row(OPERATIONS, "GET", f"{BASE}/versions", self.history),
            row(OPERATIONS, "GET", f"{BASE}/versions/{{version}}", self.version),
            upload("POST", f"{BASE}/lint", self.lint),
            row(OPERATIONS, "POST", f"{BASE}/rollback", self.rollback),
        ]

    # -- reading

    async def get(self, exchange: Exchange) -> None:
        _, namespace = self._callers.namespace(exchange, "manifest.read")
        version = await self._versions.current(namespace.tenant, namespace.slug)
        if version is None:
            raise ManifestNotFound(f"namespace {namespace.slug} has no manifest yet", namespace=namespace.slug)
        tag = b'"v%d"' % version.number
        headers = [
            (b"ETag", tag),
            (b"Cache-Control", b"private, no-cache"),
            (b"Exd-Manifest-Version", b"%d" % version.number),
        ]
        if matches(exchange, tag):
            exchange.respond(304, b"", headers=headers)
            return
        archive = await self._tars.archive(version, version.closure(EVERY_FLAG))
        name = f'attachment; filename="{namespace.slug}-v{version.number}.tar.gz"'
        headers.append((b"Content-Disposition", name.encode()))
        exchange.respond(200, archive, media=b"application/octet-stream", headers=headers)

    async def history(self, exchange: Exchange) -> None:
        _, namespace = self._callers.namespace(exchange, "manifest.read")
        wanted = page_wanted(exchange)
        before = version_number(wanted.cursor, "cursor") if wanted.cursor else None
        entries = await self._versions.history(namespace.tenant, namespace.slug, before=before, limit=wanted.limit)
        more = bool(entries) and entries[-1].number > 1
        listed(exchange, "versions", [_shown(entry) for entry in entries], str(entries[-1].number) if more else None)

    async def version(self, exchange: Exchange) -> None:
        _, namespace = self._callers.namespace(exchange, "manifest.read")
        answer(exchange, _shown(await self._entry(namespace, version_number(exchange.params["version"], "version"))))

    async def lint(self, exchange: Exchange) -> None:
        _, namespace = self._callers.namespace(exchange, "manifest.read")
        async with self._uploads.unpacked(exchange, namespace.tenant) as unpacked:
            linted = await self._versions.lint(unpacked.files, slug=namespace.slug, found=unpacked.found)
        _check_schema(linted)
        answer(exchange, {"passed": linted.passed, "lint": lint_shown(linted)})

    # -- writing

    async def push(self, exchange: Exchange) -> None:
        holder, namespace = self._callers.namespace(exchange, "manifest.write")
        change = _Change(exchange, holder, namespace, _expected(exchange))
        await self._check_expected(change)
        async with self._uploads.unpacked(exchange, namespace.tenant) as unpacked:
            linted = await self._versions.lint(unpacked.files, slug=namespace.slug, found=unpacked.found)
            if not linted.passed:
                self._pushes["refused"].value += 1
                count = len(linted.errors)
                message = f"the manifest has {count} error{'' if count == 1 else 's'}; nothing of it was taken"
                raise LintFailed(message, lint=lint_shown(linted))
            _check_schema(linted)
            await self._commit(change, unpacked.files, linted)

    async def rollback(self, exchange: Exchange) -> None:
        holder, namespace = self._callers.namespace(exchange, "rollback")
        change = _Change(exchange, holder, namespace, _expected(exchange))
        number = json_body(exchange, _ROLLBACK).version
        if number < 1:
            raise BadRequest("version must be a whole number from 1 on", name="version")
        await self._check_expected(change)
        await self._entry(namespace, number)
        version = self._versions.at_now(stream_of(namespace.tenant, namespace.slug), number)  # it is linted below, once
        if version is None:
            message = f"the files of version {number} are no longer kept"
            raise ClosureUnavailable(message, namespace=namespace.slug, version=number)
        async with self._uploads.room(namespace.tenant):
            files = self._versions.files(version)
            linted = await self._versions.lint(files, slug=namespace.slug)
            await self._commit(change, files, linted, restored=number)

    # -- within

    async def _commit(self, change: _Change, files: Files, linted: Linted, *, restored: int | None = None) -> None:
        tenant, slug = change.namespace.tenant, change.namespace.slug
        manifest = linted.manifest
        assert manifest is not None
        counts: dict[str, object] = {"flag_count": len(manifest.flags), "segment_count": len(manifest.segments)}
        if restored is not None:
            counts["restored_version"] = restored
        debts: list[Put] = []  # of the attempt that succeeds

        def owed(number: int) -> list[Put]:
            entry = author_of(change.exchange, change.holder).entry(
                "manifest.push" if restored is None else "manifest.rollback",
                f"{tenant}/{slug}@{number}",
                tenant=tenant,
                namespace=slug,
                before={"version": number - 1} if number > 1 else None,
                after={"version": number, **counts},
            )
            debts[:] = [audit.owed(entry.subject, entry)]
            return debts

        by, expect = change.holder.name, change.expect
        try:
            committed = await self._versions.commit(
                tenant, slug, files, linted, by=by, expect=expect, restored=restored, also=owed
            )
        except VersionConflict:
            self._pushes["conflict"].value += 1
            raise
        await self._debts.pay(debts[0])
        self._pushes["accepted"].value += 1
        subject = f"{tenant}/{slug}@{committed.version.number}"
        action = "manifest.push" if restored is None else "manifest.rollback"
        _log.info(events.FLAGS_CHANGED, action=action, subject=subject, actor=by)
        self._answer(change.exchange, committed, {**counts, "lint": lint_shown(linted)})

    def _answer(self, exchange: Exchange, committed: Committed, more: dict[str, object]) -> None:
        number = committed.version.number
        facts: dict[str, object] = {"version": number, "uploaded_at": instant.text(committed.ts), **more}
        headers = ((b"ETag", b'"v%d"' % number), (b"Exd-Manifest-Version", b"%d" % number))
        answer(exchange, facts, headers=headers)

    async def _check_expected(self, change: _Change) -> None:
        """Before the work is done; `commit` asks again. Raises VersionConflict."""
        if change.expect is None:
            return
        head = await self._versions.head(change.namespace.tenant, change.namespace.slug)
        if head != change.expect:
            self._pushes["conflict"].value += 1
            raise VersionConflict(f"the current version is {head}, not {change.expect}", current_version=head)

    async def _entry(self, namespace: Namespace, number: int) -> Entry:
        """Raises VersionNotFound."""
        if number <= await self._versions.head(namespace.tenant, namespace.slug):
            found = await self._versions.history(namespace.tenant, namespace.slug, before=number + 1, limit=1)
            assert found[0].number == number
            return found[0]
        message = f"namespace {namespace.slug} has no version {number}"
        raise VersionNotFound(message, namespace=namespace.slug, version=number)


def lint_shown(linted: Linted) -> dict[str, tuple[Diagnostic, ...]]:
    return {"errors": linted.errors, "warnings": linted.warnings, "infos": linted.infos}


def _shown(entry: Entry) -> dict[str, object]:
    facts = entry.facts
    return {
        "version": entry.number,
        "uploaded_at": instant.text(entry.ts),
        "uploaded_by": facts.uploaded_by,
        "flag_count": facts.flag_count,
        "segment_count": facts.segment_count,
        "file_count": facts.file_count,
        "bytes": facts.bytes,
        "closure_hash": facts.closure_hash,
        "warning_count": facts.warnings,
        "restored_version": facts.restored,
        "files_available": entry.files_available,
    }


def _expected(exchange: Exchange) -> int | None:
    """What `If-Version` says. Raises BadRequest."""
    given = [value for name, value in exchange.headers if name == b"if-version"]
    if not given:
        return None
    if len(given) > 1:
        raise BadRequest("If-Version is given twice", name="If-Version")
    return version_number(given[0].decode("latin-1").strip(), "If-Version", least=0)


def _check_schema(linted: Linted) -> None:
    """Raises SchemaVersionMismatch."""
    versions = linted.manifest.schema_versions if linted.manifest is not None else frozenset[str]()
    for version in sorted(versions):
        if int(version.partition(".")[0]) != SCHEMA_MAJOR:
            message = f"schema_version {version} is for another server; this one reads {SCHEMA_MAJOR}.x"
            raise SchemaVersionMismatch(message, found=version, supported=f"{SCHEMA_MAJOR}.x")
