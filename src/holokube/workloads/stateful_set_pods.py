"""The pods of a StatefulSet and their claims: names, identities, owners."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holokube.kube.types import JsonObject
from holokube.workloads.controller_history import REVISION_HASH
from holokube.workloads.ownership import controller_reference
from holokube.workloads.pod_control import pod_from_template
from holokube.workloads.replica_set_decisions import replicas_of

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-([0-9]+)", re.ASCII).fullmatch


def ordinal_of(set_name: str, pod: Mapping[str, Any]) -> int | None:
    """The ordinal in a pod's name; None if it is not a name of this set's."""
    match = _NAME(pod["metadata"]["name"])
    return int(match[2]) if match and match[1] == set_name else None


def first_ordinal(stateful_set: Mapping[str, Any]) -> int:
    return int((stateful_set["spec"].get("ordinals") or {}).get("start") or 0)


def is_in_range(stateful_set: JsonObject, ordinal: int) -> bool:
    start = first_ordinal(stateful_set)
    return start <= ordinal < start + replicas_of(stateful_set)


def stateful_pod(stateful_set: JsonObject, ordinal: int, template: JsonObject, revision: str) -> JsonObject:
    """The pod of one ordinal, made from the template of a revision."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = pod_from_template(template, stateful_set)
    meta: JsonObject = {key: value for key, value in pod["metadata"].items() if key != "generateName"}
    # Upstream leaves the prefix in, although the name is given.
    meta["generateName"] = pod["metadata"]["generateName"]
    meta["name"] = name
    meta["labels"] = {
        **(meta.get("labels") or {}), POD_NAME: name, POD_INDEX: str(ordinal), REVISION_HASH: revision,
    }  # fmt: skip
    spec = {**pod["spec"], "hostname": name}
    if stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = stateful_set["spec"]["serviceName"]
    claims = {
        claim["metadata"]["name"]: claim_name(stateful_set, claim, ordinal)
        for claim in stateful_set["spec"].get("volumeClaimTemplates") or ()
    }
    if claims:
        volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": name}} for volume, name in claims.items()
        ]
        spec["volumes"] = [*volumes, *(v for v in spec.get("volumes") or () if v["name"] not in claims)]
    return {**pod, "metadata": meta, "spec": spec}


def claim_name(stateful_set: Mapping[str, Any], claim: Mapping[str, Any], ordinal: int) -> str:
    return f"{claim['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claims_of(stateful_set: JsonObject, ordinal: int) -> list[JsonObject]:
    """The claims of one ordinal, as they are created."""
    selector = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        source = template["metadata"]
        meta: JsonObject = {
            "name": claim_name(stateful_set, template, ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**(source.get("labels") or {}), **selector},
        }
        if source.get("annotations"):
            meta["annotations"] = source["annotations"]
        claims.append({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"],
        })  # fmt: skip
    return claims


def is_stale_claim(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the claim still belongs to an earlier pod of that name: it will be deleted along with it."""
    return any(
        reference.get("kind") == "Pod"
        and reference.get("name") == pod["metadata"]["name"]
        and reference.get("uid") != pod["metadata"].get("uid")
        for reference in claim["metadata"].get("ownerReferences") or ()
    )


def claim_owners(
    claim: JsonObject, stateful_set: JsonObject, pod: JsonObject
) -> list[JsonObject] | None:
    """The owner references that the retention policy asks for; None if they are right, or not ours to change."""
    references = claim["metadata"].get("ownerReferences") or []
    owners = {stateful_set["metadata"]["uid"], pod["metadata"]["uid"]}
    names = {
        ("StatefulSet", stateful_set["metadata"]["name"]), ("Pod", pod["metadata"]["name"]),
    }  # fmt: skip
    ours = [r for r in references if (r.get("kind"), r.get("name")) in names]
    others = [r for r in references if r not in ours]
    if any(r.get("uid") not in owners for r in ours):
        # Left by an earlier set or pod of that name; the garbage collector is about to take the claim.
        return None
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    when_scaled, when_deleted = policy.get("whenScaled", "Retain"), policy.get("whenDeleted", "Retain")
    ordinal = ordinal_of(stateful_set["metadata"]["name"], pod)
    scaled_down = ordinal is not None and not is_in_range(stateful_set, ordinal)
    wanted: list[JsonObject] = []
    foreign = any(r.get("controller") for r in others)
    if not foreign:
        if when_scaled == "Delete" and scaled_down:
            wanted = [controller_reference({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})]
        elif when_deleted == "Delete":
            wanted = [controller_reference(stateful_set)]
    if {(r["uid"], bool(r.get("controller"))) for r in ours} == {(r["uid"], True) for r in wanted}:
        return None
    return [*others, *wanted]
