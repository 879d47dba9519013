"""A whole fleet on an in-process cluster, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.audience import SPEC
from holokube.client.client import Client, PatchType
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.informer import Informer
from holokube.client.resources import EVENTS, LEASES, NODES, PODS
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.node_life import Fault
from holokube.hollow.profile import named_profile, parse_profile
from holokube.kube.conditions import get_condition, is_true
from holokube.kube.timeformat import parse_time
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster
from tests.builders import pod
from tests.hollow.worlds import RunningFleet, fake_node, ready_nodes, start_fleet

OPTIONS = FleetOptions(annotation_selector="kwok.x-k8s.io/node=fake")


def make_nodes(cluster: Cluster, count: int) -> None:
    async def create() -> None:
        for number in range(count):
            await cluster.client.create(NODES, fake_node(f"n{number}"))

    cluster.run(create)


def make_pods(cluster: Cluster, count: int, nodes: int, **spec: Any) -> None:
    async def create() -> None:
        for number in range(count):
            await cluster.client.create(PODS, pod(f"p{number}", node=f"n{number % nodes}", **spec))

    cluster.run(create)


def start(cluster: Cluster, options: FleetOptions = OPTIONS, identity: str = "one") -> RunningFleet:
    return cluster.run(start_fleet(cluster.clock, cluster.client, options, identity=identity))


def lease_ages(cluster: Cluster) -> dict[str, float]:
    leases = cluster.run(cluster.client.list(LEASES, "kube-node-lease")).items
    now_s = cluster.clock.time()
    return {
        lease["metadata"]["name"]: now_s - parse_time(lease["spec"]["renewTime"]).timestamp() for lease in leases
    }


def test_a_thousand_nodes_are_ready_after_one_status_patch_each() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1000)
        cluster.pass_time(5)
        assert len(ready_nodes(cluster)) == 1000
        assert running.transport.calls["patch nodes/status"] == 1000
        assert running.transport.calls["create leases"] == 1000
        assert running.transport.calls["get leases"] == 0
        assert running.transport.calls["watch nodes"] == running.transport.calls["watch pods"] == 1
        cluster.run(running.end())


def test_five_thousand_pods_run_after_one_patch_each() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 100)
        cluster.pass_time(2)
        make_pods(cluster, 5000, 100)
        cluster.pass_time(5)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert {item["status"]["phase"] for item in pods} == {"Running"}
        assert len({item["status"]["podIP"] for item in pods}) == 5000
        assert running.transport.calls["patch pods/status"] == 5000
        assert running.fleet.pods.stats.refused == running.fleet.pods.stats.errors == 0
        cluster.run(running.end())


def test_no_lease_is_ever_older_than_twelve_seconds() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 20)
        for _ in range(360):
            cluster.pass_time(10)
            assert max(lease_ages(cluster).values()) < 12
        leases = running.fleet.leases
        assert leases is not None
        assert leases.stats.worst_age_s < 12
        assert leases.stats.reads == leases.stats.conflicts == 0
        per_node = leases.stats.renewals / 20
        assert 3600 / 10.6 < per_node < 3600 / 10
        assert running.transport.calls["patch nodes/status"] <= 20 * (1 + 3600 / 300 + 1)
        cluster.run(running.end())


def test_leases_look_like_those_of_kubelets() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        cluster.pass_time(1)
        lease = cluster.run(cluster.client.get(LEASES, "n0", "kube-node-lease"))
        node = cluster.run(cluster.client.get(NODES, "n0"))
        (owner,) = lease["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": node["metadata"]["uid"]}
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["spec"]["holderIdentity"] == "one"
        cluster.run(running.end())


def test_only_nodes_that_match_are_touched() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        real = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}
        cluster.run(cluster.client.create(NODES, real))
        cluster.run(cluster.client.create(PODS, pod("on-real", node="real")))
        cluster.pass_time(60)
        assert ready_nodes(cluster) == ["n0"]
        assert cluster.run(cluster.client.get(PODS, "on-real", "default"))["status"]["phase"] == "Pending"
        cluster.run(running.end())


def test_label_selectors_are_applied_by_the_server() -> None:
    with Cluster() as cluster:
        running = start(cluster, FleetOptions(label_selector="type=hollow"))
        cluster.run(cluster.client.create(NODES, fake_node("a", type="hollow")))
        cluster.run(cluster.client.create(NODES, fake_node("b")))
        cluster.pass_time(5)
        assert ready_nodes(cluster) == ["a"] and running.fleet.owned() == ["a"]
        cluster.run(running.end())


def test_a_fleet_must_be_told_which_nodes_are_its_own() -> None:
    with pytest.raises(UsageError, match="neither"):
        FleetOptions()
    with pytest.raises(UsageError, match="both"):
        FleetOptions(manage_all_nodes=True, label_selector="a=b")
    with pytest.raises(UsageError, match="shard 3"):
        FleetOptions(manage_all_nodes=True, shard=3, shards=3)


def test_registered_nodes_are_complete_and_become_ready() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        cluster.run(running.fleet.register(["a", "b"]))
        cluster.run(running.fleet.register(["b"]))
        cluster.pass_time(5)
        assert ready_nodes(cluster) == ["a", "b"]
        node = cluster.run(cluster.client.get(NODES, "a"))
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "a"
        assert node["status"]["allocatable"]["pods"] == "110"
        assert [c["type"] for c in node["status"]["conditions"]] == [
            "MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "NetworkUnavailable"]  # fmt: skip
        cluster.run(running.end())


def flap(cluster: Cluster) -> None:
    """What the node lifecycle controller does to a node that is silent, and to its pods."""
    ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "stopped posting"}
    unready = {"type": "Ready", "status": "False"}
    client = cluster.client
    strategic = PatchType.STRATEGIC
    cluster.run(client.patch_status(NODES, "n0", {"status": {"conditions": [ready]}}, type=strategic))
    patch = {"status": {"conditions": [unready]}}
    cluster.run(client.patch_status(PODS, "p0", patch, namespace="default", type=strategic))


def test_a_node_flap_restores_ready_of_node_and_pods() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        make_pods(cluster, 1, 1)
        cluster.pass_time(5)
        running.fleet.inject("n0", Fault.SILENT)
        cluster.pass_time(60)
        assert lease_ages(cluster)["n0"] > 55
        flap(cluster)
        cluster.pass_time(60)
        assert ready_nodes(cluster) == []
        running.fleet.heal("n0")
        cluster.pass_time(15)
        assert ready_nodes(cluster) == ["n0"]
        assert is_true(cluster.run(cluster.client.get(PODS, "p0", "default")), "Ready")
        assert lease_ages(cluster)["n0"] < 12
        cluster.run(running.end())


def test_a_flap_in_the_middle_of_life_is_put_right_at_once() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        make_pods(cluster, 1, 1)
        cluster.pass_time(5)
        flap(cluster)
        cluster.pass_time(1)
        assert ready_nodes(cluster) == ["n0"]
        assert is_true(cluster.run(cluster.client.get(PODS, "p0", "default")), "Ready")
        cluster.run(running.end())


@pytest.mark.parametrize("graceful", [True, False])
def test_another_fleet_takes_over_when_one_stops(graceful: bool) -> None:
    with Cluster() as cluster:
        one = start(cluster)
        make_nodes(cluster, 20)
        cluster.pass_time(5)
        two = start(cluster, identity="two")
        cluster.pass_time(60)
        assert len(one.fleet.owned()) == 20 and two.fleet.owned() == []
        cluster.run(one.end() if graceful else one.kill())
        for _ in range(12):
            cluster.pass_time(5)
            # The node lifecycle controller gives up on a node after 50 s.
            assert max(lease_ages(cluster).values()) < 48
        assert len(two.fleet.owned()) == 20
        make_pods(cluster, 20, 20)
        cluster.pass_time(2)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert {item["status"]["phase"] for item in pods} == {"Running"}
        cluster.run(two.end())


def test_a_fleet_that_gave_its_leases_back_is_followed_at_once() -> None:
    with Cluster() as cluster:
        one = start(cluster)
        make_nodes(cluster, 5)
        cluster.pass_time(5)
        cluster.run(one.end())
        two = start(cluster, identity="two")
        cluster.pass_time(1)
        assert len(two.fleet.owned()) == 5
        cluster.run(two.end())


def test_a_restarted_fleet_of_the_same_name_goes_on_at_once() -> None:
    with Cluster() as cluster:
        one = start(cluster)
        make_nodes(cluster, 5)
        make_pods(cluster, 5, 5)
        cluster.pass_time(5)
        cluster.run(one.kill())
        again = start(cluster)
        cluster.pass_time(1)
        assert len(again.fleet.owned()) == 5
        assert again.transport.calls["patch nodes/status"] == again.transport.calls["patch pods/status"] == 0
        assert again.transport.calls["get leases"] == 0
        cluster.run(again.end())


def test_shards_begin_with_their_own_nodes() -> None:
    with Cluster() as cluster:
        options = [FleetOptions(manage_all_nodes=True, shard=shard, shards=2) for shard in (0, 1)]
        one, two = start(cluster, options[0], "one"), start(cluster, options[1], "two")
        make_nodes(cluster, 40)
        cluster.pass_time(100)
        shares = [set(one.fleet.owned()), set(two.fleet.owned())]
        assert not shares[0] & shares[1] and len(shares[0] | shares[1]) == 40
        assert min(map(len, shares)) > 8
        cluster.run(one.kill())
        cluster.pass_time(60)
        assert len(two.fleet.owned()) == 40
        cluster.run(two.end())


def test_without_leases_the_status_beats_every_ten_seconds() -> None:
    profile = parse_profile("nodes: {report_every_s: 10}")
    with Cluster() as cluster:
        running = start(cluster, FleetOptions(manage_all_nodes=True, lease_duration_s=0, profile=profile))
        make_nodes(cluster, 1)
        cluster.pass_time(100)
        assert lease_ages(cluster) == {}
        assert 9 <= running.transport.calls["patch nodes/status"] <= 12
        node = cluster.run(cluster.client.get(NODES, "n0"))
        ready = get_condition(node, "Ready")
        assert ready is not None
        beat_s = parse_time(ready["lastHeartbeatTime"]).timestamp()
        assert cluster.clock.time() - beat_s < 12 < beat_s - parse_time(ready["lastTransitionTime"]).timestamp()
        cluster.run(running.end())


@pytest.mark.parametrize(
    ("fault", "condition", "status"),
    [("not-ready", "Ready", "False"), ("memory-pressure", "MemoryPressure", "True"),
     ("disk-pressure", "DiskPressure", "True"), ("pid-pressure", "PIDPressure", "True")],
)  # fmt: skip
def test_faults_come_and_go_with_a_label(fault: str, condition: str, status: str) -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        cluster.pass_time(2)

        def shown() -> str:
            found = get_condition(cluster.run(cluster.client.get(NODES, "n0")), condition)
            assert found is not None
            return str(found["status"])

        healthy = shown()
        for value, expected in ((fault, status), (None, healthy)):
            cluster.run(cluster.client.patch(NODES, "n0", {"metadata": {"labels": {"holokube.dev/fault": value}}}))
            cluster.pass_time(1)
            assert shown() == expected
        assert healthy != status
        cluster.run(running.end())


def test_a_reboot_silences_the_node_and_restarts_its_containers() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        make_pods(cluster, 1, 1)
        cluster.pass_time(2)
        before = cluster.run(cluster.client.get(NODES, "n0"))["status"]["nodeInfo"]["bootID"]
        cluster.run(cluster.client.patch(NODES, "n0", {"metadata": {"annotations": {"holokube.dev/reboot": "1"}}}))
        cluster.pass_time(29)
        assert lease_ages(cluster)["n0"] > 25
        cluster.pass_time(5)
        assert cluster.run(cluster.client.get(NODES, "n0"))["status"]["nodeInfo"]["bootID"] != before
        shown = cluster.run(cluster.client.get(PODS, "p0", "default"))["status"]["containerStatuses"][0]
        assert (shown["restartCount"], shown["ready"]) == (1, True)
        events = cluster.run(cluster.client.list(EVENTS)).items
        assert [event["reason"] for event in events] == ["Rebooted"]
        cluster.run(running.end())


def test_the_kubelet_profile_writes_events_and_deletes_gracefully() -> None:
    with Cluster() as cluster:
        options = FleetOptions(manage_all_nodes=True, profile=named_profile("kubelet"))
        running = start(cluster, options)
        make_nodes(cluster, 1)
        make_pods(cluster, 1, 1)
        cluster.pass_time(60)
        assert cluster.run(cluster.client.get(PODS, "p0", "default"))["status"]["phase"] == "Running"
        cluster.run(cluster.client.delete(PODS, "p0", "default"))
        cluster.pass_time(5)
        assert cluster.run(cluster.client.list(PODS)).items == []
        events = cluster.run(cluster.client.list(EVENTS, "default")).items
        reasons = [event["reason"] for event in events if event["involvedObject"]["kind"] == "Pod"]
        assert reasons == ["Pulled", "Created", "Started", "Killing"]
        started = next(event for event in events if event["reason"] == "Started")
        assert started["source"] == {"component": "kubelet", "host": "n0"}
        assert started["involvedObject"]["fieldPath"] == "spec.containers{c}"
        assert running.transport.calls["delete pods"] == 1
        cluster.run(running.end())


def test_pods_that_do_not_fit_are_rejected() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        node = {**fake_node("n0"), "status": {"capacity": {"cpu": "2", "memory": "1Gi", "pods": "2"}}}
        cluster.run(cluster.client.create(NODES, node))
        cluster.pass_time(2)
        big = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m"}}}]
        make_pods(cluster, 2, 1, containers=big)
        cluster.pass_time(2)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert [item["status"].get("reason") for item in pods] == [None, "OutOfcpu"]
        assert pods[1]["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 1500, used: 1500, capacity: 2000"
        )
        cluster.run(cluster.client.delete(PODS, "p0", "default"))
        cluster.pass_time(2)
        cluster.run(cluster.client.create(PODS, pod("p2", node="n0", containers=big)))
        cluster.pass_time(2)
        assert cluster.run(cluster.client.get(PODS, "p2", "default"))["status"]["phase"] == "Running"
        cluster.run(running.end())


def test_pod_addresses_come_from_the_nodes_own_range() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        cluster.run(cluster.client.create(NODES, {**fake_node("n0"), "spec": {"podCIDR": "10.7.7.0/29"}}))
        cluster.pass_time(2)
        make_pods(cluster, 7, 1)
        cluster.pass_time(2)
        pods = cluster.run(cluster.client.list(PODS)).items
        addresses = {item["status"].get("podIP") for item in pods}
        assert addresses == {*(f"10.7.7.{number}" for number in range(1, 7)), None}
        cluster.run(cluster.client.delete(PODS, "p0", "default"))
        cluster.pass_time(15)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert {item["status"]["phase"] for item in pods} == {"Running"}
        cluster.run(running.end())


def test_finalizers_are_for_others_to_remove() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 1)
        held = pod("p0", node="n0")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        cluster.run(cluster.client.create(PODS, held))
        cluster.pass_time(2)
        cluster.run(cluster.client.delete(PODS, "p0", "default"))
        cluster.pass_time(30)
        assert cluster.run(cluster.client.get(PODS, "p0", "default"))["metadata"]["finalizers"] == ["example.com/hold"]
        assert running.transport.calls["delete pods"] == 1
        cluster.run(running.end())


def test_a_deleted_node_is_forgotten_and_one_of_the_same_name_is_new() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 2)
        make_pods(cluster, 4, 2)
        cluster.pass_time(2)
        cluster.run(cluster.client.delete(NODES, "n0"))
        cluster.pass_time(2)
        assert running.fleet.owned() == ["n1"] and len(running.fleet.pods) == 2
        cluster.run(cluster.client.create(NODES, fake_node("n0")))
        cluster.pass_time(15)
        assert sorted(ready_nodes(cluster)) == ["n0", "n1"]
        cluster.run(running.end())


def test_nothing_is_left_behind_when_all_is_deleted() -> None:
    with Cluster() as cluster:
        running = start(cluster)
        make_nodes(cluster, 3)
        for _ in range(3):
            make_pods(cluster, 9, 3)
            cluster.pass_time(2)
            for number in range(9):
                cluster.run(cluster.client.delete(PODS, f"p{number}", "default"))
            cluster.pass_time(2)
        assert len(running.fleet.pods) == 0
        for record in running.fleet.nodes.records():
            assert record.load is None and not record.pods and not record.admitted
        for number in range(3):
            cluster.run(cluster.client.delete(NODES, f"n{number}"))
        cluster.pass_time(2)
        assert len(running.fleet.nodes) == 0 and len(running.fleet.wheel) == 0
        cluster.run(running.end())


def test_a_misbehaving_server_delays_but_loses_nothing() -> None:
    with Cluster() as cluster:
        faults = Faults(conflict=0.05, too_many_requests=0.05, timeout_before=0.05, timeout_after=0.05)
        shaky = Client(FaultyTransport(cluster.clock, cluster.client.transport, cluster.rng, faults))
        running = cluster.run(start_fleet(cluster.clock, shaky, OPTIONS))
        make_nodes(cluster, 30)
        make_pods(cluster, 90, 30)
        cluster.pass_time(300)
        assert len(ready_nodes(cluster)) == 30
        assert {item["status"]["phase"] for item in cluster.run(cluster.client.list(PODS)).items} == {"Running"}
        assert max(lease_ages(cluster).values()) < 40
        cluster.run(running.end())


def test_the_same_seed_gives_the_same_store() -> None:
    def story() -> list[Any]:
        with Cluster(seed=5) as cluster:
            options = FleetOptions(manage_all_nodes=True, profile=named_profile("kubelet"))
            running = start(cluster, options)
            make_nodes(cluster, 3)
            make_pods(cluster, 9, 3)
            cluster.pass_time(120)
            result = [cluster.run(cluster.client.list(kind)).items for kind in (NODES, PODS, LEASES, EVENTS)]
            cluster.run(running.end())
            return result

    assert story() == story()


def test_a_fleet_needs_no_task_per_node() -> None:
    with Cluster() as cluster:
        running = start(cluster)

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        cluster.pass_time(1)
        before = cluster.run(tasks())
        make_nodes(cluster, 200)
        make_pods(cluster, 400, 200)
        cluster.pass_time(30)
        assert cluster.run(tasks()) == before
        cluster.run(running.end())


def test_a_fleet_finds_the_pods_of_a_node_by_the_index_of_others() -> None:
    asked: list[str] = []

    def by_node(item: dict[str, Any]) -> tuple[str, ...]:
        asked.append(item["metadata"]["name"])
        node = item["spec"].get("nodeName")
        return (node,) if node else ()

    async def live(cluster: Cluster) -> None:
        pods = Informer(cluster.clock, cluster.client, PODS)
        pods.add_index("theirs", by_node, heeds=SPEC)
        pods.start()
        await pods.synced()
        fleet = Fleet(
            cluster.clock, cluster.client, OPTIONS, rng=Rng(1), identity="one", pods=pods, by_node="theirs"
        )
        stop = StopSignal()
        running = asyncio.create_task(fleet.run(stop))
        await cluster.clock.sleep(2)
        # The pods were there before their node.
        await cluster.client.create(NODES, fake_node("n0"))
        await cluster.clock.sleep(5)
        phases = {item["status"]["phase"] for item in (await cluster.client.list(PODS)).items}
        stop.set()
        await running
        await pods.stop()
        assert phases == {"Running"}
        assert asked == ["p0", "p1"]
        assert fleet.by_node == "theirs"
        with pytest.raises(KeyError, match="there are: theirs"):
            pods.lister.by_index("node/one", "n0")

    with Cluster() as cluster:
        make_pods(cluster, 2, 1)
        cluster.run(live(cluster))
