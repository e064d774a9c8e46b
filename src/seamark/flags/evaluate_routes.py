"""Evaluation over HTTP, for services that have no client library, and for browsers with a token that may be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from seamark import limits
from seamark.access.tokens import TokenHolder
from seamark.errors import BadRequest, FlagNotFound, Forbidden, ManifestNotFound, SeamarkError
from seamark.flags.answer import answer
from seamark.flags.body import json_body
from seamark.flags.caller import Callers
from seamark.flags.directory import Directory
from seamark.flags.manifest_docs import EVALUATE, OPERATIONS
from seamark.flags.problem import flags_problem
from seamark.flags.roster import allows
from seamark.flags.rows import owner_of
from seamark.flags.seats import Seats
from seamark.flags.table import row
from seamark.flags.version import Version
from seamark.flags.versions import Versions
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.model import Context
from seamark.manifest.reading import quoted
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Headers, Route

_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_QUESTION_CHARS = 64  # what a question costs beside the text that it looks through


class ContextBody(msgspec.Struct, forbid_unknown_fields=True):
    """For whom everything is evaluated. A client token may leave out its environment."""

    environment: str | None = None
    context: dict[str, str | bool | _Whole | float] = {}
    include_testing: bool = False


class FlagsBody(ContextBody, forbid_unknown_fields=True):
    """And which flags."""

    flags: list[str] = msgspec.field(default_factory=list)


class _Part(msgspec.Struct):
    """Flags that are evaluated in one go; on the loop only if that takes no time to speak of."""

    keys: list[str] = []
    is_small: bool = True


Read = Callable[[], ContextBody]  # the request's body, when it is its turn to be looked at
_ALL = msgspec.json.Decoder(ContextBody)
_SOME = msgspec.json.Decoder(FlagsBody)


class EvaluateRoutes:
    """Handlers bound to the versions of one log."""

    def __init__(self, versions: Versions, directory: Directory, callers: Callers, metrics: Metrics) -> None:
        self._versions = versions
        self._directory = directory
        self._callers = callers
        self._evaluations = metrics.counter("seamark_flags_evaluations_total")
        self._seats = Seats(limits.EVALUATIONS_APART)

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [
            row(OPERATIONS, "POST", EVALUATE, self.some, hot=True),
            row(OPERATIONS, "POST", f"{EVALUATE}/all", self.all, hot=True),
            row(OPERATIONS, "OPTIONS", EVALUATE, self.preflight),
            row(OPERATIONS, "OPTIONS", f"{EVALUATE}/all", self.preflight),
        ]

    async def some(self, exchange: Exchange) -> None:
        await self._answered(exchange, lambda: json_body(exchange, _SOME))

    async def all(self, exchange: Exchange) -> None:
        await self._answered(exchange, lambda: json_body(exchange, _ALL))

    def preflight(self, exchange: Exchange) -> None:
        """A browser asks before it sends a token, so all that can be asked is whether any token lets its page in."""
        headers: list[tuple[bytes, bytes]] = [(b"Vary", b"Origin")]
        origin = exchange.header(b"origin")
        tenant, namespace = exchange.params["tenant"], exchange.params["namespace"]
        if origin is not None and self._directory.origin_allowed(tenant, namespace, origin.decode("latin-1")):
            headers += [
                (b"Access-Control-Allow-Origin", origin),
                (b"Access-Control-Allow-Methods", b"POST"),
                (b"Access-Control-Allow-Headers", b"Authorization, Content-Type"),
                (b"Access-Control-Max-Age", b"%d" % limits.PREFLIGHT_SECONDS),
            ]
        exchange.respond(204, b"", headers=headers)

    # -- within

    async def _answered(self, exchange: Exchange, read: Read) -> None:
        tenant, slug = exchange.params["tenant"], exchange.params["namespace"]
        holder = self._callers.authenticate(exchange)
        if holder.permits("evaluate", tenant, slug):
            await self._evaluate(exchange, read, None, ())
            return
        if not holder.permits("evaluate.public", tenant, slug):
            raise self._callers.forbidden("evaluate")
        headers = self._cross_origin(exchange, holder)
        try:
            await self._evaluate(exchange, read, holder, headers)
        except SeamarkError as error:
            # In words that the page may read: without these headers a browser tells it nothing.
            status, body, more = flags_problem(error, exchange.request_id)
            exchange.respond(status, body, headers=(*more, *headers))

    def _cross_origin(self, exchange: Exchange, holder: TokenHolder) -> Headers:
        """What a browser needs to see to let the page read the answer. Raises Forbidden."""
        origin = exchange.header(b"origin")
        if origin is None:
            return ()
        if not allows(holder.token, origin.decode("latin-1")):
            raise self._callers.forbidden("evaluate.public to pages of this origin")
        return ((b"Access-Control-Allow-Origin", origin), (b"Vary", b"Origin"))

    async def _evaluate(
        self,
        exchange: Exchange,
        read: Read,
        client: TokenHolder | None,
        headers: Headers,
    ) -> None:
        namespace = self._callers.namespace_of(exchange.params["tenant"], exchange.params["namespace"])
        body = read()
        _check_context(body.context)
        environment = self._environment(body, client)
        version = await self._versions.current(namespace.tenant, namespace.slug)
        if version is None:
            raise ManifestNotFound(f"namespace {namespace.slug} has no manifest yet", namespace=namespace.slug)
        version.evaluator.check_environment(environment)
        if client is not None:
            self._check_public(version, environment)
        facts = await self._results(version, environment, body)
        answer(exchange, {"version": version.number, "environment": environment, **facts}, headers=headers)

    def _environment(self, body: ContextBody, client: TokenHolder | None) -> str:
        if client is None:
            if body.environment is None:
                raise BadRequest("environment is required", name="environment")
            return body.environment
        bound = client.token.environment
        if body.environment not in {None, bound}:
            raise self._callers.forbidden("evaluate.public in another environment")
        if body.include_testing:
            raise self._callers.forbidden("include_testing")
        return bound

    def _check_public(self, version: Version, environment: str) -> None:
        declared = version.manifest.namespace.environments or {}
        found = declared.get(environment)
        if found is None or not found.public_evaluate:
            raise Forbidden(f"environment {environment} is not declared with public_evaluate", action="evaluate.public")

    async def _results(self, version: Version, environment: str, body: ContextBody) -> dict[str, object]:
        evaluator, testing = version.evaluator, body.include_testing
        keys = (
            dict.fromkeys(body.flags) if isinstance(body, FlagsBody) else dict.fromkeys(sorted(version.manifest.flags))
        )
        if isinstance(body, FlagsBody) and len(keys) > limits.FLAGS_EVALUATED_MAX:
            most = limits.FLAGS_EVALUATED_MAX
            raise BadRequest(f"flags names {len(keys)}, and may name {most}; evaluate/all has no bound", name="flags")
        results: dict[str, object] = {}
        errors: dict[str, str] = {}

        def evaluate(part: Iterable[str]) -> None:
            for key in part:
                try:
                    outcome = evaluator.evaluate(key, environment, body.context, include_testing=testing)
                except FlagNotFound as error:
                    errors[key] = error.code
                else:
                    facts = {"variant": outcome.variant, "value": outcome.value, "rule_matched": outcome.rule_matched}
                    results[key] = facts

        parts = _parts(evaluator, keys, body.context)
        if len(parts) == 1 and parts[0].is_small:
            evaluate(keys)
        else:
            async with self._seats.of(owner_of(version.stream)[0]):
                for part in parts:
                    await asyncio.to_thread(evaluate, part.keys)
        self._evaluations.value += len(keys)
        return {"results": results, "errors": errors}


def _parts(evaluator: Evaluator, keys: Iterable[str], context: Context) -> list[_Part]:
    """What is evaluated at a time, by how much there is to ask and how much text to look through."""
    text = _QUESTION_CHARS + sum(len(value) for value in context.values() if isinstance(value, str))
    parts = [_Part()]
    left = limits.EVALUATION_SLICE_CHARS
    for key in keys:
        asked = evaluator.questions(key)
        left -= limits.EVALUATION_SLICE_CHARS if asked is None else (1 + asked) * text
        parts[-1].keys.append(key)
        parts[-1].is_small = parts[-1].is_small and asked is not None and left >= 0
        if left <= 0:
            parts.append(_Part())
            left = limits.EVALUATION_SLICE_CHARS
    return parts if parts[-1].keys or len(parts) == 1 else parts[:-1]


def _check_context(context: Context) -> None:
    """Raises BadRequest."""
    most = limits.CONTEXT_TEXT_CHARS_MAX
    for name, value in context.items():
        if isinstance(value, str) and len(value) > most:
            raise BadRequest(f"context: attribute {quoted(name)} has more than {most} characters", name="context")
