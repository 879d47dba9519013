"""What is read of the lists of machines, which are the same objects for minutes, and long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holokube.cluster_autoscaler.cloud.provider import Instance, InstanceState
from holokube.cluster_autoscaler.cluster_state.creation_errors import ErrorCode, Failures, by_code
from holokube.cluster_autoscaler.node_facts import NodeReadings, changed_places
from holokube.kube.types import JsonObject

_DELETING = InstanceState.DELETING
_NONE: Mapping[ErrorCode, Failures] = {}


class _Read:
    __slots__ = ("expected", "failures", "instances")

    def __init__(self, instances: tuple[Instance, ...]) -> None:
        self.instances = instances
        self.failures = by_code(instances)
        self.expected = [id_ for id_, state, error in instances if error is None and state is not _DELETING]


class MachineReading:
    """Remembers the last list of each group, and who of them is not a node."""

    def __init__(self, readings: NodeReadings) -> None:
        self._readings = readings
        self._lists: dict[str, _Read] = {}
        self._nodes: Sequence[JsonObject] = ()
        self._ids: frozenset[str] = frozenset()
        self._missing: list[str] = []
        self._missing_of: tuple[object, ...] = ()

    def failures(self, group_id: str, instances: tuple[Instance, ...]) -> Mapping[ErrorCode, Failures]:
        """The machines of a group that could not be made, by what went wrong."""
        return self._read(group_id, instances).failures if instances else _NONE

    def not_registered(self, nodes: Sequence[JsonObject], of_groups: Mapping[str, tuple[Instance, ...]]) -> list[str]:
        """The ids of machines that should have become one of the nodes and have not, group by group."""
        if nodes is not self._nodes or not isinstance(nodes, tuple):
            if not self._are_as_before(nodes):
                self._ids = frozenset([facts.provider_id for facts in self._readings.of_all(nodes)])
                self._missing_of = ()
            self._nodes = nodes
        looked_at = tuple(of_groups.values())
        if not self._missing_of or not _are_the_same(looked_at, self._missing_of):
            self._missing_of = looked_at
            ids = self._ids
            self._missing = [
                id_ for group_id, instances in of_groups.items()
                for id_ in self._read(group_id, instances).expected if id_ not in ids
            ]  # fmt: skip
            self._lists = {group_id: known for group_id, known in self._lists.items() if group_id in of_groups}
        return self._missing

    def _are_as_before(self, nodes: Sequence[JsonObject]) -> bool:
        """Whether the nodes are the same, with the same ids."""
        before, of = self._nodes, self._readings.of
        places = changed_places(before, nodes) if isinstance(before, tuple) and before else None
        return places is not None and all(
            of(before[place]).provider_id == of(nodes[place]).provider_id for place in places)

    def _read(self, group_id: str, instances: tuple[Instance, ...]) -> _Read:
        known = self._lists.get(group_id)
        if known is None or known.instances is not instances:
            known = self._lists[group_id] = _Read(instances)
        return known


def _are_the_same(these: tuple[object, ...], those: tuple[object, ...]) -> bool:
    return len(these) == len(those) and all(map(lambda a, b: a is b, these, those))
