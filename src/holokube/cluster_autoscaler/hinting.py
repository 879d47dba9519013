"""Where many pods would go: first where they went last time, then wherever there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple, TypeVar

from holokube.cluster_autoscaler.objects import priority_of
from holokube.cluster_autoscaler.placing import Placing
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind
from holokube.cluster_autoscaler.pods.waiting import PodGroup
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject
from holokube.packing import PodClass

MOST_KINDS_PER_CONTROLLER: Final = 10


class Status(NamedTuple):
    """A pod that found a place."""

    pod: JsonObject
    node_name: str


class Hints:
    """Where pods went, by what they are remembered by. What was not used for a whole round is forgotten."""

    def __init__(self) -> None:
        self._current: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        """The node a pod went to."""
        return self._current.get(key) or self._old.get(key)

    def set(self, key: str, node_name: str) -> None:
        """Remember where a pod went."""
        self._current[key] = node_name

    def of(self, pods: Iterable[PodFacts]) -> list[str | None]:
        """The nodes that pods went to."""
        current, old = self._current.get, self._old.get
        return [current(facts.identity) or old(facts.identity) for facts in pods]

    def update(self, went: Mapping[str, str]) -> None:
        """Remember where many went."""
        self._current.update(went)

    def drop_old(self) -> None:
        """Begin a new round."""
        self._old, self._current = self._current, {}

    def __bool__(self) -> bool:
        return bool(self._current or self._old)


class HopelessPods:
    """Kinds of pods, by controller, for which there was no place: pods like them need not be tried.

    Of a controller whose pods are all different, only so many kinds are remembered.
    """

    def __init__(self) -> None:
        self._by_controller: dict[str | None, set[PodKind]] = {}
        self._overflowing: set[str] = set()

    @property
    def by_controller(self) -> Mapping[str | None, Set[PodKind]]:
        """The kinds by the uid of the controller. Nothing is ever noted of pods without one."""
        return self._by_controller

    def is_like_one(self, facts: PodFacts) -> bool:
        """Whether a pod like this one found no place."""
        hopeless = self._by_controller.get(facts.controller)
        return hopeless is not None and facts.kind in hopeless

    def add(self, facts: PodFacts) -> None:
        """There was no place for this one."""
        if facts.controller is None or facts.is_daemon:
            return
        hopeless = self._by_controller.setdefault(facts.controller, set())
        if len(hopeless) >= MOST_KINDS_PER_CONTROLLER:
            self._overflowing.add(facts.controller)
        else:
            hopeless.add(facts.kind)

    @property
    def overflowing_controllers(self) -> int:
        """How many controllers have more kinds of hopeless pods than are remembered."""
        return len(self._overflowing)


class HintingSimulator:
    """See the module. Placements stay in the snapshot; fork it first if they must not."""

    def __init__(self) -> None:
        self.hints = Hints()

    def schedule(
        self,
        snapshot: ClusterSnapshot,
        pods: Sequence[JsonObject],
        *,
        allowed: Callable[[str], bool] | None = None,
        break_on_failure: bool = False,
    ) -> tuple[list[Status], int]:
        """Put pods on nodes, higher priorities first; those that found a place, and how many controllers overflow.

        With ``break_on_failure`` the rest of a priority is not tried once a pod of it has found no place.
        """
        return self.schedule_known(
            snapshot, snapshot.kinds.facts_of_all(pods), allowed=allowed, break_on_failure=break_on_failure
        )

    def schedule_known(
        self,
        snapshot: ClusterSnapshot,
        known: list[PodFacts],
        *,
        allowed: Callable[[str], bool] | None = None,
        break_on_failure: bool = False,
    ) -> tuple[list[Status], int]:
        """The same for pods about which the snapshot's ``kinds`` know already."""
        hopeless = HopelessPods()
        statuses: list[Status] = []
        # One pod of each kind stands for all.
        first = {facts.kind: facts.pod for facts in known}
        placing = Placing(snapshot, _Classes(snapshot, first).of, allowed)
        for group in by_known_priority(known, first):
            left = self._schedule_by_hints(placing, group, statuses)
            self._schedule_anywhere(placing, left, hopeless, break_on_failure, statuses)
        placing.finish()
        return statuses, hopeless.overflowing_controllers

    def hopeless(self, snapshot: ClusterSnapshot, groups: Iterable[PodGroup]) -> int | None:
        """How many controllers overflow if no pod of these groups finds a place; None if one may find one.

        Where there is no place for the first pod of any kind, there is none for the pods behind it either.
        """
        if self.hints:
            return None
        kinds: dict[str, set[PodKind]] = {}
        classes: set[PodClass] = set()
        for controller, kind, is_daemon in groups:
            cls = kind.cls
            if cls is None or cls.is_stale or kind.has_own_claims:
                return None
            classes.add(cls)
            if controller is not None and not is_daemon:
                kinds.setdefault(controller, set()).add(kind)
        if any(snapshot.acceptable(cls).any() for cls in classes):
            return None
        return sum(len(of_controller) > MOST_KINDS_PER_CONTROLLER for of_controller in kinds.values())

    def drop_old_hints(self) -> None:
        """Forget the hints that were not used since this was last called."""
        self.hints.drop_old()

    def _schedule_by_hints(
        self, placing: Placing, pods: Sequence[PodFacts], statuses: list[Status]
    ) -> Sequence[PodFacts]:
        if not self.hints:
            return pods
        left = []
        for facts, node_name in zip(pods, self.hints.of(pods), strict=True):
            if node_name is not None and placing.put_on(facts, node_name):
                self.hints.set(facts.identity, node_name)
                statuses.append(Status(facts.pod, node_name))
            else:
                left.append(facts)
        return left

    def _schedule_anywhere(
        self,
        placing: Placing,
        pods: Sequence[PodFacts],
        hopeless: HopelessPods,
        break_on_failure: bool,
        statuses: list[Status],
    ) -> None:
        hopeless_of, count = hopeless.by_controller.get, len(pods)
        index = 0
        while index < count:
            facts = pods[index]
            kinds = hopeless_of(facts.controller)
            if kinds is not None and facts.kind in kinds:
                is_one_left = True
            else:
                # Where pods of a kind find a place, none of them has been found hopeless, whoever made it.
                names, is_one_left = placing.put_alike_anywhere(pods, index)
                if names:
                    went = pods[index : index + len(names)]
                    self.hints.update({one.identity: name for one, name in zip(went, names, strict=True)})
                    statuses += [Status(one.pod, name) for one, name in zip(went, names, strict=True)]
                    index += len(names)
                if is_one_left:
                    hopeless.add(pods[index])
            if is_one_left:
                index += 1
                if break_on_failure:
                    return


