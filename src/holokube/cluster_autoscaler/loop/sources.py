"""Where the loop looks: the informers of everything that decisions depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
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
from holokube.cluster_autoscaler.observation import ControllerKey, Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

PRIORITY_EXPANDER_MAP = "cluster-autoscaler-priority-expander"

_STORAGE = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS,
            CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS)
_CONTROLLERS = (REPLICATION_CONTROLLERS, REPLICA_SETS, JOBS, STATEFUL_SETS)

_log = get_logger("holokube.cluster_autoscaler.loop")


class _Listing:
    """The objects of informers as a tuple, which is the same one as long as nothing changes."""

    def __init__(self, *informers: Informer) -> None:
        self._informers = informers
        self._listed: tuple[JsonObject, ...] | None = None
        for informer in informers:
            informer.add_handler(self._on_change)

    def _on_change(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not new:
            self._listed = None

    def all(self, place: Callable[[JsonObject], int] | None = None) -> tuple[JsonObject, ...]:
        """The objects; ``place`` puts them in another order than that in which they were first seen."""
        if self._listed is None:
            found = [one for informer in self._informers for one in informer.lister.list()]
            self._listed = tuple(found if place is None else sorted(found, key=place))
        return self._listed


class _Controllers:
    """Controllers by kind and name. What was handed out does not change any more."""

    def __init__(self, informers: Sequence[Informer]) -> None:
        self._known: dict[ControllerKey, JsonObject] = {}
        self._is_shared = False
        for informer in informers:
            informer.add_handler(partial(self._on_change, informer.resource.kind))

    def _on_change(self, kind: str, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        if self._is_shared:
            self._known, self._is_shared = dict(self._known), False
        key = kind, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]
        if new is None:
            self._known.pop(key, None)
        else:
            self._known[key] = new

    def all(self) -> Mapping[ControllerKey, JsonObject]:
        self._is_shared = True
        return self._known


class Sources:
    """The informers; make it before the informers are started."""

    def __init__(self, client: Client, informers: InformerSet, options: AutoscalerOptions) -> None:
        self._client = client
        self._namespace = options.namespace
        self._wants_priorities = "priority" in options.expander
        self._informers = informers
        self.nodes: Informer = informers.get(NODES)
        self.pods: Informer = informers.get(PODS)
        others = [informers.get(resource) for resource in (DAEMON_SETS, POD_DISRUPTION_BUDGETS, NAMESPACES)]
        controllers = [informers.get(resource) for resource in _CONTROLLERS]
        storage = [informers.get(resource) for resource in _STORAGE]
        self.others = [*others, *controllers, *storage]
        """All but those of nodes and pods."""
        self._nodes_listed = _Listing(self.nodes)
        self._daemon_sets, self._pdbs, self._namespaces = map(_Listing, others)
        self._controllers = _Controllers(controllers)
        self._storage = _Listing(*storage)

    @property
    def place(self) -> Callable[[JsonObject], int] | None:
        """Puts nodes and pods in an order of its own; None for that in which they were first seen."""
        return None

    async def synced(self) -> None:
        """Waits until everything was listed once."""
        await self._informers.synced()

    def look(self, now_s: float) -> Observation:
        """The cluster but for its pods, as the informers know it at this moment; costs what has changed."""
        return Observation(
            now_s=now_s,
            nodes=self._nodes_listed.all(self.place),
            daemon_sets=self._daemon_sets.all(),
            pdbs=self._pdbs.all(),
            controllers=self._controllers.all(),
            namespaces=self._namespaces.all(),
            storage=self._storage.all(),
        )

    def observe(self, now_s: float) -> Observation:
        """The whole cluster."""
        pods = self.pods.lister.list()
        return replace(self.look(now_s), pods=tuple(pods if self.place is None else sorted(pods, key=self.place)))

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
