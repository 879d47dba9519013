"""Changes that call for no look: whoever is not told of them would have found nothing to do."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.cache import Cache
from holokube.client.client import Client
from holokube.client.resources import (
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
)
from holokube.runtime.result import Result
from holokube.workloads import (
    deployment_controller,
    replica_set_controller,
    taint_eviction_controller,
)
from holokube.workloads.deployment_controller import DeploymentReconciler
from holokube.workloads.deployment_decisions import Rest, decide
from holokube.workloads.expectations import Echoes
from holokube.workloads.garbage_controller import GarbageCollector
from holokube.workloads.garbage_graph import OwnershipGraph
from holokube.workloads.pod_book import PodBook, counts_anew
from holokube.workloads.pod_status import is_available
from holokube.workloads.replica_set_controller import ReplicaSetReconciler
from tests.builders import node, pod
from tests.runtime.fakes import FakeTransport
from tests.workloads import test_volume_controller as volumes
from tests.workloads.housekeeping import House
from tests.workloads.objects import NOW, JsonObject, a_pod, ago, an_owner
from tests.workloads.test_deployment_decisions import a_set, deployment
from tests.workloads.test_deployment_rest import set_statuses
from tests.workloads.test_garbage_graph import obj as owned
from tests.workloads.test_garbage_graph import ref as owner_reference
from tests.workloads.test_pod_book import OWNERS, STATES, pod_of, tallied
from tests.workloads.test_replica_set_controller import replica_set
from tests.workloads.world import World

FIELDS = ("spec", "generation", "deletionTimestamp", "labels", "annotations", "ownerReferences", "finalizers", "uid")


def version_of(obj: JsonObject, version: str, **status: Any) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}, "status": status}


def test_only_the_very_state_that_was_written_last_is_an_echo() -> None:
    before = version_of(an_owner("ReplicaSet", "web", replicas=1), "1")
    first, second = version_of(before, "2", replicas=1), version_of(before, "3", replicas=2)
    echoes = Echoes()
    assert not echoes.is_one(before, first)
    echoes.wrote("default/web", first)
    assert echoes.is_one(before, first)
    assert not echoes.is_one(first, second), "somebody else wrote it"
    assert not echoes.is_one(None, first) and not echoes.is_one(first, None)
    assert not echoes.is_one(first, first), "a resync"
    echoes.wrote("default/web", second)
    assert not echoes.is_one(before, first) and echoes.is_one(first, second)
    echoes.forget("default/web")
    assert not echoes.is_one(first, second)


@pytest.mark.parametrize(
    ("written", "cached", "goes_on_from_own"),
    [("9", "8", True), ("10", "9", True), ("9", "9", False), ("9", "10", False), ("x", "9", False), ("9", "x", False)],
)
def test_one_goes_on_from_what_was_written_while_the_cache_lags_behind(
    written: str, cached: str, goes_on_from_own: bool
) -> None:
    owner = an_owner("ReplicaSet", "web", replicas=1)
    mine, shown = version_of(owner, written, replicas=1), version_of(owner, cached)
    echoes = Echoes()
    assert echoes.latest("default/web", shown) is shown
    echoes.wrote("default/web", mine)
    assert echoes.latest("default/web", shown) is (mine if goes_on_from_own else shown)
    made_anew = {**shown, "metadata": {**shown["metadata"], "uid": "other"}}
    assert echoes.latest("default/web", made_anew) is made_anew
    echoes.forget("default/web")
    assert echoes.latest("default/web", shown) is shown


@pytest.mark.parametrize("field", FIELDS)
def test_what_came_together_with_the_own_write_is_no_echo(field: str) -> None:
    before = version_of(an_owner("ReplicaSet", "web", replicas=1), "1")
    after = copy.deepcopy(version_of(before, "2", replicas=1))
    echoes = Echoes()
    echoes.wrote("default/web", after)
    assert echoes.is_one(before, after), "equal parts may be other objects"
    changed: Any = {"replicas": 2} if field == "spec" else "other"
    if field == "spec":
        after = {**after, "spec": changed}
    else:
        after = {**after, "metadata": {**after["metadata"], field: changed}}
    assert not echoes.is_one(before, after)


@settings(deadline=None)
@given(STATES, STATES, st.sampled_from((5, 50, None)), st.booleans())
def test_a_pod_that_does_not_count_anew_is_counted_as_before(
    first: tuple[str, int, str, bool, bool], second: tuple[str, int, str, bool, bool], ready_s: float | None,
    keeps: bool,
) -> None:  # fmt: skip
    old, new = pod_of(1, first), pod_of(1, first if keeps else second)
    new["status"] = {**new["status"], "hostIP": "10.0.0.1"}
    if ready_s is not None and new["status"].get("conditions"):
        new["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready_s)}]
    book = PodBook()
    book.takes_note(None, old)
    before = {uid: tallied(book, uid) for uid in OWNERS}
    assert book.takes_note(old, new) == counts_anew(old, new)
    after = {uid: tallied(book, uid) for uid in OWNERS}
    ages = [[is_available(one, s, NOW) for s in (0, 10, 100)] for one in (old, new)]
    if not counts_anew(old, new):
        assert (after, ages[1]) == (before, ages[0])
        assert old["metadata"].get("deletionTimestamp") == new["metadata"].get("deletionTimestamp")
    if keeps and ages[0] == ages[1]:
        assert not counts_anew(old, new), "an address is no reason to count"


def test_a_pod_that_comes_goes_or_is_deleted_counts_anew() -> None:
    one = a_pod("p", "Failed")
    leaving = a_pod("p", "Failed", leaving=True)
    assert counts_anew(None, one) and counts_anew(one, None)
    # Who waits for a deletion to show is to hear of it, even if the pod was over before.
    assert counts_anew(one, leaving)
    assert not counts_anew(one, {**one, "spec": {**one["spec"], "nodeName": "n"}})


@given(set_statuses(), set_statuses(), st.integers(1, 3), st.booleans())
def test_a_set_that_stays_leaves_the_plan_as_it_is(
    first: JsonObject, then: JsonObject, generation: int, keeps: bool
) -> None:
    web, its_set = deployment(progressDeadlineSeconds=600), a_set("new", 4, 4)
    told = decide(web, [its_set], {}, NOW)
    rest = Rest.after(told, web, its_set)
    assert rest is not None
    web = {**web, "status": told.status}
    old = {**its_set, "status": first}
    new = {**its_set, "status": {**(first if keeps else then), "observedGeneration": generation}}
    if rest.stays(old, new):
        assert rest.plan(web, old, NOW) == rest.plan(web, new, NOW) != None  # noqa: E711 - all three in a row
        assert decide(web, [old], {}, NOW) == decide(web, [new], {}, NOW)
    elif keeps:
        assert "terminatingReplicas" not in first, "what is counted from the generation alone has to be told"


def test_a_set_that_is_another_than_the_one_at_rest_does_not_stay() -> None:
    web, its_set = deployment(progressDeadlineSeconds=600), a_set("new", 4, 4)
    its_set = {**its_set, "status": {**its_set["status"], "terminatingReplicas": 0}}
    rest = Rest.after(decide(web, [its_set], {}, NOW), web, its_set)
    assert rest is not None and rest.stays(its_set, its_set)
    for changed in (
        {**its_set, "spec": {**its_set["spec"]}},
        {**its_set, "status": {**its_set["status"], "replicas": 3}},
        {**its_set, "status": {**its_set["status"], "conditions": [{"type": "ReplicaFailure", "status": "True"}]}},
        {**its_set, "status": {}},
        *({**its_set, "metadata": {**its_set["metadata"], field: {"a": "b"}}}
          for field in ("annotations", "labels", "ownerReferences", "deletionTimestamp")),
    ):  # fmt: skip
        assert not rest.stays(its_set, changed)


def count_looks(patched: pytest.MonkeyPatch, *kinds: type[Any]) -> list[str]:
    looks: list[str] = []
    for kind in kinds:
        usual = kind.reconcile

        async def counted(self: Any, key: str, _usual: Any = usual) -> Result | None:
            looks.append(f"{type(self).__name__} {key}")
            result: Result | None = await _usual(self, key)
            return result

        patched.setattr(kind, "reconcile", counted)
    return looks


def test_a_set_and_its_deployment_do_not_look_at_what_they_told(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count_looks(monkeypatch, ReplicaSetReconciler, DeploymentReconciler)
    template = replica_set()["spec"]["template"]
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with World([replica_set_controller.build, deployment_controller.build]) as world:
        world.create(DEPLOYMENTS, {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        })  # fmt: skip
        world.pass_time()
        (one, _) = world.pods(app="web")
        looks.clear()
        # The kubelet's word on an address changes no number; that a pod is not ready does, once for each of the two.
        name = one["metadata"]["name"]
        patch: JsonObject = {"status": {"hostIP": "10.0.0.9"}}
        world.cluster.run(world.client.patch_status(PODS, name, patch, namespace="default"))
        world.pass_time()
        assert not looks
        unready = [{**c, "status": "False"} if c["type"] == "Ready" else c for c in one["status"]["conditions"]]
        patch = {"status": {"conditions": unready}}
        world.cluster.run(world.client.patch_status(PODS, name, patch, namespace="default"))
        world.pass_time()
        assert world.get(DEPLOYMENTS, "web")["status"]["readyReplicas"] == 1
        assert [look.split()[0] for look in looks] == ["ReplicaSetReconciler", "DeploymentReconciler"]


def test_a_deployment_at_rest_that_gets_another_size_tells_of_it() -> None:
    template = replica_set()["spec"]["template"]
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with World([replica_set_controller.build, deployment_controller.build]) as world:
        world.create(DEPLOYMENTS, {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        })  # fmt: skip
        world.pass_time()
        for size in (3, 1):
            patch: JsonObject = {"spec": {"replicas": size}}
            world.cluster.run(world.client.patch(DEPLOYMENTS, "web", patch, namespace="default"))
            world.pass_time()
            status = world.get(DEPLOYMENTS, "web")["status"]
            assert (status["replicas"], status["availableReplicas"], status["updatedReplicas"]) == (size,) * 3
            assert status["observedGeneration"] == world.get(DEPLOYMENTS, "web")["metadata"]["generation"]


@pytest.mark.parametrize("resource", [REPLICA_SETS, DEPLOYMENTS])
def test_what_somebody_else_wrote_into_a_status_is_put_right(resource: Any) -> None:
    template = replica_set()["spec"]["template"]
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with World([replica_set_controller.build, deployment_controller.build]) as world:
        world.create(resource, {
            "apiVersion": "apps/v1", "kind": resource.kind, "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        })  # fmt: skip
        world.pass_time()
        status = world.get(resource, "web")["status"]
        wrong = {"status": {"readyReplicas": 1, "availableReplicas": 1}}
        world.cluster.run(world.client.patch_status(resource, "web", wrong, namespace="default"))
        world.pass_time()
        assert world.get(resource, "web")["status"] == status


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False)])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_pod_on_a_node_that_evicts_goes_whichever_was_there_first(effect: str, stays: bool, is_late: bool) -> None:
    tainted = node("n1")
    tainted["spec"] = {**(tainted.get("spec") or {}), "taints": [{"key": "bad", "effect": effect}]}
    bound = pod("p", node="n1")
    with House(taint_eviction_controller.build) as home:
        for resource, obj in ((PODS, bound), (NODES, tainted)) if is_late else ((NODES, tainted), (PODS, bound)):
            home.create(resource, obj)
            home.pass_time(5)
        home.pass_time(60)
        assert (not home.exists(PODS, "p") or "deletionTimestamp" in home.get(PODS, "p")["metadata"]) != stays


@st.composite
def families(draw: st.DrawFn) -> tuple[list[JsonObject], JsonObject, JsonObject]:
    """Objects that own each other, one of them, and what it is while it is being deleted."""
    objects: list[JsonObject] = []
    for number in range(draw(st.integers(1, 5))):
        owners = draw(st.lists(st.sampled_from([f"o{n}" for n in range(6)]), unique=True, max_size=2))
        references = [owner_reference(uid, blocks=draw(st.booleans())) for uid in owners if uid != f"o{number}"]
        objects.append(owned(f"o{number}", *references))
    chosen = draw(st.sampled_from(objects))
    finalizers = draw(st.sampled_from((None, ["foregroundDeletion"], ["orphan"], ["example.com/keep"])))
    meta = {**chosen["metadata"], "deletionTimestamp": ago(1)}
    if finalizers:
        meta["finalizers"] = finalizers
    return objects, chosen, {**chosen, "metadata": meta}


@given(families(), st.booleans(), st.sets(st.sampled_from(["o0", "o1", "o2", "o3"])))
def test_to_hear_only_of_the_end_asks_for_what_the_deletion_asked_for(
    drawn: tuple[list[JsonObject], JsonObject, JsonObject], is_known: bool, waiting: set[str]
) -> None:
    objects, chosen, leaving = drawn
    long, short = OwnershipGraph(), OwnershipGraph()
    for graph in (long, short):
        for obj in objects:
            if is_known or obj is not chosen:
                graph.observe(None, obj)
            if obj is not chosen and obj["metadata"]["uid"] in waiting:
                meta = {**obj["metadata"], "deletionTimestamp": ago(2), "finalizers": ["foregroundDeletion"]}
                graph.observe(obj, {**obj, "metadata": meta})
    asked = {*long.observe(chosen, leaving).to_delete, *long.observe(leaving, None).to_delete}
    asked_shortly = {*short.observe(leaving, None).to_delete}
    known, known_shortly = set(long._nodes), set(short._nodes)
    assert {uid for uid in asked if uid in known} >= asked_shortly
    # Beyond that only owners are asked about that wait for nothing any more, or that were never heard of but now.
    more = {uid for uid in asked if uid in known} - asked_shortly
    owners = {one["uid"] for one in chosen["metadata"]["ownerReferences"]}
    assert not more or (not is_known and more <= owners)
    assert known == known_shortly or not is_known


def test_what_is_gone_by_the_time_it_is_told_of_is_not_taken_over() -> None:
    async def main(clock: VirtualClock) -> None:
        collector = GarbageCollector(clock, Client(FakeTransport(clock)), rng=Rng("garbage"))
        child = owned("child", owner_reference("owner"))
        leaving = {**child, "metadata": {**child["metadata"], "deletionTimestamp": ago(1)}}
        anew = {**child, "metadata": {**child["metadata"], "uid": "another"}}
        cache = Cache()
        for latest in (None, anew):
            if latest is not None:
                cache.put("default/child", latest)
            collector._on_event(cache, "MODIFIED", child, leaving)
            assert len(collector.graph) == 0
        cache.put("default/child", leaving)
        collector._on_event(cache, "MODIFIED", child, leaving)
        assert len(collector.graph) == 2, "it is there, and an owner that nobody has seen"

    run_virtual(main)


def test_pods_that_were_there_before_the_first_claim_keep_it_until_they_end() -> None:
    mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    with volumes.house() as home:
        home.create(PODS, pod(node="n1", volumes=[mount]))
        home.pass_time(1)
        home.create(PERSISTENT_VOLUME_CLAIMS, volumes.claim())
        home.pass_time(1)
        home.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        home.pass_time(30)
        assert home.exists(PERSISTENT_VOLUME_CLAIMS, "c")
        home.delete(PODS, "p", grace_s=0)
        home.pass_time(1)
        assert not home.exists(PERSISTENT_VOLUME_CLAIMS, "c")
