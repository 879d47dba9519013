"""What is read of the pods of a node is what is there, and the same objects as long as nothing changes."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.api.labels import DO_NOT_DISRUPT
from holokube.karpenter.disruption.costs import eviction_cost
from holokube.karpenter.disruption.pods import is_terminal
from holokube.karpenter.scheduling.pod_facts import PodFacts, is_plain
from holokube.karpenter.state.node_pods import NodePods
from holokube.kube.types import JsonObject
from tests.karpenter.objects import pod

SAYINGS: list[dict[str, str]] = [{}, {}, {DO_NOT_DISRUPT: "true"}]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_pods_and_facts_are_those_of_a_plain_dict(seed: int) -> None:
    rng, pods = Random(seed), NodePods()
    plain: dict[str, JsonObject] = {}
    facts_of: dict[int, object] = {}
    for _ in range(40):
        key = f"p{rng.randint(0, 5)}"
        if rng.random() < 0.3:
            assert pods.take(key) == (plain.pop(key, None) is not None)
        else:
            plain[key] = pod(key, phase=rng.choice(("Running", "Succeeded")), annotations=rng.choice(SAYINGS))
            pods.put(key, plain[key])
        assert len(pods) == len(plain)
        if rng.random() < 0.5:
            continue
        found, facts, is_ordinary = pods.read()
        assert pods.list() == list(found) == list(plain.values())
        assert all(one.pod is obj for one, obj in zip(facts, found, strict=True))
        assert is_ordinary == (not any(DO_NOT_DISRUPT in (one["metadata"].get("annotations") or {}) for one in found))
        # Facts of pods that have not changed were not worked out again.
        assert all(facts_of.get(id(one.pod), one) is one for one in facts)
        facts_of = {id(one.pod): one for one in facts}
        again = pods.read()
        assert again[0] is found
        assert again[1] is facts


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
    st.sampled_from([None, {}, {DO_NOT_DISRUPT: "1h"}, {"karpenter.sh/pod-deletion-cost": "5"},
                     {"controller.kubernetes.io/pod-deletion-cost": "134217728"}]),
    st.sampled_from([None, 0, -(2**26), 2**30]),
    st.sampled_from([None, [], [{"name": "v", "emptyDir": {}}], [{"persistentVolumeClaim": {"claimName": "c"}}]]),
    st.sampled_from([None, {}, {"nodeAffinity": {"x": 1}}, {"podAffinity": {"x": 1}}, {"podAntiAffinity": {"x": 1}}]),
)  # fmt: skip
def test_facts_of_ordinary_pods_are_those_that_a_longer_look_finds(
    phase: str,
    annotations: dict[str, str] | None,
    priority: int | None,
    volumes: list[JsonObject] | None,
    affinity: JsonObject | None,
) -> None:
    made = pod(phase=phase, annotations=annotations, priority=priority, volumes=volumes, affinity=affinity)
    facts = PodFacts(made)
    assert (facts.is_running, facts.has_started) == (not is_terminal(made), phase != "Pending")
    assert (facts.cost, facts.is_plain) == (eviction_cost(made), is_plain(made))
    assert facts.guard == (annotations or {}).get(DO_NOT_DISRUPT)
