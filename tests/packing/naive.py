"""The filters once more, as slow and plain as possible: loops over objects, nothing remembered, no arrays.

Written from upstream's rules without any of the engine's parts, so that both are unlikely to err alike. Volumes
are left out; they have table tests.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

JsonObject = dict[str, Any]
_UNITS = {"m": Fraction(1, 1000), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "": Fraction(1)}


class NaiveCluster:
    def __init__(self) -> None:
        self.nodes: dict[str, JsonObject] = {}
        self.pods: dict[str, JsonObject] = {}
        self.namespaces: dict[str, dict[str, str]] = {}

    def feasible(self, pod: JsonObject) -> set[str]:
        return {name for name, node in self.nodes.items() if self._fits(pod, node)}

    def _fits(self, pod: JsonObject, node: JsonObject) -> bool:
        return (
            _schedulable(pod, node)
            and pod["spec"].get("nodeName", "") in ("", node["metadata"]["name"])
            and _tolerated(pod, node)
            and _selected(pod, node)
            and self._ports_free(pod, node)
            and self._has_room(pod, node)
            and self._spread(pod, node)
            and self._affinity(pod, node)
        )

    def _on(self, node: JsonObject) -> list[JsonObject]:
        return [p for p in self.pods.values() if p["spec"]["nodeName"] == node["metadata"]["name"]]

    def _ports_free(self, pod: JsonObject, node: JsonObject) -> bool:
        taken = [port for other in self._on(node) for port in _ports(other)]
        for ip, protocol, number in _ports(pod):
            for other_ip, other_protocol, other_number in taken:
                same = protocol == other_protocol and number == other_number
                if same and (ip == other_ip or "0.0.0.0" in (ip, other_ip)):
                    return False
        return True

    def _has_room(self, pod: JsonObject, node: JsonObject) -> bool:
        offered = node["status"]["allocatable"]
        others = self._on(node)
        if len(others) + 1 > int(offered["pods"]):
            return False
        for name, amount in _requests(pod).items():
            used = sum((_requests(other).get(name, Fraction(0)) for other in others), Fraction(0))
            if amount > 0 and amount > _amount(offered.get(name, "0")) - used:
                return False
        return True

    def _spread(self, pod: JsonObject, node: JsonObject) -> bool:
        constraints = pod["spec"].get("topologySpreadConstraints", [])
        hard = [c for c in constraints if c["whenUnsatisfiable"] == "DoNotSchedule"]
        keys = [c["topologyKey"] for c in hard]
        for constraint in hard:
            key = constraint["topologyKey"]
            if key not in node["metadata"]["labels"]:
                return False
            counts: dict[str, int] = {}
            for other in self.nodes.values():
                labels = other["metadata"]["labels"]
                if any(k not in labels for k in keys):
                    continue
                if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not _selected(pod, other):
                    continue
                if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor" and not _tolerated(pod, other):
                    continue
                counts.setdefault(labels[key], 0)
                for neighbour in self._on(other):
                    if (
                        "deletionTimestamp" not in neighbour["metadata"]
                        and neighbour["metadata"]["namespace"] == pod["metadata"]["namespace"]
                        and not _is_empty(constraint, pod)
                        and _spread_selects(constraint, pod, neighbour)
                    ):
                        counts[labels[key]] += 1
            least = min(counts.values(), default=2**31 - 1)
            if len(counts) < constraint.get("minDomains", 1):
                least = 0
            own = 1 if _spread_selects(constraint, pod, pod) else 0
            if counts.get(node["metadata"]["labels"][key], 0) + own - least > constraint["maxSkew"]:
                return False
        return True

    def _affinity(self, pod: JsonObject, node: JsonObject) -> bool:
        labels = node["metadata"]["labels"]
        friends = _terms(pod, "podAffinity")
        matching = [p for p in self._placed() if friends and all(self._means(t, pod, p) for t in friends)]
        company = True
        for term in friends:
            key = term["topologyKey"]
            if key not in labels:
                return False
            if not any(self._labels_of(p).get(key) == labels[key] for p in matching):
                company = False
        if not company:
            found = any(t["topologyKey"] in self._labels_of(p) for p in matching for t in friends)
            if found or not all(self._means(t, pod, pod) for t in friends):
                return False
        for term in _terms(pod, "podAntiAffinity"):
            if self._near(term, pod, labels):
                return False
        for other in self._placed():
            for term in _terms(other, "podAntiAffinity"):
                key = term["topologyKey"]
                same = key in labels and self._labels_of(other).get(key) == labels[key]
                if same and self._means_incoming(term, other, pod):
                    return False
        return True

    def _near(self, term: JsonObject, pod: JsonObject, labels: dict[str, str]) -> bool:
        key = term["topologyKey"]
        if key not in labels:
            return False
        return any(
            self._means(term, pod, other) and self._labels_of(other).get(key) == labels[key]
            for other in self._placed()
        )

    def _placed(self) -> list[JsonObject]:
        return [p for p in self.pods.values() if p["spec"]["nodeName"] in self.nodes]

    def _labels_of(self, pod: JsonObject) -> dict[str, str]:
        labels: dict[str, str] = self.nodes[pod["spec"]["nodeName"]]["metadata"]["labels"]
        return labels

    def _means(self, term: JsonObject, owner: JsonObject, other: JsonObject) -> bool:
        namespace = other["metadata"]["namespace"]
        selector = term.get("namespaceSelector")
        listed = term.get("namespaces") or ([owner["metadata"]["namespace"]] if selector is None else [])
        by_label = selector is not None and (
            _selects(selector, {})
            or (namespace in self.namespaces and _selects(selector, self.namespaces[namespace]))
        )
        return (namespace in listed or by_label) and _selects(term.get("labelSelector"), other["metadata"]["labels"])

    def _means_incoming(self, term: JsonObject, owner: JsonObject, pod: JsonObject) -> bool:
        namespace = pod["metadata"]["namespace"]
        selector = term.get("namespaceSelector")
        listed = term.get("namespaces") or ([owner["metadata"]["namespace"]] if selector is None else [])
        by_label = selector is not None and _selects(selector, self.namespaces.get(namespace, {}))
        return (namespace in listed or by_label) and _selects(term.get("labelSelector"), pod["metadata"]["labels"])


def _amount(text: str) -> Fraction:
    for suffix, unit in _UNITS.items():
        if suffix and text.endswith(suffix):
            return Fraction(text[: -len(suffix)]) * unit
    return Fraction(text)


def _requests(pod: JsonObject) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for container in pod["spec"]["containers"]:
        for name, text in container["resources"]["requests"].items():
            total[name] = total.get(name, Fraction(0)) + _amount(text)
    return total


def _ports(pod: JsonObject) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container["ports"]
        if port.get("hostPort")
    ]


def _bears(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def _tolerated(pod: JsonObject, node: JsonObject) -> bool:
    tolerations = pod["spec"].get("tolerations", [])
    return all(
        any(_bears(toleration, taint) for toleration in tolerations)
        for taint in node["spec"]["taints"]
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def _schedulable(pod: JsonObject, node: JsonObject) -> bool:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return not node["spec"]["unschedulable"] or any(_bears(t, taint) for t in pod["spec"].get("tolerations", []))


def _selected(pod: JsonObject, node: JsonObject) -> bool:
    labels, name = node["metadata"]["labels"], node["metadata"]["name"]
    for key, value in pod["spec"].get("nodeSelector", {}).items():
        if labels.get(key) != value:
            return False
    required = pod["spec"].get("affinity", {}).get("nodeAffinity")
    if required is None:
        return True
    for term in required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]:
        expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
        if not expressions and not fields:
            continue
        if all(_holds(e, labels) for e in expressions) and all(
            (name in f["values"]) == (f["operator"] == "In") for f in fields
        ):
            return True
    return False


def _holds(expression: JsonObject, labels: dict[str, str]) -> bool:
    value, operator = labels.get(expression["key"]), expression["operator"]
    if operator == "In":
        return value in expression["values"]
    if operator == "NotIn":
        return value is None or value not in expression["values"]
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    bound = int(expression["values"][0])
    return int(value) > bound if operator == "Gt" else int(value) < bound


def _selects(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items()) and all(
        _holds(e, labels) for e in selector.get("matchExpressions", [])
    )


def _spread_selects(constraint: JsonObject, pod: JsonObject, other: JsonObject) -> bool:
    own, labels = pod["metadata"]["labels"], other["metadata"]["labels"]
    keys = [key for key in constraint.get("matchLabelKeys", []) if key in own]
    return _selects(constraint["labelSelector"], labels) and all(labels.get(key) == own[key] for key in keys)


def _is_empty(constraint: JsonObject, pod: JsonObject) -> bool:
    own = pod["metadata"]["labels"]
    merged = any(key in own for key in constraint.get("matchLabelKeys", []))
    return constraint["labelSelector"] == {} and not merged


def _terms(pod: JsonObject, kind: str) -> list[JsonObject]:
    terms: list[JsonObject] = (
        pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    )
    return terms
