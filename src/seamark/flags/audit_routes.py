"""The audit log over HTTP: `/api/v1/audit`. The oldest change comes first, so that whoever reads on misses none."""

from __future__ import annotations

from seamark import limits
from seamark.errors import BadRequest
from seamark.flags import audit
from seamark.flags.answer import answer
from seamark.flags.body import page_wanted
from seamark.flags.caller import Callers
from seamark.flags.docs import OPERATIONS
from seamark.flags.table import row
from seamark.log.protocol import Log
from seamark.wire.exchange import Exchange, Route

READ = "audit.read"


class AuditRoutes:
    """Superadmins read all of it, admins of a tenant what is about their tenant."""

    def __init__(self, log: Log, callers: Callers) -> None:
        self._log = log
        self._callers = callers

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [row(OPERATIONS, "GET", "/api/v1/audit", self.list)]

    async def list(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, READ)
        wanted = page_wanted(exchange, "tenant")
        tenant = wanted.fields.get("tenant") or holder.token.tenant or None
        if tenant is not None and not holder.permits(READ, tenant):
            raise self._callers.forbidden(READ)
        trail = await audit.read(self._log, _place(wanted.cursor), wanted.limit, tenant=tenant)
        facts: dict[str, object] = {
            "entries": trail.entries,
            "next_cursor": str(trail.after),
            "caught_up": trail.caught_up,
        }
        answer(exchange, facts)


def _place(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 19 or int(cursor) > limits.SEQ_MAX:
        raise BadRequest("the cursor is not one that a list gave out", name="cursor")
    return int(cursor)