class _Classes:
    """The classes of pods, all valid at the same time: a later pod's selectors may part earlier pods."""

    def __init__(self, snapshot: ClusterSnapshot, first: Mapping[PodKind, JsonObject]) -> None:
        """``first`` is one pod of each kind."""
        self._snapshot = snapshot
        while True:
            classes = {kind: snapshot.class_of(pod) for kind, pod in first.items()}
            if not any(cls.is_stale for cls in classes.values()):
                break
        self._by_kind = {kind: cls for kind, cls in classes.items() if not kind.has_own_claims}

    def of(self, facts: PodFacts) -> PodClass:
        """The class of a pod."""
        return self._by_kind.get(facts.kind) or self._snapshot.class_of(facts.pod)


def by_priority(pods: Sequence[JsonObject]) -> list[list[JsonObject]]:
    """Pods by their priority, the highest first, each in the order given."""
    return _grouped(pods, lambda pod: priority_of(pod) or 0)


_T = TypeVar("_T")


def _grouped(items: Sequence[_T], priority: Callable[[_T], int]) -> list[list[_T]]:
    groups: dict[int, list[_T]] = {}
    for item in items:
        groups.setdefault(priority(item), []).append(item)
    return [groups[value] for value in sorted(groups, reverse=True)]


def by_known_priority(pods: list[PodFacts], kinds: Iterable[PodKind] | None = None) -> list[list[PodFacts]]:
    """The same for pods of which everything is known, maybe even the kinds there are."""
    if kinds is None:
        kinds = {facts.kind for facts in pods}
    if len({kind.priority or 0 for kind in kinds}) <= 1:
        return [pods]
    return _grouped(pods, lambda facts: facts.kind.priority or 0)
