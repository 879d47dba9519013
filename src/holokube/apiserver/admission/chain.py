"""The order in which admission plugins and webhooks see a write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
from holokube.base.clock import Clock

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

Step = Callable[[Attributes], None]


class Route(NamedTuple):
    """What has something to say about one kind of write."""

    mutating: tuple[Step, ...]
    validating: tuple[Step, ...]
    last: tuple[Step, ...]
    """Validate when the webhooks have: what is charged here must not be refused afterwards."""


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

    @property
    def strict_service_accounts(self) -> bool:
        """Whether a pod needs an existing service account, and gets its token mounted, as upstream."""
        return self._service_account.strict

    @strict_service_accounts.setter
    def strict_service_accounts(self, strict: bool) -> None:
        self._service_account.strict = strict

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
        resource = attributes.served.type
        key = (resource.group, resource.plural, attributes.operation, attributes.subresource)
        route = self._routes.get(key)
        if route is None:
            concerned = [
                p for p in self._plugins if p.wants(key[:2], attributes.operation, attributes.subresource)
            ]
            validating = [p for p in concerned if type(p).validate is not Plugin.validate]
            route = self._routes[key] = Route(
                tuple(p.mutate for p in concerned if type(p).mutate is not Plugin.mutate),
                tuple(p.validate for p in validating if not p.runs_last),
                tuple(p.validate for p in validating if p.runs_last),
            )
        return route

    async def close(self) -> None:
        """Close connections to webhooks, and stop watching configurations."""
        self._priority.close()
        await self._webhooks.close()
