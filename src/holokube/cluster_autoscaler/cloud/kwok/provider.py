"""The kwok cloud provider: a cloud that is made of Node objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kwok.accelerators import gpu_config
from holokube.cluster_autoscaler.cloud.kwok.cleanup import find_nodes, remove_nodes
from holokube.cluster_autoscaler.cloud.kwok.config import KwokConfig
from holokube.cluster_autoscaler.cloud.kwok.group import KwokNodeGroup
from holokube.cluster_autoscaler.cloud.kwok.grouping import Grouping, GroupPlan, plan_groups
from holokube.cluster_autoscaler.cloud.kwok.machines import Machine, Machines
from holokube.cluster_autoscaler.cloud.kwok.marks import FAKE_NODE_REASON, PROVIDER_NAME, annotations_of, group_of
from holokube.cluster_autoscaler.cloud.kwok.pricing import KwokPricing
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.kwok.settings import PRICE
from holokube.cluster_autoscaler.cloud.kwok.sources import read_source
from holokube.cluster_autoscaler.cloud.provider import GpuConfig, NodeGroup, PricingModel, ResourceLimiter
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

_HINT = "Each template is a v1 Node; annotations cluster-autoscaler.kwok.nodegroup/* on it describe its group."
_log = get_logger("holokube.cluster_autoscaler.kwok")


class KwokProvider:
    """Groups of hollow nodes. Templates and configuration are read once, at the start, as upstream does."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informer: Informer,
        rng: Rng,
        plans: Sequence[GroupPlan],
        *,
        config: KwokConfig | None = None,
        resource_limiter: ResourceLimiter | None = None,
        warnings: Sequence[str] = (),
        kube_proxy: bool = False,
    ) -> None:
        self._client = client
        self._machines = Machines(clock, client, informer)
        self._config = config or KwokConfig()
        self._limiter = resource_limiter or ResourceLimiter()
        self._groups = {
            plan.id: KwokNodeGroup(
                clock, self._machines, rng, plan.id, plan.template, plan.settings, kube_proxy=kube_proxy
            )
            for plan in plans
        }
        self._strange_groups: set[str] = set()
        self.warnings = tuple(warnings)
        """What looked like a mistake in the templates or the configuration; it was logged, too."""

    @property
    def name(self) -> str:
        return PROVIDER_NAME

    @property
    def changes(self) -> int:
        """Grows with every change of machines that are no nodes; for those who would rather not look each time."""
        return self._machines.changes

    @property
    def gpu_label(self) -> str:
        return self._config.gpu_label

    def node_groups(self) -> list[NodeGroup]:
        return [*self._groups.values()]

    async def node_group_for_node(self, node: JsonObject) -> NodeGroup | None:
        if FAKE_NODE_REASON not in annotations_of(node):
            return self._groups.get(group_of(node))
        await self._machines.ready()
        found = self._machines.find(node)
        if found is None:
            return None
        return self._groups.get(found.group if isinstance(found, Machine) else group_of(found))

    def group_id_of(self, node: JsonObject) -> str | None:
        """The group of a node by its own account."""
        id_ = group_of(node)
        return id_ if id_ in self._groups else None

    def without_machine(self, nodes: Sequence[JsonObject]) -> frozenset[str]:
        """Those of the nodes that ``has_instance`` denies."""
        return self._machines.lost(nodes)

    async def has_instance(self, node: JsonObject) -> bool:
        """Whether a node of ours is there; of nodes of others nothing is known, so they are taken to be."""
        await self._machines.ready()
        return self._machines.find(node) is not None or not (group_of(node) or FAKE_NODE_REASON in annotations_of(node))

    def pricing(self) -> PricingModel:
        return KwokPricing([*self._groups.values()])

    def resource_limiter(self) -> ResourceLimiter:
        return self._limiter

    def available_gpu_types(self) -> frozenset[str]:
        return self._config.gpu_types

    def node_gpu_config(self, node: JsonObject) -> GpuConfig | None:
        return gpu_config(node, self._config.gpu_label)

    async def refresh(self) -> None:
        """Makes sure that what is counted is there. Sizes need no counting anew: they are never kept."""
        await self._machines.ready()
        await self._machines.check_unseen()
        for group in set(self._machines.groups_of_nodes()) - set(self._groups) - self._strange_groups:
            self._strange_groups.add(group)
            _log.warning("nodes of a group that no template describes are left alone", group=group,
                         hint=f"`holokube cleanup --node-group {group}` removes them")  # fmt: skip

    async def start(self, nodes: Sequence[JsonObject]) -> None:
        """Makes the nodes that groups begin with; ``nodes`` are all nodes of the cluster.

        A group without nodes gets its desired count. Its machines have booted before anybody looks: no autoscaler
        asked for them, so that one would not wait for them either, and buy others in their place. A group that has some
        was left by an earlier run, whose decisions stand: it gets no more than what its minimum lacks.
        """
        self._machines.assume_names(node["metadata"]["name"] for node in nodes)
        there: dict[str, int] = {}
        for node in nodes:
            there[group_of(node)] = there.get(group_of(node), 0) + 1
        for group in self._groups.values():
            size = there.get(group.id, 0)
            wanted = group.settings.min_size if size else group.settings.desired_size
            if wanted <= size:
                continue
            try:
                await group.grow(wanted - size, size=size, have_booted=not size)
            except HolokubeError as error:
                # A cloud that has no machines today is no reason not to start.
                _log.warning("group does not begin with its size", group=group.id, wanted=wanted, why=error.message)

    async def cleanup(self) -> None:
        """Removes all nodes of the groups, and ends machines that boot. Errors are logged: nobody is left to retry."""
        await self.close()
        try:
            await remove_nodes(self._client, await find_nodes(self._client, self._groups))
        except HolokubeError as error:
            _log.error("nodes are left behind", why=error.message, hint="`holokube cleanup` removes them")

    async def close(self) -> None:
        """Ends machines that boot, and leaves nodes as they are."""
        await self._machines.stop()


