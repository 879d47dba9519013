"""Gives each namespace its default service account, and the root certificate that its pods verify with."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from holokube.kube.errors import AlreadyExists, Forbidden, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource, MapFunction, enqueue_self
from holokube.workloads import service_account_decisions as decisions

NAME: Final = "serviceaccount-controller"
ROOT_CA_NAME: Final = "root-ca-certificate-publisher-controller"


class ServiceAccountReconciler:
    """Makes the default account of one namespace."""

    def __init__(self, client: Client, informers: InformerSet) -> None:
        self._client = client
        self._namespaces = informers.get(NAMESPACES).lister
        self._accounts = informers.get(SERVICE_ACCOUNTS).lister

    async def reconcile(self, namespace: str) -> None:
        if not decisions.is_active(self._namespaces.by_key(namespace)):
            return
        if self._accounts.get(decisions.DEFAULT_ACCOUNT, namespace) is not None:
            return
        try:
            await self._client.create(SERVICE_ACCOUNTS, decisions.account(namespace))
        except (AlreadyExists, NotFound):
            return
        except Forbidden as error:
            if not is_terminating(error):
                raise


class RootCaReconciler:
    """Keeps the certificate in one namespace."""

    def __init__(self, client: Client, informers: InformerSet, root_ca: str) -> None:
        self._client = client
        self._root_ca = root_ca
        self._namespaces = informers.get(NAMESPACES).lister
        self._maps = informers.get(CONFIG_MAPS).lister

    async def reconcile(self, namespace: str) -> None:
        if not decisions.is_active(self._namespaces.by_key(namespace)):
            return
        found = self._maps.get(decisions.ROOT_CA, namespace)
        wanted = decisions.root_ca_map(namespace, self._root_ca, found)
        if wanted is None:
            return
        try:
            if found is None:
                await self._client.create(CONFIG_MAPS, wanted)
            else:
                await self._client.update(CONFIG_MAPS, wanted)
        except (AlreadyExists, NotFound):
            return  # The cache is behind, and the change on its way to us.
        except Forbidden as error:
            if not is_terminating(error):
                raise


def is_terminating(error: Forbidden) -> bool:
    """Whether a create was refused because the namespace is on its way out."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _namespaces_with(name: str) -> MapFunction[str]:
    """Maps the objects of that name to the namespace they are in."""

    def keys(obj: JsonObject) -> list[str]:
        return [obj["metadata"]["namespace"]] if obj["metadata"]["name"] == name else []

    return keys


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
) -> Controller[str]:
    """The controller of default service accounts."""
    reconciler = ServiceAccountReconciler(client, informers)
    return Controller(
        clock, NAME, reconciler.reconcile,
        sources=[
            InformerSource(informers.get(NAMESPACES), enqueue_self),
            InformerSource(informers.get(SERVICE_ACCOUNTS), _namespaces_with(decisions.DEFAULT_ACCOUNT)),
        ],
    )  # fmt: skip


def build_root_ca(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
    *,
    root_ca: str,
) -> Controller[str]:
    """The controller of ``kube-root-ca.crt``; ``root_ca`` is the certificate as PEM text."""
    reconciler = RootCaReconciler(client, informers, root_ca)
    return Controller(
        clock, ROOT_CA_NAME, reconciler.reconcile,
        sources=[
            InformerSource(informers.get(NAMESPACES), enqueue_self),
            InformerSource(informers.get(CONFIG_MAPS), _namespaces_with(decisions.ROOT_CA)),
        ],
    )  # fmt: skip
