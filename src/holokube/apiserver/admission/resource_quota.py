"""ResourceQuota: no more in a namespace than its quotas allow.

Usage is charged in the same breath in which it is checked: nothing waits between the two, nor between the
charge and the write of the object, so that two writes can never share the last bit of a quota. What is freed
by a delete is given back by the quota controller, which counts anew, here as upstream. A quota that it has
not counted yet (no ``status.hard``) binds nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holokube.apiserver.admission.base import (
    CREATE_OR_UPDATE,
    Attributes,
    Caller,
    GroupResource,
    Operation,
    Plugin,
    refuse,
)
from holokube.apiserver.admission.quota_usage import Evaluator, Usage, evaluator_for
from holokube.apiserver.kinds.base import Lookup
from holokube.apiserver.options import WriteOptions
from holokube.base.clock import Clock
from holokube.kube import quantity
from holokube.kube.quantity import Quantity
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_BUCKET: Final = "resourcequotas"
_IGNORED: Final = frozenset({
    ("", "bindings"), ("", "componentstatuses"), ("", "events"), ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"), ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"), ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
})  # fmt: skip
_CALLER: Final = Caller("system:apiserver", groups=("system:masters", "system:authenticated"))
_OPTIONS: Final = WriteOptions(field_manager="kube-apiserver")
_ZERO: Final = Quantity(0)


class ResourceQuota(Plugin):
    """Costs one look at the store where there are no quotas."""

    operations = CREATE_OR_UPDATE
    subresources = None
    runs_last = True
    looks_at = frozenset({_BUCKET})
    heeds = looks_at
    goes_by_spec = True

    def __init__(self, clock: Clock, registry: Registry) -> None:
        self._clock = clock
        self._registry = registry
        self._store = registry.store
        self._evaluators: dict[GroupResource, Evaluator] = {}

    def wants(self, resource: GroupResource, operation: Operation, subresource: str) -> bool:
        return resource not in _IGNORED and super().wants(resource, operation, subresource)

    def has_no_say(self, lookup: Lookup, operation: Operation, namespace: str) -> bool:  # noqa: ARG002 - a hook
        return not namespace or not self._store.count(_BUCKET)

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:
        # Where there are quotas, every object is charged.
        return self.looks_at if self.has_no_say(attributes.lookup, "CREATE", attributes.namespace) else None

    def validate(self, attributes: Attributes) -> None:
        namespace = attributes.namespace
        if not namespace or not self._store.count(_BUCKET):
            return
        quotas = attributes.lookup.objects("", "resourcequotas", namespace)
        obj = attributes.obj
        evaluator = self._evaluator(attributes)
        if not quotas or obj is None or not evaluator.handles(attributes):
            return
        concerned = [quota for quota in quotas if self._concerns(attributes, evaluator, quota, obj)]
        if not concerned:
            return
        now = self._clock.now()
        wanted = evaluator.usage(obj, now)
        negative = sorted(name for name, amount in wanted.items() if amount < _ZERO)
        if negative:
            raise refuse(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
        changed: list[tuple[JsonObject, Usage]] = []
        for quota in concerned:
            delta = wanted
            # A quota that the object enters only now is charged in full.
            if attributes.old is not None and evaluator.matches(quota, attributes.old):
                delta = _growth(wanted, evaluator.usage(attributes.old, now))
            used = self._charged(attributes, quota, delta)
            if used:
                changed.append((quota, used))
        if not attributes.dry_run and self._will_be_written(attributes):
            for quota, used in changed:
                self._write(quota, used)

    def _evaluator(self, attributes: Attributes) -> Evaluator:
        resource = (attributes.served.group, attributes.served.plural)
        found = self._evaluators.get(resource)
        if found is None:
            found = self._evaluators[resource] = evaluator_for(resource)
        return found

    @staticmethod
    def _concerns(attributes: Attributes, evaluator: Evaluator, quota: JsonObject, obj: JsonObject) -> bool:
        """Whether a quota has a say; one whose usage nobody has counted yet says no to everything."""
        if not evaluator.matches(quota, obj):
            return False
        name, status = quota["metadata"]["name"], quota["status"]
        tracked = sorted(key for key in status["hard"] if evaluator.tracks(key))
        missing = evaluator.missing(obj, tracked)
        if missing:
            raise refuse(attributes, f"failed quota: {name}: {missing}")
        if any(key not in (status.get("used") or {}) for key in tracked):
            raise refuse(attributes, f"status unknown for quota: {name}, resources: {','.join(tracked)}")
        return True

    @staticmethod
    def _charged(attributes: Attributes, quota: JsonObject, delta: Usage) -> Usage:
        """What of the quota would be used afterwards, as far as it changes."""
        status = quota["status"]
        hard, used = status["hard"], status.get("used") or {}
        requested = {name: amount for name, amount in delta.items() if amount and name in hard}
        after = {name: quantity.parse(used.get(name, 0)) + amount for name, amount in requested.items()}
        exceeded = sorted(name for name, amount in after.items() if amount > quantity.parse(hard[name]))
        if exceeded and attributes.subresource != "status":

            def shown(amounts: dict[str, object]) -> str:
                return ",".join(f"{name}={amounts[name]}" for name in exceeded if name in amounts)

            raise refuse(
                attributes,
                f"exceeded quota: {quota['metadata']['name']}, requested: {shown(dict(requested))}, "
                f"used: {shown(used)}, limited: {shown(hard)}",
            )
        return after

    def _will_be_written(self, attributes: Attributes) -> bool:
        """Whether nothing can go wrong any more: a write that fails later must not be charged."""
        key = f"{attributes.namespace}/{attributes.name}"
        current = self._store.get(attributes.served.bucket, key) if attributes.name else None
        if attributes.operation == "CREATE":
            return current is None
        return current is not None and current.obj is attributes.old

    def _write(self, quota: JsonObject, changes: Usage) -> None:
        registry = self._registry
        status = quota["status"]
        used = {**(status.get("used") or {}), **{name: str(amount) for name, amount in changes.items()}}
        new = {**quota, "metadata": dict(quota["metadata"]), "status": {**status, "used": used}}
        served = registry.resolve("", "v1", "resourcequotas")
        owned = registry.writes.ownership.after_write(
            served, quota, new, _OPTIONS, _CALLER, subresource="status"
        )
        meta = quota["metadata"]
        self._store.update(_BUCKET, f"{meta['namespace']}/{meta['name']}", owned)


def _growth(new: Usage, old: Usage) -> Usage:
    """What is used more than before; what has become less is not given back here."""
    return {name: max(amount - old.get(name, _ZERO), _ZERO) for name, amount in new.items()}
