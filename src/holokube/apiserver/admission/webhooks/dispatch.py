"""Which webhooks are called for a write, in which order, and what their answers lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from holokube.apiserver.admission.base import Attributes
from holokube.apiserver.admission.bucket_cache import BucketCache
from holokube.apiserver.admission.webhooks.conditions import ConditionError, all_hold
from holokube.apiserver.admission.webhooks.configuration import (
    Candidate,
    Hook,
    Hooks,
    compile_hooks,
    namespace_matches,
    object_matches,
)
from holokube.apiserver.admission.webhooks.outcomes import (
    CallFailed,
    TransportFailed,
    denial,
    internal_error,
)
from holokube.apiserver.admission.webhooks.review import (
    Answer,
    ReviewError,
    UnreadableAnswer,
    UnreadablePatch,
    build_request,
    decode,
    encode,
    namespace_of,
    review_version,
    verify,
)
from holokube.apiserver.admission.webhooks.services import ServiceResolver
from holokube.apiserver.admission.webhooks.views import Views
from holokube.base.log import get_logger
from holokube.kube.errors import ApiError, BadRequest, forbidden, not_found
from holokube.kube.patch import PatchError
from holokube.kube.patch.json_patch import apply_json_patch
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.admission.webhooks.transport import Transport
    from holokube.apiserver.registry import Registry

_log = get_logger(__name__)

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"mutatingwebhookconfigurations.{_GROUP}"
_VALIDATING: Final = f"validatingwebhookconfigurations.{_GROUP}"
# No webhook has a say about what webhooks there are: nobody could remove a broken one.
_EXEMPT: Final = frozenset(
    {
        "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    }
)  # fmt: skip
_FREE_OF_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})


@dataclass(slots=True)
class Rounds:
    """What is remembered of a write from the first round of mutations for a second one."""

    second: bool = False
    needed: bool = False
    called: set[str] = field(default_factory=set)
    """Webhooks that want to be called again should somebody after them change the object."""
    again: set[str] = field(default_factory=set)
    output: bytes = b""

    def object_changed(self) -> None:
        self.again |= self.called
        self.called.clear()


class Webhooks:
    """The webhooks of one server. Without configurations, asking costs a look at an empty buffer."""

    def __init__(self, registry: Registry) -> None:
        store = registry.store
        self.service_resolver: ServiceResolver | None = None
        self._transport: Transport | None = None
        self._registry = registry
        self._views = Views(registry)
        self._rng = registry.rng.fork("admission-webhooks")
        self._mutating = BucketCache(store, _MUTATING, compile_hooks)
        self._validating = BucketCache(store, _VALIDATING, compile_hooks)

    buckets: Final = frozenset({_MUTATING, _VALIDATING})

    @property
    def there_are(self) -> bool:
        """Whether any webhook is configured, for whatever."""
        return bool(self._mutating.get().hooks or self._validating.get().hooks)

    def mutating(self, attributes: Attributes) -> Sequence[Candidate]:
        """The mutating webhooks whose rules match."""
        hooks = self._mutating.get()
        return self._candidates(hooks, attributes) if hooks.hooks else ()

    def validating(self, attributes: Attributes) -> Sequence[Candidate]:
        """The validating webhooks whose rules match."""
        hooks = self._validating.get()
        return self._candidates(hooks, attributes) if hooks.hooks else ()

    def _candidates(self, hooks: Hooks, attributes: Attributes) -> Sequence[Candidate]:
        served = attributes.served
        if served.group == _GROUP and served.kind in _EXEMPT:
            return ()
        return hooks.candidates(self._registry, attributes)

    async def close(self) -> None:
        self._mutating.close()
        self._validating.close()
        if self._transport is not None:
            await self._transport.close()

    def _transport_here(self) -> Transport:
        if self._transport is None:
            # An HTTP client takes long to import, and most servers never call a webhook.
            from holokube.apiserver.admission.webhooks.transport import Transport

            self._transport = Transport(self._registry, lambda: self.service_resolver)
        return self._transport

    # Mutating

    async def mutate(self, candidates: Sequence[Candidate], attributes: Attributes, rounds: Rounds) -> None:
        """Call one webhook after the other; each sees what the ones before it made of the object."""
        if rounds.second and rounds.output != _fingerprint(attributes.obj):
            rounds.object_changed()
        for candidate in candidates:
            hook = candidate.hook
            # Who was not called in the first round is not called in the second either.
            if (rounds.second and hook.id not in rounds.again) or not self._is_concerned(
                candidate, attributes
            ):
                continue
            try:
                answer = await self._ask(candidate, attributes, mutating=True)
            except CallFailed as problem:
                self._fail_open(hook, problem)
            else:
                if answer.patch and self._patch(candidate, attributes, answer):
                    rounds.object_changed()
                    rounds.needed = True
            if hook.runs_again:
                rounds.called.add(hook.id)
        rounds.output = _fingerprint(attributes.obj)

    def _patch(self, candidate: Candidate, attributes: Attributes, answer: Answer) -> bool:
        """Apply a webhook's patch; whether it changed anything."""
        hook, served = candidate
        before = self._views.show(served, attributes, attributes.obj)
        if before is None:
            raise internal_error(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for '
                "this operation"
            )
        try:
            patched = apply_json_patch(before, answer.patch)
            after = self._views.read_back(served, attributes, patched)
        except (PatchError, ApiError) as problem:
            # Why it cannot be decoded is enough: which object it was, the client knows.
            raise internal_error(
                str(problem).rpartition(f"cannot be handled as a {served.kind}: ")[2]
            ) from None
        changed = _fingerprint(after) != _fingerprint(attributes.obj)
        after.setdefault("metadata", {})
        attributes.obj = after
        return changed

    # Validating

    async def validate(self, candidates: Sequence[Candidate], attributes: Attributes) -> None:
        """Call all webhooks at once; of several refusals the first one in order is answered."""
        concerned = [one for one in candidates if self._is_concerned(one, attributes)]
        if not concerned:
            return
        outcomes = await asyncio.gather(
            *(self._validate_by(one, attributes) for one in concerned), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _validate_by(self, candidate: Candidate, attributes: Attributes) -> None:
        try:
            await self._ask(candidate, attributes, mutating=False)
        except CallFailed as problem:
            self._fail_open(candidate.hook, problem)

    # Both

    def _is_concerned(self, candidate: Candidate, attributes: Attributes) -> bool:
        """Whether the selectors and conditions of a webhook, whose rules match, let it see this write."""
        hook, served = candidate
        if hook.problem:
            raise internal_error(hook.problem)
        namespace = namespace_of(attributes)
        matches = namespace_matches(hook, attributes, namespace)
        if matches is False or not object_matches(hook, attributes.obj, attributes.old):
            return False
        if matches is None:
            raise not_found("", "namespaces", namespace)
        if not hook.conditions:
            return True
        request = self._request(candidate, attributes, "")
        try:
            return all_hold(
                hook.conditions,
                {"object": request["object"], "oldObject": request["oldObject"], "request": request},
            )
        except ConditionError as problem:
            if hook.ignores_failures:
                return False
            raise forbidden(served.group, served.plural, attributes.name, str(problem)) from None

    def _request(self, candidate: Candidate, attributes: Attributes, uid: str) -> JsonObject:
        served = candidate.served
        new = self._views.show(served, attributes, attributes.obj)
        old = self._views.show(served, attributes, attributes.old)
        return build_request(uid, attributes, served, new, old)

    async def _ask(self, candidate: Candidate, attributes: Attributes, *, mutating: bool) -> Answer:
        """Call a webhook. Raises the refusal if it refuses, ``CallFailed`` if there is no proper answer."""
        hook = candidate.hook
        if attributes.dry_run and hook.side_effects not in _FREE_OF_SIDE_EFFECTS:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        uid = self._rng.uid()
        try:
            version = review_version(hook.review_versions)
        except ReviewError as problem:
            raise CallFailed(hook.name, f"could not create admission objects: {problem}") from None
        body = encode(version, self._request(candidate, attributes, uid))
        try:
            review = decode(await self._transport_here().post(hook.client, body, hook.timeout_s), version)
        except (TransportFailed, UnreadableAnswer) as problem:
            raise CallFailed(hook.name, f"failed to call webhook: {problem}") from None
        try:
            answer = verify(review, version, uid, mutating=mutating)
        except UnreadablePatch as problem:
            raise CallFailed(hook.name, str(problem)) from None
        except ReviewError as problem:
            raise CallFailed(hook.name, f"received invalid webhook response: {problem}") from None
        attributes.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise denial(hook.name, answer.result)
        return answer

    @staticmethod
    def _fail_open(hook: Hook, problem: CallFailed) -> None:
        """Go on without the webhook if its failurePolicy says so; else this is the end of the write."""
        if not hook.ignores_failures:
            raise internal_error(str(problem)) from None
        _log.warning(
            "a webhook failed and is ignored, as its failurePolicy says", webhook=hook.name, problem=problem
        )


def _fingerprint(obj: JsonObject | None) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
