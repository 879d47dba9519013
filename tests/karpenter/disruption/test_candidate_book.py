"""What the book carries over from one state of a node to the next is what looking at the node anew finds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.karpenter.api.labels import (
    CONSOLIDATABLE,
    DO_NOT_DISRUPT,
    DRIFTED,
    INITIALIZED_LABEL,
    INSTANCE_TERMINATING,
    REBOOTING,
    REGISTERED_LABEL,
)
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.types import DisruptionClass, Method
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import NODEPOOL_LABEL
from holokube.kube.types import JsonObject
from tests.karpenter.disruption.clusters import Cluster
from tests.karpenter.disruption.test_prospects import Memories, cluster_of, some_ids, some_pdbs, view_of, words


def guarded(pod: JsonObject, value: str | None) -> JsonObject:
    annotations = {} if value is None else {DO_NOT_DISRUPT: value}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def with_condition(claim: JsonObject, type: str, *, is_true: bool) -> JsonObject:
    others = [one for one in claim["status"]["conditions"] if one["type"] != type]
    condition = {"type": type, "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}
    return {**claim, "status": {**claim["status"], "conditions": [*others, condition] if is_true else others}}


def changed(rng: Rng, node: StateNode, known: list[JsonObject]) -> StateNode:
    """The node as it may be a little later."""
    draw = rng.randrange(6)
    if draw == 0:
        node = replace(node, pods=node.pods[rng.randrange(3) :])
    elif draw == 1 and known:
        like, name = rng.choice(known), f"later-{rng.name_suffix()}"
        node = replace(node, pods=(*node.pods, {**like, "metadata": {**like["metadata"], "name": name, "uid": name}}))
    elif draw == 2 and node.pods:
        first = guarded(node.pods[0], rng.choice((None, None, "true", "1h", "87600h")))
        node = replace(node, pods=(first, *node.pods[1:]))
    elif draw == 3:
        node = replace(node, is_marked=not node.is_marked)
    elif draw == 4 and node.node is not None:
        # The Node speaks for itself, or its claim does.
        label = rng.choice((INITIALIZED_LABEL, REGISTERED_LABEL))
        labels = {**node.node["metadata"]["labels"], label: rng.choice(("true", "false"))}
        node = replace(node, node={**node.node, "metadata": {**node.node["metadata"], "labels": labels}})
    if node.node_claim is None or rng.random() < 0.4:
        return node
    return replace(node, node_claim=written(rng, node.node_claim))


def written(rng: Rng, claim: JsonObject) -> JsonObject:
    """A claim after a write to it; mostly no more than when its pods changed."""
    draw = rng.randrange(9)
    metadata = claim["metadata"]
    if draw == 0:
        return with_condition(claim, CONSOLIDATABLE, is_true=rng.random() < 0.6)
    if draw == 1:
        return with_condition(claim, DRIFTED, is_true=rng.random() < 0.6)
    if draw == 2:
        return {**claim, "metadata": {**metadata, "deletionTimestamp": rng.choice((None, "2026-01-01T23:00:00Z"))}}
    if draw == 3:
        labels = {**metadata["labels"], NODEPOOL_LABEL: rng.choice((metadata["labels"][NODEPOOL_LABEL], "unknown"))}
        return {**claim, "metadata": {**metadata, "labels": labels}}
    if draw == 4:
        # What stands against a node may come together with what methods go by.
        claim = with_condition(claim, rng.choice((REBOOTING, INSTANCE_TERMINATING)), is_true=rng.random() < 0.4)
        return with_condition(claim, CONSOLIDATABLE, is_true=rng.random() < 0.6)
    return {**claim, "status": {**claim["status"], "lastPodEventTime": "2026-01-01T23:59:00Z"}}


def found_by(view: DisruptionView, method: Method) -> list[Any]:
    return [
        [(one.name, one.rank, one.movable_pods) for one in view.candidates(method)],
        [(one.name, why) for one, why in view.ruled_out(method)],
        view.count(method),
        view.budget_left(method.reason),
    ]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_nodes_that_have_changed_are_judged_as_if_seen_for_the_first_time(seed: int) -> None:
    rng = Rng(f"carried {seed}")
    cluster, kept = cluster_of(rng), Memories(-math.inf)
    known, pdbs = [pod for node in cluster.nodes for pod in node.pods], some_pdbs(rng, cluster.nodes)
    # Who asks for the first time finds nodes that were judged for others before.
    asking = sorted(METHODS, key=lambda _: rng.random())
    for turn in range(6):
        queued = some_ids(rng, cluster.nodes)
        anew, view = view_of(cluster, [], pdbs, queued, None), view_of(cluster, [], pdbs, queued, kept)
        for method in asking[: 1 + turn // 2]:
            assert found_by(view, method) == found_by(anew, method)
        for disruption_class in DisruptionClass:
            assert words(view.blocked_notices(disruption_class)) == words(anew.blocked_notices(disruption_class))
        cluster = Cluster(cluster.pools, cluster.types, tuple(changed(rng, node, known) for node in cluster.nodes))
