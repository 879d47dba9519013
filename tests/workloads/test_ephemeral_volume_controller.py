from __future__ import annotations

from typing import Any

from holokube.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from holokube.testing.cluster import Cluster
from holokube.workloads import ephemeral_volume_controller
from tests.builders import pod
from tests.workloads.housekeeping import House

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def user() -> dict[str, Any]:
    template = {"metadata": {"labels": {"made": "up"}}, "spec": CLAIM}
    return pod("user", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def test_a_pod_gets_the_claim_that_its_volume_describes_and_another_one_when_that_is_deleted() -> None:
    with House(ephemeral_volume_controller.build) as home:
        made = home.create(PODS, user())
        home.pass_time(1)
        claim = home.get(PERSISTENT_VOLUME_CLAIMS, "user-scratch")
        assert claim["metadata"]["labels"] == {"made": "up"}
        (owner,) = claim["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", made["metadata"]["uid"], True)
        home.patch(PERSISTENT_VOLUME_CLAIMS, "user-scratch", {"metadata": {"finalizers": None}})
        home.delete(PERSISTENT_VOLUME_CLAIMS, "user-scratch")
        home.pass_time(1)
        again = home.get(PERSISTENT_VOLUME_CLAIMS, "user-scratch")
        assert again["metadata"]["uid"] != claim["metadata"]["uid"]


def test_a_claim_of_somebody_else_is_not_taken_and_the_pod_is_told() -> None:
    with House(ephemeral_volume_controller.build) as home:
        home.create(
            PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "user-scratch", "namespace": "default"}, "spec": CLAIM}
        )
        home.create(PODS, user())
        home.pass_time(1)
        assert home.events("FailedBinding")[0][2] == (
            "ephemeral volume scratch: PVC default/user-scratch was not created for pod default/user "
            "(pod is not owner)"
        )


def test_a_pod_that_leaves_gets_nothing_more() -> None:
    leaving = user()
    leaving["metadata"]["finalizers"] = ["example.com/hold"]
    with Cluster() as cluster:
        cluster.run(cluster.client.create(PODS, leaving))
        cluster.run(cluster.client.delete(PODS, "user", "default", grace_s=0))
        held = cluster.run(cluster.client.get(PODS, "user", "default"))
    with House(ephemeral_volume_controller.build, objects=[held]) as home:
        home.pass_time(5)
        assert home.names(PERSISTENT_VOLUME_CLAIMS, "default") == []
