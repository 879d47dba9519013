"""RuntimeClass: overhead and scheduling rules that come with a container runtime."""

from __future__ import annotations

from typing import Any

from holokube.apiserver.admission.base import PODS, Attributes, Plugin, refuse
from holokube.kube import quantity
from holokube.kube.types import JsonObject

_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClass(Plugin):
    resources = frozenset({PODS})
    looks_at = frozenset({"runtimeclasses.node.k8s.io"})
    goes_by_spec = True

    def mutate(self, attributes: Attributes) -> None:
        spec = (attributes.obj or {}).get("spec")
        if not spec or "runtimeClassName" not in spec:
            return
        found = self._find(attributes, spec)
        if found.get("overhead") is not None:
            fixed = found["overhead"].get("podFixed") or {}
            if spec.get("overhead") and not _same_amounts(spec["overhead"], fixed):
                raise refuse(attributes, _OTHER_OVERHEAD)
            if fixed:
                spec["overhead"] = dict(fixed)
        if found.get("scheduling") is not None:
            self._schedule(attributes, spec, found["scheduling"])

    def validate(self, attributes: Attributes) -> None:
        spec = (attributes.obj or {}).get("spec")
        if not spec or ("runtimeClassName" not in spec and "overhead" not in spec):
            return
        found = self._find(attributes, spec) if "runtimeClassName" in spec else {}
        overhead = spec.get("overhead") or {}
        if found.get("overhead") is not None:
            if not _same_amounts(overhead, found["overhead"].get("podFixed") or {}):
                raise refuse(attributes, _OTHER_OVERHEAD)
        elif overhead:
            raise refuse(
                attributes,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )

    @staticmethod
    def _find(attributes: Attributes, spec: JsonObject) -> JsonObject:
        name = spec["runtimeClassName"]
        found = attributes.lookup.find("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise refuse(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        return found

    @staticmethod
    def _schedule(attributes: Attributes, spec: JsonObject, scheduling: JsonObject) -> None:
        selector: dict[str, str] = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                raise refuse(
                    attributes,
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}",
                )
        if selector:
            spec["nodeSelector"] = selector
        tolerations = _merged([*(spec.get("tolerations") or []), *(scheduling.get("tolerations") or [])])
        if tolerations:
            spec["tolerations"] = tolerations


def _same_amounts(a: JsonObject, b: JsonObject) -> bool:
    return a.keys() == b.keys() and all(quantity.parse(a[name]) == quantity.parse(b[name]) for name in a)


def _merged(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that another one covers; of equal ones the first stays."""
    merged: list[dict[str, Any]] = []
    for index, one in enumerate(tolerations):
        if any(_covers(kept, one) for kept in merged):
            continue
        if any(other != one and _covers(other, one) for other in tolerations[index + 1 :]):
            continue
        merged.append(one)
    return merged


def _covers(wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    if narrow.get("key") != wide.get("key") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        lasts_s = narrow.get("tolerationSeconds")
        if lasts_s is None or lasts_s > wide["tolerationSeconds"]:
            return False
    if operator == "Equal":
        return bool(narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))
    return bool(operator == "Exists")
