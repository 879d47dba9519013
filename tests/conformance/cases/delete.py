"""Deleting: answers, preconditions, finalizers, propagation, grace, collections."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, delete, get, merge, post
from tests.conformance.objects import (
    config_map,
    deployment,
    lease,
    namespace,
    node,
    plain_pod,
    pod,
    replica_set,
    secret,
    service,
)

cases = Cases()
INVALID = "FieldValueInvalid"


def options(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **more}


GONE = get("configmaps/cm", 404, "NotFound")
cases(
    "delete/configmap-answers-status",
    post("configmaps", config_map()),
    delete("configmaps/cm", take=WHOLE),
    GONE,
)
cases(
    "delete/deployment-answers-status", post("deployments", deployment()), delete("deployments/d", take=WHOLE)
)
cases("delete/lease-answers-status", post("leases", lease()), delete("leases/l", take=WHOLE))
cases("delete/service-answers-object", post("services", service()), delete("services/svc", take=WHOLE))
cases("delete/secret-answers-status", post("secrets", secret()), delete("secrets/s", take=WHOLE))
cases("delete/node-answers-status", post("nodes", node()), delete("nodes/{u}", take=WHOLE))
cases("delete/missing", delete("configmaps/none", None, 404, "NotFound"))
cases(
    "delete/missing-in-missing-namespace",
    delete("/api/v1/namespaces/{u}-none/configmaps/x", None, 404, "NotFound"),
)
cases(
    "delete/twice",
    post("configmaps", config_map()),
    delete("configmaps/cm"),
    delete("configmaps/cm", None, 404, "NotFound"),
)
cases(
    "delete/with-options-body",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(), take=WHOLE),
    GONE,
)
cases(
    "delete/with-empty-object-body",
    post("configmaps", config_map()),
    delete("configmaps/cm", {}, take=["kind"]),
    GONE,
)
cases(
    "delete/with-group-options-body",
    post("deployments", deployment()),
    delete("deployments/d", {"apiVersion": "apps/v1", "kind": "DeleteOptions"}),
)
cases(
    "delete/with-meta-options-body",
    post("configmaps", config_map()),
    delete("configmaps/cm", {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"}),
)
cases(
    "delete/with-body-of-other-kind",
    post("configmaps", config_map()),
    delete("configmaps/cm", config_map(), 400, "BadRequest"),
)
cases(
    "delete/with-broken-body",
    post("configmaps", config_map()),
    delete("configmaps/cm", b"{", 400, "BadRequest"),
)
cases(
    "delete/with-unknown-field-in-options",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(frob=1), take=["kind", "status"]),
)
cases(
    "delete/uid-matches",
    post("configmaps", config_map(), save={"uid": "metadata.uid"}),
    delete("configmaps/cm", options(preconditions={"uid": "{uid}"})),
    GONE,
)
cases(
    "delete/uid-differs",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(preconditions={"uid": "other"}), 409, "Conflict"),
    get("configmaps/cm"),
)
cases(
    "delete/version-matches",
    post("configmaps", config_map(), save={"rv": "metadata.resourceVersion"}),
    delete("configmaps/cm", options(preconditions={"resourceVersion": "{rv}"})),
    GONE,
)
cases(
    "delete/version-differs",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(preconditions={"resourceVersion": "1"}), 409, "Conflict"),
    get("configmaps/cm"),
)
cases(
    "delete/pod-uid-differs",
    post("pods", pod(nodeName="n")),
    delete("pods/p", options(preconditions={"uid": "other"}), 409, "Conflict"),
    get("pods/p", take=["metadata.deletionTimestamp"]),
)
cases(
    "delete/dry-run-query",
    post("configmaps", config_map()),
    delete("configmaps/cm?dryRun=All", take=["kind", "status"]),
    get("configmaps/cm", take=["metadata.name"]),
)
cases(
    "delete/dry-run-body",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(dryRun=["All"])),
    get("configmaps/cm"),
)
cases(
    "delete/dry-run-of-bound-pod",
    post("pods", pod(nodeName="n")),
    delete("pods/p?dryRun=All", take=["metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"]),
    get("pods/p", take=["metadata.deletionTimestamp"]),
)
cases(
    "delete/dry-run-invalid",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(dryRun=["Some"]), 422, "Invalid", ("FieldValueNotSupported", "dryRun")),
)
cases(
    "delete/unknown-propagation",
    post("configmaps", config_map()),
    delete(
        "configmaps/cm",
        options(propagationPolicy="Frob"),
        422,
        "Invalid",
        ("FieldValueNotSupported", "propagationPolicy"),
    ),
)
cases(
    "delete/orphan-dependents-and-propagation",
    post("configmaps", config_map()),
    delete(
        "configmaps/cm",
        options(propagationPolicy="Background", orphanDependents=True),
        422,
        "Invalid",
        (INVALID, "propagationPolicy"),
    ),
)
cases(
    "delete/negative-grace",
    post("pods", pod(nodeName="n")),
    delete("pods/p?gracePeriodSeconds=-1", take=["metadata.deletionGracePeriodSeconds"]),
)
cases(
    "delete/grace-not-a-number",
    post("pods", pod(nodeName="n")),
    delete("pods/p?gracePeriodSeconds=x", None, 400, "BadRequest"),
)

KEPT = [
    "metadata.finalizers",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.generation",
]
HELD = post("configmaps", config_map("cm", {"finalizers": ["example.com/f", "example.com/g"]}))
cases(
    "delete/finalizer-keeps-object",
    HELD,
    delete("configmaps/cm", take=WHOLE),
    get("configmaps/cm", take=KEPT),
)
cases(
    "delete/last-finalizer-ends-object",
    HELD,
    delete("configmaps/cm"),
    merge("configmaps/cm", {"metadata": {"finalizers": ["example.com/g"]}}, take=KEPT),
    get("configmaps/cm", take=KEPT),
    merge("configmaps/cm", {"metadata": {"finalizers": None}}, take=KEPT),
    GONE,
)
cases(
    "delete/no-new-finalizer-while-deleting",
    HELD,
    delete("configmaps/cm"),
    merge(
        "configmaps/cm",
        {"metadata": {"finalizers": ["example.com/f", "example.com/h"]}},
        422,
        "Invalid",
        ("FieldValueForbidden", "metadata.finalizers"),
    ),
)
cases(
    "delete/again-while-deleting",
    HELD,
    delete("configmaps/cm", take=["metadata.resourceVersion"]),
    delete("configmaps/cm", take=["metadata.resourceVersion", *KEPT]),
)
cases(
    "delete/create-while-deleting",
    HELD,
    delete("configmaps/cm"),
    post("configmaps", config_map(), 409, "AlreadyExists"),
)
cases(
    "delete/update-while-deleting",
    HELD,
    delete("configmaps/cm"),
    merge("configmaps/cm", {"data": {"a": "b"}}, take=KEPT),
)
cases(
    "delete/deletion-time-cannot-be-cleared",
    HELD,
    delete("configmaps/cm"),
    merge("configmaps/cm", {"metadata": {"deletionTimestamp": None}}, take=KEPT),
)
cases(
    "delete/deployment-with-finalizer-moves-generation",
    post("deployments", deployment("d", {"finalizers": ["example.com/f"]})),
    delete("deployments/d", take=KEPT),
    merge("deployments/d", {"spec": {"replicas": 5}}, take=KEPT),
)
for policy in ("Orphan", "Foreground", "Background"):
    cases(
        f"delete/propagation-{policy.lower()}",
        post("deployments", deployment()),
        delete("deployments/d", options(propagationPolicy=policy), take=["kind", *KEPT]),
    )
cases(
    "delete/propagation-in-query",
    post("replicasets", replica_set()),
    delete("replicasets/rs?propagationPolicy=Foreground", take=["kind", *KEPT]),
)
cases(
    "delete/orphan-dependents-true",
    post("deployments", deployment()),
    delete("deployments/d", options(orphanDependents=True), take=["kind", *KEPT]),
)
cases(
    "delete/orphan-dependents-false",
    post("deployments", deployment()),
    delete("deployments/d", options(orphanDependents=False), take=["kind", *KEPT]),
)
cases(
    "delete/background-drops-earlier-orphan-finalizer",
    post("deployments", deployment("d", {"finalizers": ["orphan", "example.com/f"]})),
    delete("deployments/d", options(propagationPolicy="Background"), take=["kind", *KEPT]),
)
cases(
    "delete/foreground-then-background",
    post("deployments", deployment()),
    delete("deployments/d", options(propagationPolicy="Foreground"), take=KEPT),
    delete("deployments/d", options(propagationPolicy="Background"), take=["kind", *KEPT]),
)
cases(
    "delete/orphan-on-configmap",
    post("configmaps", config_map()),
    delete("configmaps/cm", options(propagationPolicy="Orphan"), take=["kind", *KEPT]),
)

NO_POD = get("pods/p", 404, "NotFound")
cases("delete/unbound-pod-goes-at-once", post("pods", plain_pod()), delete("pods/p", take=WHOLE), NO_POD)
cases(
    "delete/bound-pod-stays",
    post("pods", pod(nodeName="n")),
    delete("pods/p", take=KEPT),
    get("pods/p", take=KEPT),
)
cases(
    "delete/bound-pod-grace-zero",
    post("pods", pod(nodeName="n")),
    delete("pods/p", options(gracePeriodSeconds=0), take=KEPT),
    NO_POD,
)
cases(
    "delete/bound-pod-grace-zero-in-query",
    post("pods", pod(nodeName="n")),
    delete("pods/p?gracePeriodSeconds=0", take=KEPT),
    NO_POD,
)
cases(
    "delete/bound-pod-own-grace",
    post("pods", pod(nodeName="n", terminationGracePeriodSeconds=7)),
    delete("pods/p", take=KEPT),
)
cases(
    "delete/bound-pod-given-grace",
    post("pods", pod(nodeName="n")),
    delete("pods/p?gracePeriodSeconds=5", take=KEPT),
)
cases(
    "delete/bound-pod-shorter-grace-second-time",
    post("pods", pod(nodeName="n")),
    delete("pods/p", take=KEPT),
    delete("pods/p?gracePeriodSeconds=3", take=KEPT),
    delete("pods/p?gracePeriodSeconds=9", take=KEPT),
)
cases(
    "delete/bound-pod-twice-keeps-version",
    post("pods", pod(nodeName="n")),
    delete("pods/p", take=["metadata.resourceVersion"]),
    delete("pods/p", take=["metadata.resourceVersion"]),
)
cases(
    "delete/finished-pod-goes-at-once",
    post("pods", pod(nodeName="n")),
    merge("pods/p/status", {"status": {"phase": "Succeeded"}}),
    delete("pods/p", take=KEPT),
    NO_POD,
)
cases(
    "delete/pod-with-zero-grace-of-its-own",
    post("pods", pod(nodeName="n", terminationGracePeriodSeconds=0)),
    delete("pods/p", take=KEPT),
    NO_POD,
)
cases(
    "delete/pod-with-finalizer-unbound",
    post("pods", pod("p", {"finalizers": ["example.com/f"]})),
    delete("pods/p", take=KEPT),
    get("pods/p", take=KEPT),
)
cases(
    "delete/pod-with-finalizer-then-grace-zero",
    post("pods", pod("p", {"finalizers": ["example.com/f"]}, nodeName="n")),
    delete("pods/p", take=KEPT),
    delete("pods/p?gracePeriodSeconds=0", take=KEPT),
    merge("pods/p", {"metadata": {"finalizers": None}}, take=KEPT),
    NO_POD,
)
cases(
    "delete/pod-status-may-change-while-terminating",
    post("pods", pod(nodeName="n")),
    delete("pods/p"),
    merge("pods/p/status", {"status": {"phase": "Failed"}}, take=["status.phase", *KEPT]),
    get("pods/p", take=KEPT),
)
cases(
    "delete/namespace-becomes-terminating",
    post("namespaces", namespace()),
    delete("namespaces/{u}", take=WHOLE),
    get("namespaces/{u}", take=["status.phase", "spec.finalizers"]),
    delete("namespaces/{u}", take=["status.phase", "metadata.resourceVersion"]),
)
cases(
    "delete/node-with-uid",
    post("nodes", node(), save={"uid": "metadata.uid"}),
    delete("nodes/{u}", options(preconditions={"uid": "{uid}"}), take=["kind", "details"]),
)

FOUR = (
    post("configmaps", config_map("a", {"labels": {"app": "x"}})),
    post("configmaps", config_map("b", {"labels": {"app": "x"}, "finalizers": ["example.com/f"]})),
    post("configmaps", config_map("c", {"labels": {"app": "y"}})),
    post("configmaps", config_map("d")),
)
LEFT = get("configmaps", take=["items.*.metadata.name", "items.*.metadata.deletionTimestamp"])
cases(
    "delete/collection",
    *FOUR,
    delete("configmaps", take=["kind", "apiVersion", "items.*.metadata.name"]),
    LEFT,
)
cases(
    "delete/collection-by-label",
    *FOUR,
    delete("configmaps?labelSelector=app%3Dx", take=["items.*.metadata.name"]),
    LEFT,
)
cases(
    "delete/collection-by-field",
    *FOUR,
    delete("configmaps?fieldSelector=metadata.name%3Dc", take=["items.*.metadata.name"]),
    LEFT,
)
cases(
    "delete/collection-by-bad-label",
    *FOUR,
    delete("configmaps?labelSelector=!!", None, 400, "BadRequest"),
    LEFT,
)
cases("delete/collection-dry-run", *FOUR, delete("configmaps?dryRun=All", take=["kind"]), LEFT)
cases("delete/collection-empty", delete("configmaps", take=["kind", "items"]))
cases(
    "delete/collection-of-nothing-that-matches",
    *FOUR,
    delete("configmaps?labelSelector=app%3Dz", take=["kind", "items"]),
    LEFT,
)
cases(
    "delete/collection-with-propagation",
    post("deployments", deployment("a")),
    post("deployments", deployment("b")),
    delete("deployments", options(propagationPolicy="Foreground"), take=["items.*.metadata.finalizers"]),
    get("deployments", take=["items.*.metadata.name"]),
)
cases(
    "delete/collection-of-pods",
    post("pods", pod("a", nodeName="n")),
    post("pods", pod("b")),
    delete("pods?gracePeriodSeconds=4"),
    get("pods", take=["items.*.metadata.name", "items.*.metadata.deletionGracePeriodSeconds"]),
)
cases(
    "delete/collection-of-cluster-scoped-by-label",
    post("nodes", node("{u}-a", {"labels": {"case": "{u}"}})),
    post("nodes", node("{u}-b", {"labels": {"case": "no"}})),
    delete("nodes?labelSelector=case%3D{u}", take=["items.*.metadata.name"]),
    get("nodes/{u}-b"),
    get("nodes/{u}-a", 404, "NotFound"),
)
