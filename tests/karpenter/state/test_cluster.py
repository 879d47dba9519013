from __future__ import annotations

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import NODES, PODS, Resource
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.state.pod_times import PodTimes
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from tests.karpenter.objects import claim, condition, node, pod, pool

NODEPOOL = {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "small"}


class World:
    """A state that is told of changes by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._informers = InformerSet(self.clock, Client(None), Rng(0))  # type: ignore[arg-type] # nothing is asked for
        self.state = ClusterState(self.clock, self._informers, supports, nomination_s=20.0)
        self._known: dict[tuple[Resource, str], JsonObject] = {}

    def put(self, *objects: JsonObject) -> None:
        for obj in objects:
            self._tell(obj, obj)

    def remove(self, *objects: JsonObject) -> None:
        for obj in objects:
            self._tell(obj, None)

    def _tell(self, obj: JsonObject, new: JsonObject | None) -> None:
        resource = {"Node": NODES, "Pod": PODS, "NodeClaim": NODE_CLAIMS, "NodePool": NODE_POOLS}[obj["kind"]]
        key = resource, obj["metadata"]["name"]
        old = self._known.pop(key, None)
        if new is not None:
            self._known[key] = new
        informer: Informer = self._informers.get(resource)
        informer._tell("DELETED" if new is None else "MODIFIED" if old else "ADDED", old, new)

    def moves(self, *changes: JsonObject | None, removed: bool = False) -> bool:
        """Whether changes open consolidation anew."""
        before = self.state.consolidation_mark()
        (self.remove if removed else self.put)(*filter(None, changes))
        return self.state.consolidation_mark() != before


def supports(ref: NodeClassRef) -> bool:
    return ref.kind == "KWOKNodeClass"


def launched(name: str = "c", provider_id: str = "kwok://n", *conditions: JsonObject, **parts: object) -> JsonObject:
    status = {"providerID": provider_id, "capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    return claim(name, *conditions, status=status, labels=NODEPOOL, **parts)  # type: ignore[arg-type] # fields


def test_a_node_and_a_claim_of_one_instance_are_one() -> None:
    world = World()
    world.put(launched(), node("n", provider_id="kwok://n", labels=NODEPOOL), node("theirs"))
    nodes = {one.name: one for one in world.state.nodes()}
    assert set(nodes) == {"c", "theirs"}
    assert (nodes["c"].node_name, nodes["c"].is_managed, nodes["theirs"].is_managed) == ("n", True, False)
    world.remove(launched())
    assert {one.name for one in world.state.nodes()} == {"n", "theirs"}
    world.remove(node("n", provider_id="kwok://n"))
    assert len(world.state) == 1


def test_a_claim_without_an_instance_is_no_node_and_keeps_the_state_from_being_synced() -> None:
    world = World()
    world.put(claim("fresh"))
    assert world.state.nodes() == []
    assert world.state.unlaunched_claims() == ["fresh"]
    assert not world.state.is_synced()
    assert world.state.unsynced_since_s == world.clock.time()
    world.put(launched("fresh"))
    assert world.state.unlaunched_claims() == []


def test_claims_of_other_providers_are_not_ours() -> None:
    world = World()
    world.put(claim("x", nodeClassRef={"group": "g", "kind": "Other", "name": "n"}))
    assert not world.state.knows_claim("x")


def test_a_node_of_ours_that_is_half_made_is_not_there_yet() -> None:
    world = World()
    world.put(node("n", labels={"karpenter.sh/nodepool": "default"}, provider_id="kwok://n"))
    world.put(node("m", labels=NODEPOOL))
    assert world.state.nodes() == []


def test_an_answer_that_comes_after_the_end_of_its_claim_is_not_believed() -> None:
    world = World()
    world.put(claim("short"))
    world.remove(claim("short"))
    world.state.put_claim(claim("short"))
    assert not world.state.knows_claim("short")


def test_an_answer_that_is_older_than_an_event_changes_nothing() -> None:
    world = World()
    newer = launched("c", "kwok://n", condition("Registered"))
    newer["metadata"]["resourceVersion"] = "9"
    world.put(newer)
    world.state.put_claim(launched())
    assert world.state.nodes()[0].node_claim is newer


def test_a_claim_that_is_known_from_its_creation_alone_can_be_forgotten() -> None:
    world = World()
    world.state.put_claim(claim("lost"))
    world.state.forget_claim("lost")
    assert world.state.unlaunched_claims() == []


def test_pods_are_on_their_node_whichever_comes_first() -> None:
    world = World()
    world.put(pod("early", node_name="n"), node("n"), pod("late", node_name="n"), pod("free", phase="Pending"))
    (found,) = world.state.nodes()
    assert {one["metadata"]["name"] for one in found.pods} == {"early", "late"}
    assert [one["metadata"]["name"] for one in world.state.unbound_pods] == ["free"]
    world.put(pod("free", node_name="n"))
    assert world.state.unbound_pods == ()
    world.remove(pod("early", node_name="n"), pod("free", node_name="n"))
    assert [one["metadata"]["name"] for one in world.state.pods_on("n")] == ["late"]


def test_a_pod_whose_name_is_used_again_elsewhere_is_there_only() -> None:
    world = World()
    world.put(node("a"), node("b"), pod("web-0", node_name="a"), pod("web-0", node_name="b"))
    assert {one.name: len(one.pods) for one in world.state.nodes()} == {"a": 0, "b": 1}


def test_nothing_that_was_seen_changes_later() -> None:
    world = World()
    world.put(node("n"))
    (before,) = world.state.nodes()
    world.put(pod("p", node_name="n"))
    (after,) = world.state.nodes()
    assert (len(before.pods), len(after.pods)) == (0, 1)
    assert world.state.nodes()[0] is after


def test_a_heartbeat_leaves_all_that_was_worked_out_of_a_node_as_it_is() -> None:
    world = World()
    world.put(node("n", condition("Ready")))
    (before,), version = world.state.nodes(), world.state.version
    world.put(node("n", condition("Ready", lastHeartbeatTime="later"), resourceVersion="2"))
    assert world.state.nodes()[0] is before
    assert world.state.version == version
    world.put(node("n", condition("Ready", "False")))
    assert world.state.nodes()[0] is not before
    assert world.state.version != version


def test_pods_that_are_protected_for_a_while_are_known() -> None:
    world = World()
    world.put(pod("for-good", annotations={"karpenter.sh/do-not-disrupt": "true"}))
    assert not world.state.has_timed_pods
    timed = pod("timed", node_name="n", annotations={"karpenter.sh/do-not-disrupt": "5m"})
    world.put(timed)
    assert world.state.has_timed_pods
    world.remove(timed)
    assert not world.state.has_timed_pods


def test_marks_and_nominations_show_on_the_node() -> None:
    world = World()
    world.put(launched())
    world.state.nominate("kwok://n")
    world.state.nominate("unknown")
    assert world.state.nodes()[0].is_nominated(world.clock.time() + 19.9)
    assert not world.state.nodes()[0].is_nominated(world.clock.time() + 20)
    world.state.mark_for_deletion(["kwok://n", "unknown"])
    assert world.state.nodes()[0].is_marked_for_deletion
    assert world.state.usage_of("default") == {}
    world.state.unmark_for_deletion(["kwok://n"])
    assert world.state.usage_of("default") == {"cpu": 4000, "nodes": 1000}


def test_a_nomination_that_is_renewed_in_time_lasts_longer_and_leaves_the_node_as_it_was() -> None:
    world = World()
    world.put(launched(), node("n", provider_id="kwok://n", labels=NODEPOOL))
    unaware = world.state.all_nodes
    world.state.nominate("kwok://n")
    seen, version = world.state.all_nodes, world.state.version
    assert (unaware[0].is_nominated(world.clock.time()), seen[0].is_nominated(world.clock.time())) == (False, True)
    world.clock.advance(15)
    world.state.nominate("kwok://n")
    assert world.state.all_nodes is seen
    assert world.state.version != version
    assert seen[0].is_nominated(world.clock.time() + 19.9)
    assert not seen[0].is_nominated(world.clock.time() + 20)
    # What is made of the node later knows of it; and one that is nominated anew is another.
    world.put(launched("c", "kwok://n", condition("Consolidatable")))
    world.state.nominate("kwok://n")
    changed = world.state.all_nodes
    assert changed[0] is not seen[0] and changed[0].nominated_until_s == seen[0].nominated_until_s
    world.clock.advance(20)
    world.state.nominate("kwok://n")
    assert not changed[0].is_nominated(world.clock.time())
    assert world.state.all_nodes[0].is_nominated(world.clock.time() + 19.9)


def test_a_nomination_has_nobody_count_what_pools_use() -> None:
    world = World()
    world.put(launched(), node("n", provider_id="kwok://n", labels=NODEPOOL))
    before, calls = world.state.version, list[None]()
    world.state.before_recounts(lambda: calls.append(None))
    world.state.nominate("kwok://n")
    assert not calls
    assert world.state.version != before
    world.state.mark_for_deletion(["kwok://n"])
    assert calls


def test_usage_is_that_of_nodes_that_stay() -> None:
    world = World()
    world.put(launched("a", "1"), launched("b", "2"), launched("c", "3", deleted_s=0))
    assert world.state.usage_of("default") == {"cpu": 8000, "nodes": 2000}
    assert world.state.usage_of("other") == {}


def test_what_may_make_consolidation_possible_moves_the_mark_and_the_rest_does_not() -> None:
    world = World()
    up = node("n", provider_id="kwok://n", labels=NODEPOOL)
    ready = node("n", provider_id="kwok://n", labels={**NODEPOOL, "karpenter.sh/initialized": "true"})
    bound = pod("p", node_name="n")
    assert world.moves(launched())
    assert not world.moves(launched())
    assert not world.moves(up)
    assert world.moves(ready)
    assert world.moves(bound)
    assert not world.moves(pod("p", node_name="n", phase="Succeeded"))
    assert world.moves(bound, removed=True)
    assert not world.moves(pod("free", phase="Pending"))
    assert world.moves(launched(deleted_s=0))
    assert world.moves(pool())
    changed = pool()
    changed["metadata"]["generation"] = 2
    assert not world.moves(pool())
    assert world.moves(changed)
    assert world.moves(launched(deleted_s=0), removed=True)


def test_the_mark_moves_by_itself_after_five_minutes() -> None:
    world = World()
    before = world.state.consolidation_mark()
    world.clock.advance(299)
    assert world.state.consolidation_mark() == before
    world.clock.advance(1)
    assert world.state.consolidation_mark() != before


def test_the_wait_of_a_pod_is_counted_once() -> None:
    times = PodTimes()
    assert times.decided("never-seen", 5.0) is None
    times.seen("p", 10.0)
    times.seen("p", 12.0)
    assert (times.decided("p", 15.0), times.decided("p", 16.0)) == (5.0, None)
    times.forget("p")
    assert times.seen_s("p") is None


def test_a_pod_is_expected_on_the_claim_that_was_made_for_it_last() -> None:
    times = PodTimes()
    times.expect_on_claim(["a", "b"], "one")
    times.expect_on_claim(["b"], "two")
    assert (times.expected_on_claim("one"), times.expected_on_claim("two")) == (["a"], ["b"])
    times.no_place("a")
    times.forget("b")
    assert times.expected_on_claim("one") == times.expected_on_claim("two") == []
