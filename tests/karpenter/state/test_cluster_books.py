"""What the state keeps up to date change by change is what counting from scratch gives."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.disruption.orchestration import stale_marks
from holokube.karpenter.scheduling.node_list import differences
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.resources import ResourceVector, add
from holokube.kube.types import JsonObject
from tests.karpenter.objects import claim, condition, node, pod
from tests.karpenter.state.test_cluster import World

DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
DERIVED = (
    "allocatable", "available", "capacity", "daemon_requests", "guards", "is_deleted", "is_initialized",
    "is_marked_for_deletion", "is_plain", "is_registered", "label_requirements", "labels", "name", "pod_requests",
    "provider_id", "running_pods", "taints",
)  # fmt: skip


def some_node(rng: Random, number: int) -> JsonObject:
    labels = {"karpenter.sh/nodepool": rng.choice(("a", "b")), "node.kubernetes.io/instance-type": "small"}
    for key in ("karpenter.sh/registered", "karpenter.sh/initialized"):
        if rng.random() < 0.7:
            labels[key] = "true"
    size = {"cpu": str(rng.randint(1, 3)), "pods": "10"}
    if rng.random() < 0.2:
        size["example.com/gpu"] = "1"
    taints = [DISRUPTED] if rng.random() < 0.2 else None
    return node(f"n{number}", labels=labels, provider_id=f"kwok://{number}", capacity=size, taints=taints)


def some_claim(rng: Random, number: int) -> JsonObject:
    size = {"cpu": rng.choice(("2", "2", "4")), "pods": "10"}
    status = {"providerID": f"kwok://{number}", "capacity": size, "allocatable": size}
    conditions = [condition(kind) for kind in ("DisruptionReason", "InstanceTerminating") if rng.random() < 0.15]
    if rng.random() < 0.5:
        conditions.insert(0, condition("Consolidatable"))
    labels = {"karpenter.sh/nodepool": rng.choice(("a", "b"))}
    return claim(f"c{number}", *conditions, status=status, labels=labels, deleted_s=0 if rng.random() < 0.1 else None)


def some_pod(rng: Random, number: int) -> JsonObject:
    containers = [{"name": "c", "resources": {"requests": {"cpu": f"{rng.choice((100, 250))}m"}}}]
    on_node = f"n{rng.randint(0, 3)}" if rng.random() < 0.8 else ""
    owner = rng.choice(("ReplicaSet", "DaemonSet"))
    phase = rng.choice(("Running", "Running", "Pending", "Succeeded"))
    return pod(f"p{number}", node_name=on_node, owner=owner, phase=phase, containers=containers)


def step(rng: Random, world: World, there: dict[tuple[str, str], JsonObject]) -> None:
    number = rng.randint(0, 3)
    make = rng.choice((some_node, some_claim, some_pod, some_pod, some_pod))
    obj = make(rng, number if make is not some_pod else rng.randint(0, 8))
    draw = rng.random()
    if draw < 0.75:
        there[obj["kind"], obj["metadata"]["name"]] = obj
        world.put(obj)
    elif draw < 0.9 and there:
        world.remove(there.pop(rng.choice(sorted(there))))
    elif draw < 0.95:
        world.state.nominate(f"kwok://{number}")
    else:
        (world.state.mark_for_deletion if rng.random() < 0.5 else world.state.unmark_for_deletion)([f"kwok://{number}"])


def usage(nodes: list[StateNode], pool: str) -> ResourceVector:
    total: ResourceVector = {}
    for one in nodes:
        if one.pool_name == pool and not one.is_marked_for_deletion:
            total = add(total, one.capacity)
    return total


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_nodes_usage_marks_and_nominations_are_as_counted_from_scratch(seed: int) -> None:
    rng, world = Random(seed), World()
    there: dict[tuple[str, str], JsonObject] = {}
    looked: list[tuple[StateNode, ...]] = [()]
    for _ in range(40):
        step(rng, world, there)
        if rng.random() < 0.4:
            continue
        nodes = world.state.nodes()
        assert [one.serial for one in nodes] == sorted(one.serial for one in nodes)
        assert world.state.leaving_nodes == [one for one in nodes if one.is_marked_for_deletion]
        for before in looked[-12:]:
            changed, gone = differences(world.state.all_nodes, before, dict.fromkeys(before))
            assert changed == [one for one in nodes if one not in before]
            assert set(gone) == set(before) - set(nodes)
            assert len(gone) == len(set(gone))
        looked.append(world.state.all_nodes)
        by_name = {one.name: one for one in nodes}
        assert all(world.state.node_named(name) is one for name, one in by_name.items())
        assert world.state.node_named("nobody") is None
        for one in nodes:
            anew = StateNode(one.node, one.node_claim, one.pods, one.is_marked, one.nominated_until_s)
            assert list(one.pods) == world.state.pods_on(one.node_name)
            assert len(one.facts) == len(one.pods)
            assert all(facts.pod is pod for facts, pod in zip(one.facts, one.pods, strict=True))
            for name in DERIVED:
                assert getattr(one, name) == getattr(anew, name), name
        for pool in ("a", "b"):
            assert world.state.usage_of(pool) == usage(nodes, pool)
        assert stale_marks(world.state.marked_nodes(), ()) == stale_marks(nodes, ())
        now_s = world.clock.time()
        assert world.state.count_nominated(now_s) == sum(one.is_nominated(now_s) for one in nodes)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_pod_of_which_parts_stayed_the_very_same_is_taken_over_like_one_made_anew(seed: int) -> None:
    rng, shared, anew = Random(seed), World(), World()
    there: dict[str, JsonObject] = {}
    for number in range(3):
        for world in (shared, anew):
            world.put(some_node(Random(number), number))
    for _ in range(40):
        name = f"p{rng.randint(0, 4)}"
        draw, known = rng.random(), there.get(name)
        if known is not None and draw < 0.15:
            del there[name]
            for world in (shared, anew):
                world.remove(known)
            continue
        if known is None or draw < 0.35:
            made = some_pod(rng, int(name[1:]))
            made["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": rng.choice(("true", "5m"))}
        else:
            # As a write in process leaves it: only what was written is another object.
            made = {**known, "metadata": {**known["metadata"]}, "status": {"phase": rng.choice(("Running", "Failed"))}}
            if draw < 0.5:
                made["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": rng.choice(("true", "5m"))}
            elif draw < 0.6:
                made["spec"] = {**known["spec"], "nodeName": f"n{rng.randint(0, 2)}"}
        there[name] = made
        shared.put(made)
        anew.put(deepcopy(made))
        if rng.random() < 0.5:
            assert [one.pods for one in shared.state.nodes()] == [one.pods for one in anew.state.nodes()]
        for number in range(4):
            assert shared.state.pods_on(f"n{number}") == anew.state.pods_on(f"n{number}")
        assert shared.state.unbound_pods == anew.state.unbound_pods
        unbound = shared.state.unbound_pods
        assert shared.state.unbound_pods is unbound
        assert all(there[one["metadata"]["name"]] is one for one in unbound)
        assert len(unbound) == sum(not one["spec"].get("nodeName") for one in there.values())
        assert shared.state.has_timed_pods == anew.state.has_timed_pods
        assert shared.state.version == anew.state.version
        assert shared.state.consolidation_mark() == anew.state.consolidation_mark()


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_claim_of_which_parts_stayed_the_very_same_is_taken_over_like_one_made_anew(seed: int) -> None:
    rng, shared, anew = Random(seed), World(), World()
    there: dict[str, JsonObject] = {}
    told = [0, 0]
    for place, world in enumerate((shared, anew)):
        world.state.before_recounts(lambda place=place: told.__setitem__(place, told[place] + 1))  # type: ignore[misc]
        for number in range(3):
            world.put(some_node(Random(number), number))
    for version in range(40):
        number = rng.randint(0, 2)
        draw, known = rng.random(), there.get(f"c{number}")
        if known is not None and draw < 0.1:
            for world in (shared, anew):
                world.remove(there[f"c{number}"])
            del there[f"c{number}"]
            continue
        made = some_claim(rng, number)
        if known is not None and draw < 0.8:
            # As a write in process leaves it: only what was written is another object.
            status = {**known["status"], "lastPodEventTime": f"2026-01-01T00:00:{version:02}Z"}
            if draw < 0.4:
                status["conditions"] = made["status"]["conditions"]
            elif draw < 0.5:
                status["providerID"] = rng.choice(("", f"kwok://{rng.randint(0, 2)}"))
            elif draw < 0.6:
                status["capacity"] = made["status"]["capacity"]
            made = {**known, "metadata": {**known["metadata"]}, "status": status}
        made["metadata"]["resourceVersion"] = str(version + 1)
        there[f"c{number}"] = made
        shared.put(made)
        anew.put(deepcopy(made))
        if rng.random() < 0.5:
            assert [one.node_claim for one in shared.state.nodes()] == [one.node_claim for one in anew.state.nodes()]
        assert shared.state.unlaunched_claims() == anew.state.unlaunched_claims()
        assert shared.state.version == anew.state.version
        assert shared.state.consolidation_mark() == anew.state.consolidation_mark()
        assert told[0] == told[1]
