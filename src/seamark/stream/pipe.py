"""Where a stream's bytes go: a connection's transport on the data plane, an ASGI `send` elsewhere."""

from __future__ import annotations

from typing import Protocol


class Block:
    """Bytes that many pipes will write. Encoded once; chunk-framed once, on first use."""

    __slots__ = ("_framed", "raw")

    def __init__(self, raw: bytes) -> None:
        assert raw, "an empty chunk would end an HTTP body"
        self.raw = raw
        self._framed: bytes | None = None

    @property
    def framed(self) -> bytes:
        """The block as one chunk of HTTP/1.1 chunked coding."""
        framed = self._framed
        if framed is None:
            framed = self._framed = b"%x\r\n%b\r\n" % (len(self.raw), self.raw)
        return framed


class PipeOwner(Protocol):
    """Whoever writes into a pipe. All calls come from the event loop; `pause` may come from inside `write`."""

    def pause(self) -> None:
        """Unsent bytes passed the high-water mark: write nothing more (a closing block excepted)."""
        ...

    def resume(self) -> None:
        """Unsent bytes fell to the low-water mark."""
        ...

    def gone(self) -> None:
        """The peer went away or the pipe was closed; nothing can be written. Called exactly once."""
        ...


class Pipe(Protocol):
    """One way out to one reader. Writing to a closed pipe is a no-op, never an error."""

    owner: PipeOwner | None

    @property
    def closing(self) -> bool: ...

    @property
    def buffered(self) -> int:
        """Bytes written and not yet taken by the peer."""
        ...

    def write(self, block: Block) -> None: ...

    def close(self, last: Block | None = None) -> None:
        """Write `last` if given, end the body properly, close."""
        ...

    def abort(self) -> None:
        """Close at once, dropping what is unsent."""
        ...
