"""What `verify` has to say."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be. `stream` is empty when it concerns the store as a whole."""

    stream: str
    seq: int
    what: str

    def __str__(self) -> str:
        place = self.stream or "store"
        return f"{place} at {self.seq}: {self.what}" if self.seq else f"{place}: {self.what}"


class Report(msgspec.Struct):
    """The result of one walk. `at_rest` is false when a running process owns the store: its file structure could
    then not be checked, only its values."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    streams: int = 0
    chunks: int = 0
    records: int = 0
    bytes: int = 0
    at_rest: bool = True

    def note(self, stream: str, seq: int, what: str) -> None:
        self.findings.append(Finding(stream, seq, what))
