"""Webhook configurations, compiled: which webhooks a write may concern is looked up in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from holokube.apiserver.admission.base import NAMESPACES, Attributes, Operation
from holokube.apiserver.admission.webhooks.conditions import Condition, compile_conditions
from holokube.apiserver.resources import Served
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

# One kind of object may be served under two names; upstream keeps both in one place.
_TWINS = {("", "events"): ("events.k8s.io", "v1"), ("events.k8s.io", "events"): ("", "v1")}
_DEFAULT_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests a webhook wants."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    def matches(self, served: Served, subresource: str, operation: Operation) -> bool:
        if self.scope != "*" and (self.scope == "Namespaced") != served.namespaced:
            return False
        return (
            (operation in self.operations or "*" in self.operations)
            and (served.group in self.groups or "*" in self.groups)
            and (served.version in self.versions or "*" in self.versions)
            and any(
                name in ("*", served.plural) and below in ("*", subresource) for name, below in self.resources
            )
        )


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of one configuration."""

    id: str
    name: str
    client: JsonObject
    rules: tuple[Rule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    problem: str
    """Why its selectors cannot be used; empty if they can."""
    conditions: tuple[Condition, ...]
    ignores_failures: bool
    finds_equivalents: bool
    runs_again: bool
    side_effects: str
    timeout_s: int
    review_versions: tuple[str, ...]


class Candidate(NamedTuple):
    """A webhook whose rules match, and the version in which it wants to see the object."""

    hook: Hook
    served: Served


@dataclass(slots=True)
class Hooks:
    """All webhooks of one sort in the order in which they are called."""

    hooks: tuple[Hook, ...] = ()
    _candidates: dict[tuple[str, str, str, str, Operation], tuple[Candidate, ...]] = field(
        default_factory=dict
    )

    def candidates(self, registry: Registry, attributes: Attributes) -> tuple[Candidate, ...]:
        served = attributes.served
        key = (served.group, served.version, served.plural, attributes.subresource, attributes.operation)
        found = self._candidates.get(key)
        # A CRD may have changed since: then it is another type, served in other versions.
        if found is None or served.type.custom:
            found = self._candidates[key] = self._find(
                registry, served, attributes.subresource, attributes.operation
            )
        return found

    def _find(
        self, registry: Registry, served: Served, subresource: str, operation: Operation
    ) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        others = [other for other in _equivalents(registry, served) if _has(other, subresource)]
        for hook in self.hooks:
            if any(rule.matches(served, subresource, operation) for rule in hook.rules):
                found.append(Candidate(hook, served))
            elif hook.finds_equivalents:
                pairs = ((rule, other) for rule in hook.rules for other in others)
                match = next((o for r, o in pairs if r.matches(o, subresource, operation)), None)
                if match is not None:
                    found.append(Candidate(hook, match))
        return tuple(found)


def _equivalents(registry: Registry, served: Served) -> list[Served]:
    """Other groups and versions in which the same objects are served."""
    found = [Served(served.type, version) for version in served.type.versions if version != served.version]
    twin = _TWINS.get((served.group, served.plural))
    other = registry.table.find(*twin, served.plural) if twin is not None else None
    return [*found, other] if other is not None else found


def _has(served: Served, subresource: str) -> bool:
    return not subresource or subresource in served.info.subresources


def compile_hooks(configurations: Sequence[JsonObject]) -> Hooks:
    """All webhooks, by the name of their configuration and then as written."""
    hooks: list[Hook] = []
    for configuration in sorted(configurations, key=lambda one: one["metadata"]["name"]):
        for index, webhook in enumerate(configuration.get("webhooks") or ()):
            hooks.append(_compile(f"{configuration['metadata']['name']}/{index}", webhook))
    return Hooks(tuple(hooks))


def _compile(id: str, webhook: JsonObject) -> Hook:
    problem = ""
    namespaces = objects = LabelSelector.everything()
    try:
        namespaces = LabelSelector.from_json(webhook.get("namespaceSelector") or {})
        objects = LabelSelector.from_json(webhook.get("objectSelector") or {})
    except SelectorError as error:
        problem = str(error)
    return Hook(
        id=id,
        name=webhook.get("name", ""),
        client=webhook.get("clientConfig") or {},
        rules=tuple(_rule(rule) for rule in webhook.get("rules") or ()),
        namespaces=namespaces,
        objects=objects,
        problem=problem,
        conditions=compile_conditions(webhook.get("matchConditions") or ()),
        ignores_failures=webhook.get("failurePolicy") == "Ignore",
        finds_equivalents=webhook.get("matchPolicy", "Equivalent") == "Equivalent",
        runs_again=webhook.get("reinvocationPolicy") == "IfNeeded",
        side_effects=webhook.get("sideEffects", "Unknown"),
        timeout_s=webhook.get("timeoutSeconds", _DEFAULT_TIMEOUT_S),
        review_versions=tuple(webhook.get("admissionReviewVersions") or ()),
    )


def _rule(rule: JsonObject) -> Rule:
    resources = []
    for written in rule.get("resources") or ():
        name, _, below = written.partition("/")
        resources.append((name, below))
    return Rule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        tuple(resources),
        rule.get("scope") or "*",
    )


def namespace_matches(hook: Hook, attributes: Attributes, name: str) -> bool | None:
    """Whether the write happens in a namespace that the webhook selects; None if that namespace is gone.

    Cluster-scoped objects are in no namespace, so nothing exempts them. A namespace is selected by its own
    labels.
    """
    if hook.namespaces.is_empty or not name:
        return True
    resource = (attributes.served.group, attributes.served.plural)
    if resource == NAMESPACES and not attributes.subresource and attributes.obj is not None:
        return hook.namespaces.matches(attributes.obj["metadata"].get("labels"))
    found = attributes.lookup.find("", "namespaces", "", name)
    if found is None:
        return None
    return hook.namespaces.matches(found["metadata"].get("labels"))


def object_matches(hook: Hook, new: JsonObject | None, old: JsonObject | None) -> bool:
    """Either state of the object will do."""
    if hook.objects.is_empty:
        return True
    return any(
        hook.objects.matches((obj.get("metadata") or {}).get("labels"))
        for obj in (new, old)
        if obj is not None
    )
