"""A provider for OpenFeature. It needs the package `openfeature-sdk`: `pip install seamark[openfeature]`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from openfeature.evaluation_context import EvaluationContext
from openfeature.event import ProviderEventDetails
from openfeature.exception import ErrorCode, ProviderNotReadyError
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType, Reason
from openfeature.provider import AbstractProvider, Metadata

from seamark.client.flags.answer import Details
from seamark.client.flags.client import FlagsClient
from seamark.client.flags.offline import OfflineFlags
from seamark.client.flags.reader import PRODUCTION
from seamark.client.flags.status import Change, Status
from seamark.client.flags.why import why
from seamark.manifest.model import Context, Manifest

T = TypeVar("T")
USER_ID = "user.id"
WAIT_SECONDS = 5.0  # less than applications wait for a provider before they give up on it
GRACE_SECONDS = 5.0

_CODES = {
    "PROVIDER_NOT_READY": ErrorCode.PROVIDER_NOT_READY,
    "FLAG_NOT_FOUND": ErrorCode.FLAG_NOT_FOUND,
    "TYPE_MISMATCH": ErrorCode.TYPE_MISMATCH,
    "INVALID_CONTEXT": ErrorCode.INVALID_CONTEXT,
}


class SeamarkProvider(AbstractProvider):
    """One namespace and one environment of a client, which it closes on shutdown.

    The targeting key becomes the attribute `targeting_attribute`, unless the context has that itself. Nested attributes become
    flat ones with dots between their names; lists and nulls, which no rule can ask about, are left out.
    """

    def __init__(
        self,
        client: FlagsClient | OfflineFlags,
        *,
        environment: str = PRODUCTION,
        namespace: str | None = None,
        targeting_attribute: str = USER_ID,
        wait_seconds: float = WAIT_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        super().__init__()
        self._client = client
        self._environment = environment
        self._namespace = namespace if namespace is not None else client.only_namespace
        self._targeting_attribute = targeting_attribute
        self._wait_seconds = wait_seconds
        self._grace_seconds = grace_seconds
        self._weather = _Weather(self)
        self._stops: list[Callable[[], None]] = []
        self._reasons: tuple[Manifest | None, dict[tuple[str, str], Reason]] = (None, {})

    def get_metadata(self) -> Metadata:
        return Metadata("seamark")

    # -- its life

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Raises ProviderNotReadyError when there is nothing to evaluate in time. It may still come: that is told as well."""
        if isinstance(self._client, FlagsClient):
            self._stops = [self._client.on_change(self._changed), self._client.on_status(self._told)]
        self._client.wait_ready(self._wait_seconds)
        usable = self._client.manifest(self._namespace) is not None
        self._weather.initialized(usable=usable)
        if not usable:
            error = self._client.last_refresh_error()
            raise ProviderNotReadyError("nothing was verified in time" if error is None else str(error))
        self._told(self._client.status(self._namespace))  # what a cache has kept is stale from the start

    def shutdown(self) -> None:
        self._weather.end()
        for stop in self._stops:
            stop()
        self._client.close()

    def _changed(self, change: Change) -> None:
        if change.namespace == self._namespace and self._weather.has_been_ready:
            self.emit_provider_configuration_changed(
                ProviderEventDetails(flags_changed=sorted(change.flags), metadata={"version": change.version})
            )

    def _told(self, status: Status) -> None:
        if status.namespace == self._namespace:
            self._weather.told(stale=status.stale, usable=status.version is not None, grace_seconds=self._grace_seconds)

    # -- answers

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        return self._resolve("boolean", flag_key, default_value, evaluation_context)

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        return self._resolve("string", flag_key, default_value, evaluation_context)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        return self._resolve("integer", flag_key, default_value, evaluation_context)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        return self._resolve("float", flag_key, default_value, evaluation_context)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        return self._resolve("json", flag_key, default_value, evaluation_context)

    def _resolve(
        self, kind: str, flag: str, default: T, evaluation_context: EvaluationContext | None
    ) -> FlagResolutionDetails[T]:
        context = flat_context(evaluation_context, self._targeting_attribute)
        found = self._client.details(
            flag, default, context, kind=kind, namespace=self._namespace, environment=self._environment
        )
        value: Any = found.value
        if found.error_code is not None:
            code = _CODES.get(found.error_code, ErrorCode.GENERAL)
            return FlagResolutionDetails(value, code, found.error_message, Reason.ERROR, None, _metadata(found))
        return FlagResolutionDetails(value, None, None, self._reason(found), found.variant, _metadata(found))

    def _reason(self, found: Details) -> Reason:
        """Worked out once for every answer of a manifest. While another takes its place, the reason may be that of the other."""
        manifest, reasons = self._reasons
        current = self._client.manifest(self._namespace)
        if current is not manifest:
            reasons = {}
            self._reasons = current, reasons
        rule = found.rule_matched or ""
        reason = reasons.get((found.flag, rule))
        if reason is None:
            try:
                assert current is not None
                reason = Reason(why(current, found.flag, found.environment, rule))
            except (KeyError, IndexError, AssertionError):
                return Reason.UNKNOWN
            reasons[found.flag, rule] = reason
        return reason


class _Weather:
    """What was told of the provider's health: ready, or stale after a while, never the same twice in a row."""

    def __init__(self, provider: SeamarkProvider) -> None:
        self._provider = provider
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._told: str | None = None
        self.is_open = False

    def initialized(self, *, usable: bool) -> None:
        """Ready is told by whoever registered the provider, and so is that it is not."""
        with self._lock:
            self._told = "ready" if usable else "error"
            self.is_open = True

    @property
    def has_been_ready(self) -> bool:
        """Before, the first closure is not a change: that there is one is what is told."""
        return self.is_open and self._told != "error"

    def told(self, *, stale: bool, usable: bool, grace_seconds: float) -> None:
        with self._lock:
            if not self.is_open or not usable:
                return
            if stale:
                if self._timer is None and self._told == "ready":
                    self._timer = threading.Timer(grace_seconds, self._grown_stale)
                    self._timer.daemon = True
                    self._timer.start()
                return
            self._calm()
            again, self._told = self._told != "ready", "ready"
        if again:
            self._provider.emit_provider_ready(ProviderEventDetails())

    def end(self) -> None:
        with self._lock:
            self._calm()
            self.is_open = False

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _grown_stale(self) -> None:
        with self._lock:
            if self._timer is None or not self.is_open:
                return
            self._timer = None
            self._told = "stale"
        self._provider.emit_provider_stale(ProviderEventDetails(message="the server has not been heard for a while"))


def flat_context(context: EvaluationContext | None, targeting_attribute: str) -> Context:
    """Scalars by name, as manifests know them."""
    if context is None:
        return {}
    flat: dict[str, str | int | float | bool] = {}
    ahead: list[tuple[str, Any]] = list(context.attributes.items())
    while ahead:
        name, value = ahead.pop()
        if isinstance(value, str | int | float | bool):
            flat[name] = value
        elif isinstance(value, datetime):
            flat[name] = value.isoformat()
        elif isinstance(value, Mapping):
            ahead += [(f"{name}.{key}", below) for key, below in value.items()]
    if context.targeting_key:
        flat.setdefault(targeting_attribute, context.targeting_key)
    return flat


def _metadata(found: Details) -> dict[str, bool | int | float | str]:
    said = {
        "version": found.version,
        "closure_hash": found.closure_hash,
        "rule_matched": found.rule_matched,
        "stale": found.stale,
    }
    return {name: value for name, value in said.items() if value is not None}
