"""The total score of each node for a pod, with what did not change since the last pod of its kind remembered.

Scores fall into three groups. How full a node is, and how balanced, is a matter of what the node has and what the
pod requests, so the answer is kept by just that: many nodes are alike, and a pod that came is known before it comes
a second time. What nodes are, their taints, labels and images, changes rarely: those scores are kept for a class as
long as the nodes, and the choice of feasible ones, stay the same. Where other pods are is asked each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PodClass
from holokube.packing.arrays import ALL, IntArray, RowArray
from holokube.scheduler.default_spread import SelectorOf
from holokube.scheduler.scores import total_scores
from holokube.scheduler.scores.image_locality import image_with_tag
from holokube.scheduler.scores.inter_pod_affinity import InterPodAffinity
from holokube.scheduler.scores.pod_topology_spread import PodTopologySpread
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scores.protocol import Question

_KEPT: Final = 256
_ROWS_KEPT: Final = 100_000
_NO_ROWS: Final[list[int]] = []
_FEW_ROWS: Final = 32
"""Above, computing for all rows at once is cheaper than looking each up."""
_V = TypeVar("_V")
Images = tuple[tuple[str | None, ...], ...]
"""Of containers, of those that run before them, and of volumes."""


@dataclass(slots=True)
class _Fill:
    """What nodes get for their room alone, by row, and by what a row has and holds."""

    totals: IntArray
    node_at: int
    usage_at: int
    by_content: dict[bytes, int]


@dataclass(slots=True)
class _Kind:
    """What feasible nodes get for what they are."""

    rows: RowArray | None
    """None if all nodes get the same, whichever are feasible."""
    nodes_at: int
    totals: IntArray
    """One for each row, or a single one."""


class Scoring:
    """Scores nodes of a state by the weights of a profile."""

    def __init__(
        self, state: ClusterState, profile: ScoreProfile, selector_of: SelectorOf, *, reuse: bool = True
    ) -> None:
        self._state = state
        self._selector_of = selector_of
        self._reuse = reuse
        self._all = profile
        nothing = replace(
            profile, node_resources_fit=0, node_resources_balanced_allocation=0, image_locality=0, taint_toleration=0,
            node_affinity=0, inter_pod_affinity=0, pod_topology_spread=0,
        )  # fmt: skip
        self._of_fill = replace(
            nothing,
            node_resources_fit=profile.node_resources_fit,
            node_resources_balanced_allocation=profile.node_resources_balanced_allocation,
        )
        self._of_kind = replace(
            nothing,
            taint_toleration=profile.taint_toleration,
            node_affinity=profile.node_affinity,
            image_locality=profile.image_locality,
        )
        self._spread, self._spread_weight = PodTopologySpread(), profile.pod_topology_spread
        self._affinity, self._affinity_weight = InterPodAffinity(), profile.inter_pod_affinity
        self._fills: OrderedDict[Hashable, _Fill] = OrderedDict()
        self._fill_of: dict[PodClass, _Fill] = {}
        """The same by class."""
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()
        self._latest: tuple[JsonObject, PodClass, _Kind] | None = None
        """The last spec and class that were asked about, which the next pod mostly has too, and what was found."""
        self._plans: dict[Hashable, Any] = {}
        self._question: Question | None = None
        """The last one: the next differs in the pod and in the nodes."""

    def __call__(self, cls: PodClass, pod: JsonObject, rows: RowArray) -> IntArray:
        """One total per row. The same array of rows twice means that the same nodes are feasible."""
        return self.ranks(cls, pod, rows, is_whole=True)

    def ranks(self, cls: PodClass, pod: JsonObject, rows: RowArray, *, is_whole: bool = False) -> IntArray:
        """The same, perhaps without something that all rows get: for who only asks which of them is best."""
        state, selector = self._state, self._selector_of(pod)
        if not self._reuse:
            return total_scores(state, cls, pod, rows, self._all, default_selector=selector)
        totals: IntArray = self._fill_totals(cls, pod)[rows]
        kind = self._kind(cls, pod, rows)
        if kind.rows is not None or is_whole:
            totals += kind.totals
        wishes = cls.wishes
        is_spread = bool(self._spread_weight and (selector is not None or wishes.spread))
        is_drawn = bool(
            self._affinity_weight and (wishes.affinity or wishes.anti_affinity or state.counters.has_pulls)
        )
        if not (is_spread or is_drawn):
            # Nothing draws it near other pods, or away from them.
            return totals
        question = self._question
        if question is None:
            question = self._question = Question(state, cls, pod, rows, self._all, selector, self._plans)
        else:
            question.cls, question.pod, question.rows, question.default_selector = cls, pod, rows, selector
        if is_spread:
            points = self._spread.weighted_points(question, self._spread_weight)
            if points is not None:
                totals += points
        if is_drawn:
            points = self._affinity.points(question)
            if points is not None:
                totals += points * self._affinity_weight
        return totals

    def _fill_totals(self, cls: PodClass, pod: JsonObject) -> IntArray:
        state, kept = self._state, self._fill_of.get(cls)
        if kept is None:
            kept = self._fill(cls)
        if len(kept.totals) == state.nodes.capacity:
            nodes_end, end = state.node_journal.end, state.usage_journal.end
            are_nodes_same = nodes_end == kept.node_at
            if are_nodes_same and end - kept.usage_at <= 1:
                # Nothing changed, or one pod came or went: mostly the one before, if there are several to be placed.
                if end != kept.usage_at:
                    kept.usage_at = end
                    self._refresh_fill(kept, cls, pod, (state.usage_journal.latest,))
                return kept.totals
            few_nodes = _NO_ROWS if are_nodes_same else state.node_journal.few_since(kept.node_at, _FEW_ROWS)
            few = state.usage_journal.few_since(kept.usage_at, _FEW_ROWS)
            if few_nodes is not None and few is not None:
                kept.node_at, kept.usage_at = nodes_end, end
                if few_nodes:
                    few = sorted({*few_nodes, *few})
                if few:
                    self._refresh_fill(kept, cls, pod, few)
                return kept.totals
        by_node = state.node_journal.since(kept.node_at) if kept.node_at >= 0 else None
        by_usage = state.usage_journal.since(kept.usage_at) if kept.usage_at >= 0 else None
        kept.node_at, kept.usage_at = state.node_journal.end, state.usage_journal.end
        if by_node is None or by_usage is None or len(kept.totals) != state.nodes.capacity:
            kept.totals = total_scores(state, cls, pod, state.nodes.row_numbers, self._of_fill)
            return kept.totals
        changed = np.union1d(by_node, by_usage) if len(by_node) else by_usage
        if len(changed) > _FEW_ROWS:
            kept.totals[changed] = total_scores(state, cls, pod, changed, self._of_fill)
        elif len(changed):
            self._refresh_fill(kept, cls, pod, changed.tolist())
        return kept.totals

    def _fill(self, cls: PodClass) -> _Fill:
        key = (tuple(cls.requests.items()), cls.requests_nonzero, cls.requests_scored)
        kept = _kept(self._fills, key) or _keep(
            self._fills, key, _Fill(np.zeros(0, dtype=np.int64), -1, -1, {})
        )
        if len(self._fill_of) >= _KEPT:
            self._fill_of.clear()
        self._fill_of[cls] = kept
        return kept

    def _refresh_fill(self, kept: _Fill, cls: PodClass, pod: JsonObject, changed: Sequence[int]) -> None:
        """Look a few rows up, or compute for those that nobody has asked for yet."""
        allocatable, held = self._state.nodes.allocatable, self._state.nodes.held
        unknown: list[tuple[int, bytes]] = []
        for row in changed:
            content = allocatable[row].tobytes() + held[row].tobytes()
            total = kept.by_content.get(content)
            if total is None:
                unknown.append((row, content))
            else:
                kept.totals[row] = total
        if unknown:
            rows = np.array([row for row, _ in unknown], dtype=np.intp)
            totals = total_scores(self._state, cls, pod, rows, self._of_fill)
            kept.totals[rows] = totals
            if len(kept.by_content) > _ROWS_KEPT:
                kept.by_content.clear()
            for (_, content), total in zip(unknown, totals.tolist(), strict=True):
                kept.by_content[content] = total

    def _kind(self, cls: PodClass, pod: JsonObject, rows: RowArray) -> _Kind:
        state = self._state
        # Neither number ever becomes smaller, so that their sum moves with each of them.
        nodes_at = state.node_journal.end + state.nodes.images.version
        spec, latest = pod["spec"], self._latest
        if latest is not None and latest[1] is cls and (latest[0] is spec or _has_same_images(latest[0], spec)):
            kept: _Kind | None = latest[2]
        else:
            kept = _kept(self._kinds, (cls, _images(spec)))
        if kept is None or kept.nodes_at != nodes_at or (kept.rows is not None and kept.rows is not rows):
            images = _images(spec)
            if self._are_all_alike(cls, images):
                first = total_scores(state, cls, pod, rows[:1], self._of_kind)
                made = _Kind(None, nodes_at, np.array(first[0]))
            else:
                made = _Kind(rows, nodes_at, total_scores(state, cls, pod, rows, self._of_kind))
            kept = _keep(self._kinds, (cls, images), made)
        self._latest = spec, cls, kept
        return kept

    def _are_all_alike(self, cls: PodClass, images: Images) -> bool:
        """Whether nothing that nodes are makes one better than another: then scores need not be scaled to the best."""
        nodes = self._state.nodes
        if cls.wishes.nodes.terms or np.count_nonzero(nodes.discouraging_taints(cls.tolerations, ALL)):
            return False
        return not any(nodes.images.sizes(image_with_tag(image or "")) for listed in images for image in listed)


def _has_same_images(spec: JsonObject, other: JsonObject) -> bool:
    """Whether two pods plainly want to run the same. Copies of a template often have these parts in common."""
    return (
        spec.get("containers") is other.get("containers")
        and spec.get("initContainers") is other.get("initContainers")
        and spec.get("volumes") is other.get("volumes")
    )


def _images(spec: JsonObject) -> Images:
    """What a pod wants to run, which its class does not say."""
    volumes = spec.get("volumes") or ()
    return (
        tuple([container.get("image") for container in spec.get("containers") or ()]),
        tuple([container.get("image") for container in spec.get("initContainers") or ()]),
        tuple([(volume["image"] or {}).get("reference") for volume in volumes if "image" in volume]),
    )


def _kept(memory: OrderedDict[Hashable, _V], key: Hashable) -> _V | None:
    found = memory.get(key)
    if found is not None:
        memory.move_to_end(key)
    return found


def _keep(memory: OrderedDict[Hashable, _V], key: Hashable, value: _V) -> _V:
    memory[key] = value
    if len(memory) > _KEPT:
        memory.popitem(last=False)
    return value
