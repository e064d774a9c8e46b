"""Asking flags: never waiting, never raising. Every question reads what is held once, so each answer is of one closure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from seamark.client.flags.answer import Details, ErrorCode, copied
from seamark.client.flags.mirror import Held
from seamark.client.flags.status import Change, RefreshError, Status
from seamark.client.flags.track import Track
from seamark.errors import FlagNotFound, UnknownEnvironment
from seamark.manifest.model import Context, Manifest

T = TypeVar("T")
Listener = Callable[[Change], None]
_NO_CONTEXT: Context = {}
PRODUCTION = "production"


class FlagReader:
    """What every client of flags can do, wherever its flags come from. `environment` and `namespace` are what is meant where
    a question does not say; the namespace goes without saying when there is one."""

    def __init__(self, tracks: Mapping[str, Track], environment: str, namespace: str | None) -> None:
        self._tracks = tracks
        self._environment = environment
        self._namespace = namespace if namespace is not None or len(tracks) != 1 else next(iter(tracks))

    # -- values

    def get_bool(
        self,
        flag: str,
        default: bool,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> bool:
        return self._value(
            "boolean",
            flag,
            default,
            context,
            namespace=namespace,
            environment=environment,
            include_testing=include_testing,
        )

    def get_string(
        self,
        flag: str,
        default: str,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> str:
        return self._value(
            "string",
            flag,
            default,
            context,
            namespace=namespace,
            environment=environment,
            include_testing=include_testing,
        )

    def get_int(
        self,
        flag: str,
        default: int,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> int:
        return self._value(
            "integer",
            flag,
            default,
            context,
            namespace=namespace,
            environment=environment,
            include_testing=include_testing,
        )

    def get_float(
        self,
        flag: str,
        default: float,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> float:
        return self._value(
            "float",
            flag,
            default,
            context,
            namespace=namespace,
            environment=environment,
            include_testing=include_testing,
        )

    def get_json(
        self,
        flag: str,
        default: Any,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> Any:
        """A value of one's own: it may be changed."""
        return copied(
            self._value(
                "json",
                flag,
                default,
                context,
                namespace=namespace,
                environment=environment,
                include_testing=include_testing,
            )
        )

    # -- details

    def details(
        self,
        flag: str,
        default: object = None,
        context: Context | None = None,
        *,
        kind: str | None = None,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> Details:
        """The answer and where it comes from. `kind` is the type that the flag has to have, as manifests name it."""
        question = self._question(
            flag, default, context, kind, environment=environment, include_testing=include_testing
        )
        track = self._track(namespace)
        if track is None:
            name = namespace if namespace is not None else self._namespace or ""
            return _default(
                question, name, "UNKNOWN_NAMESPACE", "this namespace is not subscribed to, or none was named"
            )
        return _answer(track, track.held, question)

    def eval_all(
        self,
        context: Context | None = None,
        *,
        namespace: str | None = None,
        environment: str | None = None,
        include_testing: bool = False,
    ) -> dict[str, Details]:
        """Every flag that is held; nothing, where nothing is, or the environment is unknown."""
        track = self._track(namespace)
        held = None if track is None else track.held
        if track is None or held is None:
            return {}
        first = self._question("", None, context, None, environment=environment, include_testing=include_testing)
        found = {key: _answer(track, held, first._replace(flag=key)) for key in held.manifest.flags}
        return {key: details for key, details in found.items() if details.error_code is None}

    @property
    def only_namespace(self) -> str | None:
        """The one that is meant where none is named, if there is one."""
        return self._namespace

    def manifest(self, namespace: str | None = None) -> Manifest | None:
        """What is evaluated now, if anything is."""
        track = self._track(namespace)
        return None if track is None or track.held is None else track.held.manifest

    # -- what it says about itself

    def status(self, namespace: str | None = None) -> Status:
        """Raises KeyError for a namespace that is not subscribed to."""
        track = self._track(namespace)
        if track is None:
            raise KeyError(namespace)
        return track.status

    def statuses(self) -> dict[str, Status]:
        return {slug: track.status for slug, track in self._tracks.items()}

    def last_refresh_error(self, namespace: str | None = None) -> RefreshError | None:
        """Why what is held may be old: of one namespace, or the latest of all; None once everything is fine again."""
        tracks = [self._track(namespace)] if namespace is not None else list(self._tracks.values())
        errors = [error for track in tracks if track is not None and (error := track.error) is not None]
        return max(errors, key=lambda error: error.at, default=None)

    # -- inside

    def _question(
        self,
        flag: str,
        default: object,
        context: Context | None,
        kind: str | None,
        *,
        environment: str | None,
        include_testing: bool,
    ) -> _Question:
        where = environment if environment is not None else self._environment
        return _Question(flag, default, context if context is not None else _NO_CONTEXT, kind, where, include_testing)

    def _track(self, namespace: str | None) -> Track | None:
        return self._tracks.get(namespace if namespace is not None else self._namespace or "")

    def _value(
        self,
        kind: str,
        flag: str,
        default: T,
        context: Context | None,
        *,
        namespace: str | None,
        environment: str | None,
        include_testing: bool,
    ) -> T:
        """The short way to the value alone; whatever is in it, the long one says the same."""
        try:
            held = self._tracks[namespace if namespace is not None else self._namespace or ""].mirror.held
            if held is None or held.evaluator.manifest.flags[flag].type != kind:
                return default
            where = environment if environment is not None else self._environment
            asked = context if context is not None else _NO_CONTEXT
            outcome = held.evaluator.evaluate(flag, where, asked, include_testing=include_testing)
            return cast("T", outcome.value)
        except Exception:  # a question must not break whoever asks it: `details` says why
            return default


class _Question(NamedTuple):
    flag: str
    default: object
    context: Context
    kind: str | None
    environment: str
    include_testing: bool


def _answer(track: Track, held: Held | None, question: _Question) -> Details:
    flag, kind = question.flag, question.kind
    if held is None:
        why = "nothing was verified yet" if track.error is None else str(track.error)
        return _default(question, track.slug, "PROVIDER_NOT_READY", why, track=track)
    try:
        known = held.manifest.flags.get(flag)
        if kind is not None and known is not None and known.type != kind:
            why = f"the flag is of type {known.type}, and not {kind}"
            return _default(question, track.slug, "TYPE_MISMATCH", why, track=track, held=held)
        outcome = held.evaluator.evaluate(
            flag, question.environment, question.context, include_testing=question.include_testing
        )
    except FlagNotFound as error:
        return _default(question, track.slug, "FLAG_NOT_FOUND", error.message, track=track, held=held)
    except UnknownEnvironment as error:
        return _default(question, track.slug, "UNKNOWN_ENVIRONMENT", error.message, track=track, held=held)
    except Exception as error:  # what is no mapping of text to plain values
        why = f"{type(error).__name__}: {error}"
        return _default(question, track.slug, "INVALID_CONTEXT", why, track=track, held=held)
    return Details(
        flag,
        copied(outcome.value),
        track.slug,
        question.environment,
        variant=outcome.variant,
        rule_matched=outcome.rule_matched,
        reason=outcome.reason,
        version=held.version,
        closure_hash=held.hash,
        stale=track.stale_since is not None,
    )


def _default(
    question: _Question,
    namespace: str,
    code: ErrorCode,
    why: str,
    *,
    track: Track | None = None,
    held: Held | None = None,
) -> Details:
    return Details(
        question.flag,
        question.default,
        namespace,
        question.environment,
        error_code=code,
        error_message=why,
        version=None if held is None else held.version,
        closure_hash=None if held is None else held.hash,
        stale=held is None or (track is not None and track.stale_since is not None),
    )
