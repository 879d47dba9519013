"""The order in which admission plugins and webhooks see a write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from holokube.apiserver.admission.base import Attributes, Operation, Plugin
from holokube.apiserver.admission.certificate_subject_restriction import CertificateSubjectRestriction
from holokube.apiserver.admission.claim_resize import PersistentVolumeClaimResize
from holokube.apiserver.admission.default_class import DefaultIngressClass, DefaultStorageClass
from holokube.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from holokube.apiserver.admission.limit_ranger import LimitRanger
from holokube.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from holokube.apiserver.admission.node_declared_features import NodeDeclaredFeatureValidator
from holokube.apiserver.admission.pod_resize import PodResizeValidator
from holokube.apiserver.admission.pod_security import PodSecurity
from holokube.apiserver.admission.pod_topology_labels import PodTopologyLabels
from holokube.apiserver.admission.priority import Priority
from holokube.apiserver.admission.resource_quota import ResourceQuota
from holokube.apiserver.admission.runtime_class import RuntimeClass
from holokube.apiserver.admission.service_account import ServiceAccount
from holokube.apiserver.admission.storage_protection import StorageObjectInUseProtection
from holokube.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from holokube.apiserver.admission.webhooks.dispatch import Rounds, Webhooks
from holokube.apiserver.admission.webhooks.services import ServiceResolver
from holokube.apiserver.resources import Served
from holokube.base.clock import Clock
from holokube.store.values import Tally

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_UNSEEN_KEPT: Final = 4096

Step = Callable[[Attributes], None]


class Route(NamedTuple):
    """What has something to say about one kind of write."""

    mutating: tuple[Step, ...]
    validating: tuple[Step, ...]
    last: tuple[Step, ...]
    """Validate when the webhooks have: what is charged here must not be refused afterwards."""
    changes: bool
    """Whether one of the mutating steps may change the object."""
    changes_inside: bool
    """Whether it may change even the fields of the spec in place."""
    plugins: tuple[Plugin, ...]
    unsettles: bool
    """Whether one of the mutating steps may leave something that has to be defaulted."""


class AdmissionChain:
    """Built-in plugins, then webhooks; mutating ones first.

    Where nothing is configured that a write concerns, it costs a few microseconds: plugins are chosen by a
    table, and webhooks, quotas and limit ranges are looked for only where there are any.
    """

    def __init__(
        self,
        clock: Clock,
        lookup: Registry,
        plugins: Sequence[Plugin] | None = None,
        *,
        strict_service_accounts: bool = False,
    ) -> None:
        self._clock = clock
        self._lookup = lookup
        self._service_account = ServiceAccount(lookup.rng.fork("admission"), strict=strict_service_accounts)
        self._priority = Priority(lookup.store)
        self._plugins: tuple[Plugin, ...] = self._built_in() if plugins is None else tuple(plugins)
        self._routes: dict[tuple[str, str, Operation, str], Route] = {}
        self._webhooks = Webhooks(lookup)
        self._unseen: dict[tuple[object, ...], tuple[Tally, int]] = {}
        """Which writes nobody has a say about, by namespace, and how much had happened when that was found out to all
        that decides on it."""
        self.generation = 0
        """Moves whenever the chain itself becomes another, and might do something else to the same object."""

    @property
    def strict_service_accounts(self) -> bool:
        """Whether a pod needs an existing service account, and gets its token mounted, as upstream."""
        return self._service_account.strict

    @strict_service_accounts.setter
    def strict_service_accounts(self, strict: bool) -> None:
        self._service_account.strict = strict
        self.generation += 1

    @property
    def assumes_default_service_account(self) -> bool:
        """Whether, if strict, a ``default`` account that nobody has made counts as made.

        For servers without the controller that makes one for each namespace.
        """
        return self._service_account.assumes_default

    @assumes_default_service_account.setter
    def assumes_default_service_account(self, assumes: bool) -> None:
        self._service_account.assumes_default = assumes

    @property
    def service_resolver(self) -> ServiceResolver | None:
        """Finds webhooks that are named by Service: ``(namespace, name, port) -> (host, port) | None``."""
        return self._webhooks.service_resolver

    @service_resolver.setter
    def service_resolver(self, resolver: ServiceResolver | None) -> None:
        self._webhooks.service_resolver = resolver

    def add(self, plugin: Plugin) -> None:
        """Have one more plugin called from now on, after all others and before webhooks."""
        self._plugins = (*self._plugins, plugin)
        self._routes.clear()
        self._unseen.clear()
        self.generation += 1

    def _built_in(self) -> tuple[Plugin, ...]:
        """Upstream's plugins in upstream's order."""
        store = self._lookup.store
        return (
            NamespaceLifecycle(),
            LimitRanger(store),
            self._service_account,
            TaintNodesByCondition(),
            PodSecurity(),
            self._priority,
            DefaultTolerationSeconds(),
            DefaultStorageClass(),
            StorageObjectInUseProtection(),
            PersistentVolumeClaimResize(),
            RuntimeClass(),
            CertificateSubjectRestriction(),
            DefaultIngressClass(),
            PodTopologyLabels(),
            NodeDeclaredFeatureValidator(),
            PodResizeValidator(),
            ResourceQuota(self._clock, self._lookup),
        )

    def spoils_spec(self, served: Served) -> bool:
        """Whether a plugin might change parts of an updated object's spec in place; webhooks never do."""
        return self._route_of(served, "UPDATE", "").changes_inside

    def may_change(self, attributes: Attributes) -> bool:
        """Whether anybody might change the object in ``mutate``, and not only refuse it."""
        return self._route(attributes).changes or bool(self._webhooks.mutating(attributes))

    def may_unsettle(self, attributes: Attributes) -> bool:
        """Whether what anybody makes of the object in ``mutate`` might have to be defaulted once more."""
        return self._route(attributes).unsettles or bool(self._webhooks.mutating(attributes))

    def passes(self, attributes: Attributes) -> bool:
        """As ``mutate`` and ``validate`` in one, for a write that is known to be valid, where nobody may change it and
        no webhook has a say; False, with nothing done, where somebody has."""
        route, webhooks = self._route(attributes), self._webhooks
        if route.changes or webhooks.mutating(attributes) or webhooks.validating(attributes):
            return False
        for steps in (route.mutating, route.validating, route.last):
            for step in steps:
                step(attributes)
        return True

    def passes_as_it_was(self, attributes: Attributes) -> bool:
        """As ``passes``, for an update that leaves the spec to the very object, of what is valid: where plugins may set
        fields of the spec, they get a copy, and False is answered if they do, with nothing done."""
        route, webhooks = self._route(attributes), self._webhooks
        if route.changes_inside or webhooks.mutating(attributes) or webhooks.validating(attributes):
            return False
        obj = attributes.obj
        assert obj is not None
        spec = obj["spec"]
        if route.changes:
            obj["spec"] = dict(spec)
        for step in route.mutating:
            step(attributes)
        if attributes.obj is not obj or obj["spec"] != spec:
            return False
        obj["spec"] = spec
        for steps in (route.validating, route.last):
            for step in steps:
                step(attributes)
        return True

    def has_no_say(
        self, served: Served, operation: Operation, subresource: str, namespace: str,
        besides: type[Plugin] | None = None, *, is_settled: bool = False,
    ) -> bool:  # fmt: skip
        """Whether nobody, ``besides`` one plugin, would change or refuse such a write, whatever the object is; it need
        not be shown then. Of an object that ``is_settled`` the spec stays the very same."""
        key = (served.qualified_name, operation, subresource, namespace, besides, is_settled)
        known = self._unseen.get(key)
        if known is not None and known[0].count == known[1]:
            return True
        if self._webhooks.there_are:
            return False
        heeded: frozenset[str] | None = self._webhooks.buckets
        is_settled_pod = is_settled and served.bucket == "pods"
        for plugin in self._route_of(served, operation, subresource).plugins:
            if type(plugin) is besides or (is_settled_pod and plugin.leaves_settled_pods):
                continue
            if not plugin.has_no_say(self._lookup, operation, namespace):
                return False
            heeded = None if heeded is None or plugin.heeds is None else heeded | plugin.heeds
        if heeded is not None:
            if len(self._unseen) >= _UNSEEN_KEPT:
                self._unseen.clear()
            tally = self._lookup.store.tally(heeded)
            self._unseen[key] = tally, tally.count
        return True

    def admits_at_once(self, attributes: Attributes) -> bool:
        """As ``mutate`` and ``validate`` in one, for a write that is not checked in between; False, with nothing done,
        where webhooks might have to be waited for."""
        if self._webhooks.there_are:
            return False
        route = self._route(attributes)
        for steps in (route.mutating, route.validating, route.last):
            for step in steps:
                step(attributes)
        return True

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:
        """For a creation that everybody let pass: the buckets of all other objects that had a part in that, among them
        those that webhooks would be in. As long as these stay as they are, an equal object passes in the same way.
        None if that cannot be said."""
        if self._webhooks.there_are:
            return None
        found = self._webhooks.buckets
        for plugin in self._route(attributes).plugins:
            looked_at = plugin.looked_at(attributes)
            if looked_at is None:
                return None
            found |= looked_at
        return found

    def goes_by_spec(self, attributes: Attributes) -> bool:
        """Whether everybody does the same to all pods with the same spec that are created."""
        return all(plugin.goes_by_spec for plugin in self._route(attributes).plugins)

    async def mutate(self, attributes: Attributes) -> None:
        """Let everybody change the object, once more if a webhook changed it behind the others' backs."""
        if not attributes.namespace and attributes.obj is not None and attributes.served.type.namespaced:
            attributes.namespace = (attributes.obj.get("metadata") or {}).get("namespace", "")
        steps = self._route(attributes).mutating
        for step in steps:
            step(attributes)
        candidates = self._webhooks.mutating(attributes)
        if not candidates:
            return
        rounds = Rounds()
        await self._webhooks.mutate(candidates, attributes, rounds)
        if rounds.needed:
            rounds.second = True
            for step in steps:
                step(attributes)
            await self._webhooks.mutate(candidates, attributes, rounds)

    async def validate(self, attributes: Attributes) -> None:
        """Let everybody refuse the object."""
        route = self._route(attributes)
        for step in route.validating:
            step(attributes)
        candidates = self._webhooks.validating(attributes)
        if candidates:
            await self._webhooks.validate(candidates, attributes)
        for step in route.last:
            step(attributes)

    def _route(self, attributes: Attributes) -> Route:
        return self._route_of(attributes.served, attributes.operation, attributes.subresource)

    def _route_of(self, served: Served, operation: Operation, subresource: str) -> Route:
        key = (served.group, served.plural, operation, subresource)
        route = self._routes.get(key)
        if route is None:
            concerned = [p for p in self._plugins if p.wants(key[:2], operation, subresource)]
            validating = [p for p in concerned if type(p).validate is not Plugin.validate]
            route = self._routes[key] = Route(
                tuple(p.mutate for p in concerned if type(p).mutate is not Plugin.mutate),
                tuple(p.validate for p in validating if not p.runs_last),
                tuple(p.validate for p in validating if p.runs_last),
                any(type(p).mutate is not Plugin.mutate and not p.only_refuses for p in concerned),
                any(
                    type(p).mutate is not Plugin.mutate
                    and not p.only_refuses
                    and not (p.only_sets_on_update and operation == "UPDATE" and not subresource)
                    for p in concerned
                ),
                tuple(concerned),
                any(
                    type(p).mutate is not Plugin.mutate and not p.only_refuses and not p.sets_what_is_settled
                    for p in concerned
                ),
            )
        return route

    async def close(self) -> None:
        """Close connections to webhooks, and stop watching configurations."""
        self._priority.close()
        await self._webhooks.close()
