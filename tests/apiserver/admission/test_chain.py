from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holokube.apiserver.admission.base import Attributes, Plugin
from holokube.apiserver.admission.bucket_cache import BucketCache
from holokube.apiserver.admission.chain import AdmissionChain
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import Forbidden, NotFound
from holokube.store.store import Store
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map, pod


def test_in_process_a_missing_service_account_is_no_obstacle() -> None:
    async def body(world: World) -> None:
        await world.create("namespaces", {"metadata": {"name": "bare"}})
        spec = (await world.create("pods", pod(namespace="bare", serviceAccountName="ghost")))["spec"]
        assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("ghost", "ghost")
        assert "volumes" not in spec

    in_world(body)


def test_a_strict_server_refuses_it_and_can_still_assume_the_default_account() -> None:
    async def body(world: World) -> None:
        world.registry.admission.strict_service_accounts = True
        await world.create("namespaces", {"metadata": {"name": "bare"}})
        with pytest.raises(
            Forbidden, match='error looking up service account bare/default: serviceaccount "default" not'
        ):
            await world.create("pods", pod(namespace="bare"))
        world.registry.admission.assumes_default_service_account = True
        spec = (await world.create("pods", pod(namespace="bare")))["spec"]
        assert spec["volumes"][0]["name"].startswith("kube-api-access-")
        with pytest.raises(Forbidden, match="error looking up service account bare/ghost"):
            await world.create("pods", pod("q", namespace="bare", serviceAccountName="ghost"))

    in_world(body)


def test_strictness_can_be_had_from_the_start() -> None:
    async def body(world: World) -> None:
        assert AdmissionChain(
            world.clock, world.registry, strict_service_accounts=True
        ).strict_service_accounts
        assert not AdmissionChain(world.clock, world.registry).strict_service_accounts

    in_world(body)


def test_the_namespace_may_stand_in_the_body_only() -> None:
    async def body(world: World) -> None:
        with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
            await world.registry.create(world.served("configmaps"), "", config_map(namespace="nowhere"))

    in_world(body)


class Recorder(Plugin):
    """Sees config maps, notes what it saw."""

    resources = frozenset({("", "configmaps")})

    def __init__(self) -> None:
        self.seen: list[str] = []

    def mutate(self, attributes: Attributes) -> None:
        self.seen.append(f"mutate {attributes.operation}")

    def validate(self, attributes: Attributes) -> None:
        self.seen.append(f"validate {attributes.operation}")


class Last(Recorder):
    runs_last = True

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def mutate(self, attributes: Attributes) -> None:
        self.seen.append("last")


def test_plugins_see_only_what_they_want_to_see_in_order() -> None:
    async def body(world: World) -> None:
        recorder = Recorder()
        chain = AdmissionChain(world.clock, world.registry, (Last(recorder.seen), recorder))
        world.registry.admission = chain
        await world.create("configmaps", config_map())
        await world.patch("configmaps", "cm", {"data": {"a": "b"}})
        await world.create("secrets", {"metadata": {"name": "s", "namespace": "default"}})
        assert recorder.seen == ["last", "mutate CREATE", "validate CREATE", "validate CREATE"]

    in_world(body)


def test_a_cache_is_built_once_and_again_after_a_change() -> None:
    store = Store()
    built: list[int] = []

    def build(objects: Any) -> int:
        built.append(len(objects))
        return len(objects)

    cache = BucketCache(store, "things", build)
    assert [cache.get(), cache.get()] == [0, 0]
    for name in "abc":
        store.create("things", name, {"metadata": {}})
    assert [cache.get(), cache.get()] == [3, 3]
    store.create("others", "a", {"metadata": {}})
    assert cache.get() == 3
    store.update("things", "a", {"metadata": {"x": "y"}})
    store.delete("things", "b")
    assert cache.get() == 2
    cache.close()
    assert cache.get() == 2
    assert built == [0, 3, 2, 2]


def _signing_request(group: str, request: bytes | None = None) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        x509.NameAttribute(NameOID.COMMON_NAME, "me"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
    ]
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    pem = request or csr.public_bytes(serialization.Encoding.PEM)
    spec = {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "request": base64.b64encode(pem).decode(),
        "usages": ["client auth"],
    }
    return {"metadata": {"name": f"csr-{group.rpartition(':')[2]}"}, "spec": spec}


