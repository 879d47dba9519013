"""Where the loop looks: the informers of everything that decisions depend on."""

from __future__ import annotations

from collections.abc import Mapping

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import (
    CONFIG_MAPS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DAEMON_SETS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

PRIORITY_EXPANDER_MAP = "cluster-autoscaler-priority-expander"

_STORAGE = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS,
            CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS)
_CONTROLLERS = (REPLICATION_CONTROLLERS, REPLICA_SETS, JOBS, STATEFUL_SETS)

_log = get_logger("holokube.cluster_autoscaler.loop")


class Sources:
    """The informers; make it before the informers are started."""

    def __init__(self, client: Client, informers: InformerSet, options: AutoscalerOptions) -> None:
        self._client = client
        self._namespace = options.namespace
        self._wants_priorities = "priority" in options.expander
        self._informers = informers
        self.nodes: Informer = informers.get(NODES)
        self.pods: Informer = informers.get(PODS)
        self._daemon_sets = informers.get(DAEMON_SETS)
        self._pdbs = informers.get(POD_DISRUPTION_BUDGETS)
        self._namespaces = informers.get(NAMESPACES)
        self._controllers = [informers.get(resource) for resource in _CONTROLLERS]
        self._storage = [informers.get(resource) for resource in _STORAGE]

    @property
    def others(self) -> list[Informer]:
        """All but those of nodes and pods."""
        return [self._daemon_sets, self._pdbs, self._namespaces, *self._controllers, *self._storage]

    async def synced(self) -> None:
        """Waits until everything was listed once."""
        await self._informers.synced()

    def observe(self, now_s: float) -> Observation:
        """The cluster as the informers know it at this moment."""
        return Observation(
            now_s=now_s,
            nodes=tuple(self.nodes.lister.list()),
            pods=tuple(self.pods.lister.list()),
            daemon_sets=tuple(self._daemon_sets.lister.list()),
            pdbs=tuple(self._pdbs.lister.list()),
            controllers={
                (informer.resource.kind, found["metadata"].get("namespace") or "", found["metadata"]["name"]): found
                for informer in self._controllers for found in informer.lister.list()
            },
            namespaces=tuple(self._namespaces.lister.list()),
            storage=tuple(found for informer in self._storage for found in informer.lister.list()),
        )

    async def config_maps(self) -> Mapping[str, JsonObject]:
        """The settings of expanders, which are read anew each time they are needed."""
        if not self._wants_priorities:
            return {}
        try:
            found = await self._client.get(CONFIG_MAPS, PRIORITY_EXPANDER_MAP, self._namespace)
        except NotFound:
            return {}
        except HolokubeError as error:
            _log.warning("The priorities of groups cannot be read", config_map=PRIORITY_EXPANDER_MAP, error=str(error))
            return {}
        return {PRIORITY_EXPANDER_MAP: found}
