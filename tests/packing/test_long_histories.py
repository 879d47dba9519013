"""Long histories of a small cluster whose pods all care about each other; every seed is one history.

The random clusters of ``test_equivalence.py`` are broad; these dwell on what is kept up to date step by step:
counts per topology domain while nodes change their labels under the pods.
"""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.packing import ClusterState
from tests.packing.naive import NaiveCluster
from tests.packing.objects import affinity_term, make_node, make_pod, pod_affinity, pod_anti_affinity, spread

JsonObject = dict[str, Any]


def random_node(rng: Rng, name: str) -> JsonObject:
    labels = {key: rng.choice("123") for key in ("zone", "rack") if rng.random() < 0.9}
    taints = [{"key": "t", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
    return make_node(name, labels, cpu="100", pods="100", taints=taints)


def random_pod(rng: Rng, name: str) -> JsonObject:
    key, app = rng.choice(["zone", "rack", "kubernetes.io/hostname"]), rng.choice("ab")
    kind = rng.choice(["spread", "two spreads", "near", "far", "plain"])
    spec: JsonObject = {}
    if "spread" in kind:
        more = rng.choice([{}, {"nodeTaintsPolicy": "Honor"}, {"minDomains": 3}, {"matchLabelKeys": ["rev"]}])
        spec["topologySpreadConstraints"] = [spread(key, app, **more)]
        if kind == "two spreads":
            spec["topologySpreadConstraints"].append(spread("zone", app, skew=2))
    elif kind == "near":
        spec["affinity"] = pod_affinity(affinity_term(app, key))
    elif kind == "far":
        selector = rng.choice([None, {"matchLabels": {"team": "x"}}])
        spec["affinity"] = pod_anti_affinity(affinity_term(app, key, namespace_selector=selector))
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"rack": rng.choice("12")}
    if rng.random() < 0.2:
        spec["tolerations"] = [{"operator": "Exists"}]
    ports = [{"hostPort": 80, "hostIP": rng.choice(["0.0.0.0", "10.0.0.1", "10.0.0.2"])}] if rng.random() < 0.2 else []
    labels = {"app": rng.choice("ab"), **({"rev": rng.choice("12")} if rng.random() < 0.5 else {})}
    return make_pod(name, labels=labels, ports=ports, namespace=rng.choice(["default", "default", "other"]), **spec)


@pytest.mark.parametrize("remember", [3, 1000])
@pytest.mark.parametrize("seed", range(25))
def test_counts_stay_true_while_nodes_change_under_their_pods(seed: int, remember: int) -> None:
    rng = Rng(seed)
    state, naive = ClusterState(remember=remember), NaiveCluster()
    saved: list[tuple[JsonObject, JsonObject, dict[str, dict[str, str]]]] = []
    questions = [random_pod(rng, f"q{i}") for i in range(8)]
    for step in range(50):
        action = "node" if step < 4 else rng.choice(["node", "pod", "pod", "pod", "drop pod", "drop node", "ns", "try"])
        if action == "node":
            node = random_node(rng, f"n{step if step < 4 else rng.randrange(6)}")
            state.add_node(node)
            naive.nodes[node["metadata"]["name"]] = node
        elif action == "pod":
            pod = random_pod(rng, f"p{rng.randrange(12)}")
            pod["spec"]["nodeName"] = f"n{rng.randrange(6)}"
            state.add_pod(pod)
            naive.pods[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = pod
        elif action == "drop pod" and naive.pods:
            state.remove_pod(name := rng.choice(sorted(naive.pods)))
            del naive.pods[name]
        elif action == "drop node" and naive.nodes:
            state.remove_node(name := rng.choice(sorted(naive.nodes)))
            del naive.nodes[name]
        elif action == "ns":
            labels = rng.choice([{}, {"team": "x"}])
            state.set_namespace("other", labels)
            naive.namespaces["other"] = labels
        elif saved and rng.random() < 0.6:
            state.rollback()
            naive.nodes, naive.pods, naive.namespaces = saved.pop()
        else:
            state.fork()
            saved.append((dict(naive.nodes), dict(naive.pods), dict(naive.namespaces)))
        for question, cls in zip(questions, state.classify(questions), strict=True):
            mask = state.feasible(cls)
            found = {name for name, row in state.node_names.items() if mask[row]}
            assert found == naive.feasible(question), f"seed {seed}, step {step}, {action}, {question}"
