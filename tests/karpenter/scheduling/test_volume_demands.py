from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.scheduling.problem import Storage
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from tests.karpenter.scheduling.builders import HOST, ZONE, failed, instance_type, pod, solve, state_node

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def _claim(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _volume(name: str, *terms: dict[str, list[str]], **source: Any) -> dict[str, Any]:
    listed = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
        for term in terms
    ]
    spec = {**(source or {"csi": {"driver": "disk"}}), "nodeAffinity": {"required": {"nodeSelectorTerms": listed}}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _class(name: str, provisioner: str = "disk", *terms: dict[str, list[str]], mode: str = "") -> dict[str, Any]:
    listed = [{"matchLabelExpressions": [{"key": k, "values": v} for k, v in term.items()]} for term in terms]
    return {
        "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, "allowedTopologies": listed,
        "volumeBindingMode": mode or "WaitForFirstConsumer",
    }  # fmt: skip


def _mounting(*claims: str, name: str = "p") -> dict[str, Any]:
    return pod(name, volumes=[{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims])


def _texts(reader: VolumeReader, *claims: str) -> list[str]:
    return [str(one) for one in reader.alternatives(_mounting(*claims))]


def test_each_term_of_a_volume_is_an_alternative_and_combinations_that_contradict_are_dropped() -> None:
    reader = VolumeReader(Storage.of([
        _claim("one", volumeName="pv-1"), _claim("two", volumeName="pv-2"),
        _volume("pv-1", {ZONE: ["a"]}, {ZONE: ["b"]}), _volume("pv-2", {ZONE: ["b", "c"]}),
    ]))  # fmt: skip
    assert _texts(reader, "one") == [f"{ZONE} In [a]", f"{ZONE} In [b]"]
    assert _texts(reader, "one", "two") == [f"{ZONE} In [b]"]
    assert reader.alternatives(pod("p")) == ()


def test_combinations_that_all_contradict_are_kept_so_that_no_node_will_do() -> None:
    storage = Storage.of([
        _claim("one", volumeName="pv-1"), _claim("two", volumeName="pv-2"),
        _volume("pv-1", {ZONE: ["zone-a"]}), _volume("pv-2", {ZONE: ["zone-b"]}),
    ])  # fmt: skip
    assert failed(solve([_mounting("one", "two")], storage=storage)) == {"p"}


def test_the_hostname_of_a_local_volume_does_not_bind_the_pod() -> None:
    reader = VolumeReader(Storage.of([
        _claim("one", volumeName="pv-1"), _volume("pv-1", {HOST: ["n"]}, local={"path": "/x"}),
        _claim("two", volumeName="pv-2"), _volume("pv-2", {HOST: ["n"]}),
    ]))  # fmt: skip
    assert _texts(reader, "one") == [""]
    assert HOST in reader.alternatives(_mounting("two"))[0]


def test_a_pod_follows_its_volume_and_takes_the_first_alternative_that_works() -> None:
    storage = Storage.of([
        _claim("data", storageClassName="zonal"), _class("zonal", "disk", {ZONE: ["nowhere"]}, {ZONE: ["zone-c"]}),
    ])  # fmt: skip
    claim = solve([_mounting("data")], storage=storage).new_claims[0]
    assert claim.requirements[ZONE].values == {"zone-c"}
    nodes = [state_node("a", zone="zone-a"), state_node("c", zone="zone-c")]
    results = solve([_mounting("data")], storage=storage, state_nodes=nodes)
    assert list(results.existing) == ["c"]


def test_attachable_volumes_are_counted_by_driver() -> None:
    reader = VolumeReader(Storage.of([
        _claim("bound", volumeName="pv-1"), _volume("pv-1"), _claim("fresh", storageClassName="old"),
        _class("old", "kubernetes.io/aws-ebs"), _claim("plain", volumeName="pv-2"), _volume("pv-2", nfs={}),
        _claim("ebs", volumeName="pv-3"), _volume("pv-3", awsElasticBlockStore={}),
        _claim("lost", storageClassName="none"),
    ]))  # fmt: skip
    found = reader.attached(_mounting("bound", "fresh", "plain", "ebs", "lost", "missing"))
    assert found == {"disk": {"default/bound"}, "ebs.csi.aws.com": {"default/fresh", "default/ebs"}}


def test_a_claim_made_for_the_pod_alone_is_found_by_the_pods_name() -> None:
    reader = VolumeReader(Storage.of([_claim("p-scratch", storageClassName="s"), _class("s")]))
    ephemeral = pod("p", volumes=[{"name": "scratch", "ephemeral": {}}])
    assert reader.attached(ephemeral) == {"disk": {"default/p-scratch"}}


def test_what_a_node_says_about_volumes_counts_before_what_its_type_is_known_for() -> None:
    drivers = [{"name": "disk", "allocatable": {"count": 2}}, {"name": "free"}]
    reader = VolumeReader(Storage.of([{"kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": drivers}}]))
    assert reader.limits_of_node("n", {"disk": 9, "free": 1, "other": 4}) == {"disk": 2, "other": 4}
    assert reader.limits_of_node("unknown", {"disk": 9}) == {"disk": 9}


def test_types_that_cannot_attach_all_volumes_are_left_out() -> None:
    names = ("a", "b", "c")
    storage = Storage.of([_class("s"), *(_claim(name, storageClassName="s") for name in names)])
    types = [instance_type("few", 4), instance_type("many", 4, price=9.0)]
    limits = {"few": {"disk": 2}, "many": {"disk": 3}}
    results = solve([_mounting(*names)], storage=storage, types=types, volume_limits=limits)
    assert [one.name for one in results.new_claims[0].candidate_types] == ["many"]
    mounting = [_mounting(name, name=name) for name in names]
    results = solve(mounting, storage=storage, types=types[:1], volume_limits=limits)
    assert sorted(len(claim.pods) for claim in results.new_claims) == [1, 2]


def test_a_node_that_holds_as_many_volumes_as_it_can_takes_no_more_but_shared_ones() -> None:
    objects = [_class("s"), _claim("a", storageClassName="s"), _claim("b", storageClassName="s")]
    drivers = [{"name": "disk", "allocatable": {"count": 1}}]
    objects.append({"kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": drivers}})
    node = state_node("n", bound=[_mounting("a", name="there")])
    storage = Storage.of(objects)
    assert list(solve([_mounting("a")], storage=storage, state_nodes=[node]).existing) == ["n"]
    assert not solve([_mounting("b")], storage=storage, state_nodes=[node]).existing


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([], "not found"),
        ([{**_claim("c"), "metadata": {"name": "c", "namespace": "default", "deletionTimestamp": "x"}}], "deleted"),
        ([{**_claim("c"), "status": {"phase": "Lost"}}], "does not exist"),
        ([_claim("c", volumeName="pv")], "not found"),
        ([_claim("c", volumeName="pv"), _volume("pv")], "counts as unbound"),
        ([_claim("c")], "names no StorageClass"),
        ([_claim("c", storageClassName="s")], "not found"),
        ([_claim("c", storageClassName="s"), _class("s", mode="Immediate")], "Immediate"),
        ([_claim("c", storageClassName="s"), _class("s")], ""),
        ([_claim("c", BOUND, volumeName="pv"), _volume("pv")], ""),
    ],
)  # fmt: skip
def test_claims_that_nothing_can_be_done_for_are_named(objects: list[dict[str, Any]], why: str) -> None:
    found = VolumeReader(Storage.of(objects)).why_unusable(_mounting("c"))
    assert why in found and bool(found) == bool(why)


def test_a_pod_whose_claim_is_not_there_stays_pending() -> None:
    results = solve([_mounting("missing"), pod("fine")])
    assert results.errors == {"default/p": "PersistentVolumeClaim default/missing not found"}