def test_nobody_becomes_a_master_by_a_signing_request() -> None:
    async def body(world: World) -> None:
        served = world.served("certificatesigningrequests", "certificates.k8s.io")
        await world.registry.create(served, "", _signing_request("team"))
        with pytest.raises(
            Forbidden,
            match=r"use of kubernetes\.io/kube-apiserver-client signer with system:masters group is not",
        ):
            await world.registry.create(served, "", _signing_request("system:masters"))

    in_world(body)


async def _resize(world: World, cpu: str) -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return await world.patch(
        "pods", "p", {"spec": {"containers": [container]}}, kind="application/strategic-merge-patch+json",
        subresource="resize",
    )  # fmt: skip


def test_a_running_pod_is_not_resized_beyond_its_node() -> None:
    async def body(world: World) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        await world.create("pods", pod(node="n", containers=[container]))
        with pytest.raises(Forbidden, match='pods "p" is forbidden: node "n" not found'):
            await _resize(world, "2")
        labels = {"kubernetes.io/os": "linux"}
        status = {"allocatable": {"cpu": "2500m", "memory": "1Gi"}}
        await world.create("nodes", {"metadata": {"name": "n", "labels": labels}, "status": status})
        await _resize(world, "2")
        with pytest.raises(Forbidden) as caught:
            await _resize(world, "3")
        assert caught.value.message == (
            'pods "p" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 3000, '
            "allocatable: 2500"
        )
        assert caught.value.details["causes"][0]["reason"] == "NodeCapacity"
        await world.patch("nodes", "n", {"metadata": {"labels": {"kubernetes.io/os": "windows"}}})
        with pytest.raises(
            Forbidden, match='pod resize is only supported on linux nodes, node "n" is "windows"'
        ):
            await _resize(world, "1")

    in_world(body)


def test_resizing_a_pod_as_a_whole_needs_a_node_that_can() -> None:
    async def body(world: World) -> None:
        status = {"allocatable": {"cpu": "8"}}
        await world.create("nodes", {"metadata": {"name": "n"}, "status": status})
        await world.create("pods", pod(node="n", resources={"requests": {"cpu": "1"}}))
        wider = {"spec": {"resources": {"requests": {"cpu": "2"}}}}
        with pytest.raises(Forbidden) as caught:
            await world.patch("pods", "p", wider, subresource="resize")
        assert caught.value.message == (
            'pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling '
            'which are not available on node "n"'
        )
        features = {"status": {"declaredFeatures": ["InPlacePodLevelResourcesVerticalScaling"]}}
        await world.patch("nodes", "n", features, subresource="status")
        await world.patch("pods", "p", wider, subresource="resize")

    in_world(body)


def test_a_binding_brings_the_zone_of_the_node() -> None:
    from holokube.apiserver.admission.base import IN_PROCESS

    async def body(world: World) -> None:
        labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
        await world.create("nodes", {"metadata": {"name": "n", "labels": labels}})
        await world.create("pods", pod())
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        await world.registry.subresources.handle(
            world.served("pods"), "default", "p", "binding", "create", body=binding, content_type="",
            query={}, options=WriteOptions(), caller=IN_PROCESS,
        )  # fmt: skip
        assert world.get("pods", "p")["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z"
        assert "other" not in world.get("pods", "p")["metadata"]["labels"]

    in_world(body)


def test_a_new_enforced_level_warns_of_pods_that_break_it() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod("b", hostNetwork=True))
        await world.create("pods", pod("a", hostNetwork=True))
        await world.create("pods", pod("c"))
        served = world.served("namespaces")
        patch = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
        result = await world.registry.patch(served, "", "default", "application/merge-patch+json", patch)
        level = "baseline:latest"
        assert result.warnings == [
            f'existing pods in namespace "default" violate the new PodSecurity enforce level "{level}"',
            "a (and 1 other pod): host namespaces",
        ]

    in_world(body)


def test_templates_are_warned_about_and_stored() -> None:
    async def body(world: World) -> None:
        labels = {
            "pod-security.kubernetes.io/warn": "baseline",
            "pod-security.kubernetes.io/warn-version": "v1.30",
        }
        await world.create("namespaces", {"metadata": {"name": "warned", "labels": labels}})
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"hostPID": True, "containers": [{"name": "c", "image": "i"}]},
        }
        deployment = {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        result = await world.registry.create(world.served("deployments", "apps"), "warned", deployment)
        assert result.warnings == [
            'would violate PodSecurity "baseline:v1.30": host namespaces (hostPID=true)'
        ]

    in_world(body)
