"""Priority: from the name of a class to a number, and one default class at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Plugin, refuse
from holokube.apiserver.admission.bucket_cache import BucketCache
from holokube.kube.types import JsonObject
from holokube.store.store import Store

PRIORITY_CLASSES: Final = ("scheduling.k8s.io", "priorityclasses")
BUCKET: Final = "priorityclasses.scheduling.k8s.io"
# What a pod without a class gets where no class is the default.
_NO_CLASS: Final[JsonObject] = {
    "metadata": {"name": ""},
    "value": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}


class Priority(Plugin):
    resources = frozenset({PODS, PRIORITY_CLASSES})
    operations = CREATE_OR_UPDATE
    only_sets_on_update = True
    looks_at = frozenset({BUCKET})
    goes_by_spec = True
    leaves_settled_pods = True

    def __init__(self, store: Store) -> None:
        self._default = BucketCache(store, BUCKET, _default_class)

    def mutate(self, attributes: Attributes) -> None:
        if attributes.served.type.plural != "pods" or attributes.obj is None:
            return
        spec: JsonObject = attributes.obj.setdefault("spec", {})
        if attributes.operation == "UPDATE":
            before = (attributes.old or {}).get("spec") or {}
            for key in ("priority", "preemptionPolicy"):
                if key not in spec and key in before:
                    spec[key] = before[key]
            return
        self._resolve(attributes, spec)

    def _resolve(self, attributes: Attributes, spec: JsonObject) -> None:
        name = spec.get("priorityClassName")
        if name:
            found = attributes.lookup.find(*PRIORITY_CLASSES, "", name)
            if found is None:
                raise refuse(attributes, f"no PriorityClass with name {name} was found")
        else:
            found = self._default.get()
            name = found["metadata"]["name"]
            if name:
                spec["priorityClassName"] = name
        value = found.get("value", 0)
        given = spec.get("priority")
        if given is not None and given != value:
            raise refuse(
                attributes,
                f"the integer value of priority ({given}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name",
            )
        spec["priority"] = value
        policy = found.get("preemptionPolicy")
        if policy is None:
            return
        given = spec.get("preemptionPolicy")
        if given is not None and given != policy:
            raise refuse(
                attributes,
                f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority "
                f"admission controller computed {policy} from the given PriorityClass name",
            )
        spec["preemptionPolicy"] = policy

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if attributes.served.type.plural == "pods" or obj is None or not obj.get("globalDefault"):
            return
        taken: str = self._default.get()["metadata"]["name"]
        if taken and (attributes.operation == "CREATE" or taken != obj["metadata"].get("name")):
            raise refuse(
                attributes, f"PriorityClass {taken} is already marked as default. Only one default can exist"
            )

    def close(self) -> None:
        self._default.close()


def _default_class(classes: Sequence[JsonObject]) -> JsonObject:
    """Should there be several, the lowest one counts."""
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: one.get("value", 0), default=_NO_CLASS)
