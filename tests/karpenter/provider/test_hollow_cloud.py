"""What can go wrong with launches, on virtual time: the claim ends, and the pods get another chance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.client.resources import NODES
from holokube.hollow.node_life import Fault
from holokube.karpenter.api.labels import RESERVATION_ID_LABEL
from holokube.karpenter.provider.faults import Faults, Place
from holokube.karpenter.settings import Settings
from holokube.kube.conditions import get_condition
from holokube.pricing.instance_types import RESERVED, Catalog, Offering
from holokube.testing import Cluster
from tests.karpenter.lab import instance_type, lab, node_pool, workload


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_machine_that_never_registers_is_given_up_after_fifteen_minutes() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 1), faults=Faults(never_registers=1.0)) as here:
            await cluster.clock.sleep(60)
            (first,) = await here.claims()
            condition = get_condition(first, "Registered")
            assert condition is not None
            assert (condition["status"], condition["reason"]) == ("Unknown", "NodeNotFound")
            await cluster.clock.sleep(830)
            assert [one["metadata"]["name"] for one in await here.claims()] == [first["metadata"]["name"]]
            await cluster.clock.sleep(40)
            names = [one["metadata"]["name"] for one in await here.claims()]
            assert names
            assert first["metadata"]["name"] not in names
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="registration_timeout") == 1
            await cluster.clock.sleep(930)
            health = get_condition(await here.pool(), "NodeRegistrationHealthy")
            assert health is not None
            assert (health["status"], health["reason"]) == ("False", "RegistrationFailed")

    play(scenario)


def test_a_launch_that_always_fails_is_given_up_after_five_minutes() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 1), faults=Faults(launch_failure=1.0)) as here:
            await cluster.clock.sleep(200)
            (claim,) = await here.claims()
            condition = get_condition(claim, "Launched")
            assert condition is not None
            assert (condition["status"], condition["reason"]) == ("Unknown", "LaunchFailed")
            await cluster.clock.sleep(200)
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="launch_timeout") == 1
            assert claim["metadata"]["name"] not in {one["metadata"]["name"] for one in await here.claims()}
            assert await here.nodes() == []

    play(scenario)


def test_launches_that_fail_now_and_then_are_repeated_until_all_pods_run() -> None:
    async def scenario(cluster: Cluster) -> None:
        faults = Faults(launch_failure=0.5, slow=0.5, slow_by_s=120)
        async with lab(cluster, node_pool(), workload("web", 20, cpu="1500m"), faults=faults) as here:
            took_s = await here.until_running(20, within_s=900)
            assert took_s > 120
            await here.assert_nothing_leaked()

    play(scenario)


def test_what_is_sold_out_is_not_tried_again_and_something_else_is_launched() -> None:
    async def scenario(cluster: Cluster) -> None:
        stock = {Place("small", zone, "on-demand"): 0 for zone in ("zone-a", "zone-b")}
        pool = node_pool(requirements=[
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
        ])  # fmt: skip
        async with lab(cluster, pool, workload("web", 1), faults=Faults(stock=stock)) as here:
            await here.until_running(1, within_s=60)
            assert await here.types() == ["medium"]

    play(scenario)


def test_when_nothing_is_to_be_had_the_claim_is_deleted_and_the_pod_is_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        catalog = Catalog([instance_type("only", 4, 16, 0.2, zones=("zone-a",))])
        faults = Faults(stock={Place("only", "zone-a", "on-demand"): 0})
        async with lab(cluster, node_pool(), workload("web", 1), catalog=catalog, faults=faults) as here:
            await cluster.clock.sleep(30)
            assert await here.claims() == []
            assert "InsufficientCapacityError" in await here.reasons("Pod")
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="insufficient_capacity") == 1
            # The place is left alone for three minutes; then it is tried once more.
            await cluster.clock.sleep(140)
            assert here.running.value("karpenter_nodeclaims_created_total") == 1
            await cluster.clock.sleep(40)
            assert here.running.value("karpenter_nodeclaims_created_total") == 2

    play(scenario)


def test_reserved_machines_come_first_and_no_more_than_there_are() -> None:
    async def scenario(cluster: Cluster) -> None:
        reserved = Offering("zone-a", RESERVED, 0.0001, reservation_id="r-1", reservation_capacity=2)
        catalog = Catalog([instance_type("only", 2, 8, 0.2, extra=(reserved,))])
        pool = node_pool(requirements=[])
        apart = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
            ]}
        }  # fmt: skip
        async with lab(cluster, pool, workload("web", 4, affinity=apart), catalog=catalog) as here:
            await here.until_running(4, within_s=120)
            found = sorted(
                (claim["metadata"]["labels"]["karpenter.sh/capacity-type"],
                 claim["metadata"]["labels"].get(RESERVATION_ID_LABEL, ""))
                for claim in await here.claims()
            )  # fmt: skip
            assert found == [("reserved", "r-1"), ("reserved", "r-1"), ("spot", ""), ("spot", "")]

    play(scenario)


def test_a_claim_whose_node_vanished_is_collected() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 1)) as here:
            await here.until_running(1)
            (node,) = await here.nodes()
            (claim,) = await here.claims()
            # Somebody takes the finalizer off and the Node away: nothing that Karpenter is asked about.
            await here.running.kill()
            await cluster.client.patch(NODES, node["metadata"]["name"], {"metadata": {"finalizers": []}})
            await cluster.client.delete(NODES, node["metadata"]["name"])
            here.start()

            async def is_another() -> bool:
                names = [one["metadata"]["name"] for one in await here.claims()]
                return claim["metadata"]["name"] not in names and await here.running_pods() == 1

            await here.until(is_another, within_s=300)
            await here.assert_nothing_leaked()
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="garbage_collected") == 1

    play(scenario)


def test_a_node_is_registered_after_the_delay_of_its_class() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 1), delay="1m30s") as here:
            took_s = await here.until_running(1, within_s=200)
            assert 91 <= took_s <= 100

    play(scenario)


def test_startup_taints_keep_a_node_from_being_initialized_until_somebody_takes_them_away() -> None:
    async def scenario(cluster: Cluster) -> None:
        taint = {"key": "example.com/starting", "effect": "NoSchedule"}
        async with lab(cluster, node_pool(startupTaints=[taint]), workload("web", 1)) as here:
            await cluster.clock.sleep(30)
            (node,) = await here.nodes()
            assert taint in node["spec"]["taints"]
            (claim,) = await here.claims()
            condition = get_condition(claim, "Initialized")
            assert condition is not None
            assert condition["reason"] == "StartupTaintsExist"
            await cluster.client.patch(NODES, node["metadata"]["name"], {"spec": {"taints": []}})
            await here.until_running(1, within_s=30)

            async def is_initialized() -> bool:
                (found,) = await here.nodes()
                return "karpenter.sh/initialized" in found["metadata"]["labels"]

            await here.until(is_initialized, within_s=30)
            assert len(await here.claims()) == 1

    play(scenario)


def test_a_silent_node_whose_claim_is_deleted_goes_without_a_drain() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool(disruption={"consolidateAfter": "Never"})
        async with lab(cluster, pool, workload("web", 1), settings=Settings(batch_idle_duration_s=0.5)) as here:
            await here.until_running(1)
            (node,) = await here.nodes()
            assert cluster.living is not None
            assert cluster.living.fleet is not None
            cluster.living.fleet.inject(node["metadata"]["name"], Fault.SILENT)
            await cluster.clock.sleep(120)
            await cluster.client.delete(NODES, node["metadata"]["name"])

            async def is_gone() -> bool:
                return node["metadata"]["name"] not in {one["metadata"]["name"] for one in await here.nodes()}

            assert await here.until(is_gone, within_s=30) <= 5

    play(scenario)


def test_a_machine_with_a_hostname_of_another_kind_stays_as_long_as_its_claim_does() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 1)) as here:
            await here.until_running(1)
            (node,) = await here.nodes()
            name = node["metadata"]["name"]
            changed = {"metadata": {"labels": {"kubernetes.io/hostname": "rack-7"}}}
            await cluster.client.patch(NODES, name, changed)
            await cluster.clock.sleep(60)
            assert [one["metadata"]["name"] for one in await here.nodes()] == [name]
            assert await here.running_pods() == 1
            await here.assert_nothing_leaked()

    play(scenario)
