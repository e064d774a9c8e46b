"""The newest N of each subject: an older record is replaced by a newer one in the same commit. That is no loss."""

from __future__ import annotations

from seamark.log.chunk import chunks_from, corrupt, records_of
from seamark.log.keys import subject_prefix, subject_put
from seamark.log.revision import Revision
from seamark.log.seal import Damaged, unseal
from seamark.log.store import ID, SEQ, Space, View, after


def replace(revision: Revision) -> None:
    """Let the arrivals of a revision replace what came before them."""
    keep = revision.meta.settings.latest_per_subject
    if not keep or not revision.arrivals:
        return
    stream_id = revision.meta.id
    arriving: dict[tuple[str, ...], list[int]] = {}
    for record in revision.arrivals:
        if record.subject is not None:
            arriving.setdefault(record.subject, []).append(record.seq)
    superseded: set[int] = set()
    with revision.reading() as view:
        for subject, seqs in arriving.items():
            stored = [] if revision.created else _stored(revision.ledger.name, view, stream_id, subject)
            surplus = max(len(stored) + len(seqs) - keep, 0)
            revision.remove(stored[:surplus])
            unseen = max(surplus - len(stored), 0)
            superseded.update(seqs[:unseen])
            revision.changes += [subject_put(stream_id, subject, seq) for seq in seqs[unseen:]]
    if superseded:
        revision.remove_arrivals(superseded)


def reindex(revision: Revision, before: int) -> None:
    """The setting changed from `before`: make index and records as if it had always been as it is now."""
    keep = revision.meta.settings.latest_per_subject
    if keep == before:
        return
    stream_id = revision.meta.id
    prefix = ID.pack(stream_id)
    with revision.reading() as view:
        stale = [(Space.SUBJECTS, key, None) for key, _ in view.scan(Space.SUBJECTS, prefix, after(prefix))]
        revision.changes += stale
        if not keep:
            return
        live: dict[tuple[str, ...], list[int]] = {}
        for chunk in chunks_from(revision.ledger.name, stream_id, view, revision.meta.earliest):
            for record in records_of(revision.ledger.name, chunk):
                if record.subject is not None and record.seq >= revision.meta.earliest:
                    live.setdefault(record.subject, []).append(record.seq)
        superseded: set[int] = set()
        for subject, seqs in live.items():
            revision.changes += [subject_put(stream_id, subject, seq) for seq in seqs[-keep:]]
            superseded.update(seqs[:-keep])
        _remove_all(revision, view, superseded)


def _remove_all(revision: Revision, view: View, seqs: set[int]) -> None:
    """Chunk by chunk: nearly every record of a stream may have been replaced."""
    name, meta = revision.ledger.name, revision.meta
    for chunk in chunks_from(name, meta.id, view, min(seqs, default=meta.head + 1)):
        records = records_of(name, chunk)
        removed = [record for record in records if record.seq in seqs]
        if removed:
            keep = [record for record in records if record.seq >= meta.earliest and record.seq not in seqs]
            revision.remove_from(chunk, keep, removed)


def _stored(name: str, view: View, stream_id: int, subject: tuple[str, ...]) -> list[int]:
    prefix = subject_prefix(stream_id, subject)
    seqs: list[int] = []
    for key, value in view.scan(Space.SUBJECTS, prefix, after(prefix)):
        try:
            unseal(key, value)
        except Damaged as damage:
            raise corrupt(name, seqs[-1] if seqs else 0, "subject", damage) from damage
        seqs.append(SEQ.unpack_from(key, len(prefix))[0])
    return seqs