async def build(
    clock: Clock,
    client: Client,
    informers: InformerSet | Informer,
    rng: Rng,
    *,
    environ: Mapping[str, str],
    templates: Sequence[JsonObject] | None = None,
    namespace: str = "kube-system",
    resource_limiter: ResourceLimiter | None = None,
    skip_taint: bool | None = None,
    grouping: Grouping | None = None,
) -> KwokProvider:
    """Reads templates and makes the nodes that groups begin with.

    ``environ`` names the source of templates (see ``sources``), unless ``templates`` are given. ``skip_taint`` is for
    those who want upstream's taint, or none, whatever the source, and ``grouping`` for those who want upstream's rule,
    or the proposal's. The informer of nodes need not run yet; all but ``node_groups`` and the like wait for it.
    """
    informer = informers.get(NODES) if isinstance(informers, InformerSet) else informers
    nodes = (await client.list_all(NODES)).items
    problems = Problems()
    source = await read_source(client, nodes, environ, problems, namespace=namespace, templates=templates)
    taint = source.taint if skip_taint is None else not skip_taint
    rule = source.config.grouping if grouping is None else grouping
    plans = plan_groups(source.templates, rule, problems, taint=taint, live=source.is_live)
    if not plans and not problems.errors:
        problems.error("there is no Node to make a group from")
    problems.raise_errors(f"no kwok groups can be made from {source.name}", _HINT)
    without = [plan.id for plan in plans if plan.settings.price_usd_per_hour is None]
    if without and len(without) < len(plans):
        problems.warn(f"groups without annotation {PRICE} cannot be compared by price: {', '.join(without)}")
    provider = KwokProvider(
        clock,
        client,
        informer,
        rng.fork("kwok"),
        plans,
        config=source.config,
        resource_limiter=resource_limiter,
        warnings=problems.warnings,
        kube_proxy=source.kube_proxy,
    )
    try:
        await provider.start(nodes)
    except BaseException:
        await provider.close()
        raise
    return provider
