"""The second look at a node just before it goes: pods may have come while its taint was on its way to the scheduler."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holokube.cluster_autoscaler.objects import is_finished, name_of, node_name_of, pod_key
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.classification import is_expendable
from holokube.cluster_autoscaler.scale_down.drain import pods_to_move
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, rules_for
from holokube.cluster_autoscaler.scale_down.input import controllers_of
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.kube.types import JsonObject


class Recheck:
    """The drain rules on the cluster as it is now. An empty node is judged without budgets and controllers."""

    def __init__(
        self, observation: Observation, options: AutoscalerOptions, names: Collection[str], *, drain: bool
    ) -> None:
        self._drain = drain
        self._rules = rules_for(options)
        self._context = DrainContext(
            observation.now_s, options,
            PdbTracker(observation.pdbs if drain else ()),
            controllers_of(observation) if drain else None,
        )
        self._pods: dict[str, list[JsonObject]] = {name: [] for name in names}
        for pod in observation.pods if observation.pods_on is None else observation.pods_on(names):
            on_node = self._pods.get(node_name_of(pod))
            if on_node is not None and not is_finished(pod) and not is_expendable(pod, options):
                on_node.append(pod)

    def pods_on(self, name: str) -> Sequence[JsonObject]:
        """The pods of a node that count."""
        return self._pods[name]

    def problem(self, node: JsonObject) -> str:
        """Why a node that was chosen must stay after all; empty if it may go."""
        name = name_of(node)
        moves = pods_to_move(self._pods[name], self._rules, self._context)
        if moves.blocking_pod is not None:
            blocking = moves.blocking_pod
            return f"pod {pod_key(blocking.pod)} blocks node {name}: {blocking.message or blocking.reason}"
        if self._drain:
            return ""
        if moves.pods:
            return f'failed to delete empty node "{name}", new pods scheduled'
        if moves.on_completion_pods:
            return f'failed to delete empty node "{name}", active on-completion pods present'
        return ""
