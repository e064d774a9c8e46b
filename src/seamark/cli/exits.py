"""Exit codes: one table for every verb, and the docs are made from it."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """What a process says when it ends. `meaning` is for the docs and for people."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "Done, and nothing to report."
    FINDINGS = (
        1,
        "It ran to its end and has something to report: damage, a failed check, connections that were cut, a manifest with"
        " errors; or things are not as the caller thought: something is there already, or is at another version.",
    )
    USAGE = 2, "Not started: a bad command line or setting, or something that cannot be read."
    FAULT = 3, "It failed while running: the store, the network or the disk refused."
    MISSING = 4, "An optional part of Seamark is not installed; the message names the extra."
    INTERRUPTED = 130, "Stopped from the keyboard."
