"""The log-event table: every line the server logs has a name from here, and docs are made from it."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    name: str
    level: str
    meaning: str


EVENTS: dict[str, Event] = {}


def _event(name: str, level: str, meaning: str) -> str:
    assert name not in EVENTS
    EVENTS[name] = Event(name, level, meaning)
    return name


SERVER_STARTED = _event(
    "server.started",
    "info",
    "Requests are taken; fields say where, and where the metrics are if they have their own port.",
)
SERVER_OPEN = _event(
    "server.open_to_all",
    "warning",
    "Others can reach the address and nobody is asked for a key: `allow_insecure` says so.",
)
SERVER_DRAINING = _event(
    "server.draining", "info", "A stop was asked for: no new work, streams get their closing event."
)
SERVER_STOPPED = _event("server.stopped", "info", "Everything accepted is committed; the process ends.")
SERVER_CUT = _event("server.cut", "warning", "The grace time ran out with connections open; they were cut.")
SETTING_IGNORED = _event(
    "setting.ignored", "warning", "The file of a notify server has a key that nothing here reads; it may be misspelt."
)
SCHEMA_NOT_STRICT = _event(
    "schema.not_strict", "warning", "Event types that the schema does not name are taken as well, with any fields."
)
REQUEST = _event("http.request", "info", "One answered request (the access log).")
REQUEST_FAILED = _event(
    "http.request_failed", "error", "A route raised something that is not a SeamarkError; the client got a 500."
)
CONNECTION_REFUSED = _event("http.refused", "debug", "A connection or request was refused before a route saw it.")
TASK_FAILED = _event(
    "task.failed", "error", "A task in the background raised; one that should run for ever was started again."
)
COMMIT_FAILED = _event(
    "log.commit_failed", "error", "The store refused a commit; writes are refused until one succeeds."
)
COMMIT_RECOVERED = _event("log.commit_recovered", "info", "A commit succeeded again; writes are taken.")
STORE_OPENED = _event(
    "log.store_opened",
    "info",
    "The store is open; fields say what it holds, how long it took, and what an acknowledgement means.",
)
CRASH_RECOVERED = _event(
    "log.crash_recovered",
    "warning",
    "The last process did not close the store; acknowledged but unsynced seqs became stated gaps.",
)
CORRUPT_VALUE = _event("log.corrupt", "error", "A stored value failed its checksum and was not served.")
LISTENER_FAILED = _event("log.listener_failed", "error", "A listener for news raised; the others were still told.")
SESSION_FAILED = _event("stream.session_failed", "error", "A stream ended because the log could not be read.")
TIMER_FAILED = _event("stream.timer_failed", "error", "A timer's callback raised; the others ran.")
FANOUT_FAILED = _event(
    "stream.fanout_failed", "error", "Records could not be encoded or handed to some readers; those streams were ended."
)
DEAD_LETTER_REFUSED = _event(
    "queue.dead_letter_refused",
    "warning",
    "A job was delivered as often as its queue allows, but the dead letter topic did not take it; it is delivered again.",
)
ROUTER_WAITS = _event(
    "topics.router_waits",
    "warning",
    "A router cannot go on: its dest is full or gone, or the store takes no writes. It keeps its place and is tried again.",
)
ROUTER_RESUMED = _event("topics.router_resumed", "info", "A router that had to wait goes on; nothing was passed over.")
FLAGS_PRUNE_FAILED = _event(
    "flags.prune_failed",
    "error",
    "File indexes of old manifest versions could not be let go; they stay, and it is tried again with the next version.",
)
FLAGS_CHANGED = _event(
    "flags.changed", "info", "A tenant, namespace, token or manifest was changed; the audit log has the whole of it."
)
AUDIT_OWED = _event(
    "flags.audit_owed",
    "warning",
    "A version was stored with its line of the audit log, which the store would not append; it is appended with the next.",
)
SUPERADMIN_ADOPTED = _event(
    "flags.superadmin_adopted",
    "info",
    "The secret in the superadmin token file opens the server; it was made or taken over.",
)
SUPERADMIN_REVOKED = _event(
    "flags.superadmin_revoked",
    "warning",
    "The secret in the superadmin token file was revoked and opens nothing. Remove the file to have a new one made.",
)
WATCHES_UNSAVED = _event(
    "topics.watches_unsaved",
    "warning",
    "Watch sessions could not be written down; they work on, and after a restart their clients make new ones.",
)
