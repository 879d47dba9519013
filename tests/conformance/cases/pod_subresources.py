"""Binding, eviction, resize, ephemeral containers and logs of pods."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, delete, get, merge, post, strategic
from tests.conformance.objects import (
    budget,
    container,
    node,
    plain_pod,
    thing,
)

cases = Cases()
INVALID = "FieldValueInvalid"


def binding(target: Any = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", **metadata},
        "target": target or {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }


P = post("pods", plain_pod())
cases(
    "binding/binds",
    P,
    post("pods/p/binding", binding(), take=WHOLE),
    get("pods/p", take=["spec.nodeName", "status", "metadata.generation"]),
)
cases(
    "binding/twice", P, post("pods/p/binding", binding()), post("pods/p/binding", binding(), 409, "Conflict")
)
cases("binding/missing-pod", post("pods/none/binding", binding(name="none"), 404, "NotFound"))
cases(
    "binding/without-target",
    P,
    post("pods/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}, 500),
)
cases("binding/target-without-name", P, post("pods/p/binding", binding({"kind": "Node"}), 500))
cases("binding/target-of-other-kind", P, post("pods/p/binding", binding({"kind": "Frob", "name": "n"}), 500))
cases("binding/name-mismatch", P, post("pods/p/binding", binding(name="other"), 400, "BadRequest"))
cases(
    "binding/annotations-and-labels-are-copied",
    P,
    post("pods/p/binding", binding(annotations={"a": "b"}, labels={"c": "d"})),
    get("pods/p", take=["metadata.annotations", "metadata.labels", "spec.nodeName"]),
)
cases("binding/uid-mismatch", P, post("pods/p/binding", binding(uid="other"), 409, "Conflict"))
cases(
    "binding/uid-match",
    post("pods", plain_pod(), save={"uid": "metadata.uid"}),
    post("pods/p/binding", binding(uid="{uid}")),
)
cases("binding/version-mismatch", P, post("pods/p/binding", binding(resourceVersion="1"), 409, "Conflict"))
cases(
    "binding/gated-pod",
    post("pods", plain_pod(schedulingGates=[{"name": "example.com/g"}])),
    post("pods/p/binding", binding(), 409, "Conflict"),
)
cases(
    "binding/deleted-pod",
    post("pods", plain_pod("p", {"finalizers": ["example.com/f"]})),
    delete("pods/p"),
    post("pods/p/binding", binding(), 409, "Conflict"),
)
cases(
    "binding/old-collection",
    P,
    post("/api/v1/namespaces/{ns}/bindings", binding(), take=["kind", "status"]),
    get("pods/p", take=["spec.nodeName"]),
)
cases(
    "binding/dry-run", P, post("pods/p/binding?dryRun=All", binding()), get("pods/p", take=["spec.nodeName"])
)


def eviction(name: str = "p", **more: Any) -> dict[str, Any]:
    return thing("policy/v1", "Eviction", name, {"namespace": "{ns}"}, **more)


LABELS = {"labels": {"app": "a"}}
BOUND = post("pods", plain_pod("p", LABELS, nodeName="n"))
RUNNING = merge(
    "pods/p/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
)


def budget_with(
    allowed: int, name: str = "pdb", healthy: int = 1, desired: int = 1, **spec: Any
) -> tuple[Any, ...]:
    return (
        post("poddisruptionbudgets", budget(name, **(spec or {"minAvailable": 1}))),
        merge(
            f"poddisruptionbudgets/{name}/status",
            {
                "status": {
                    "observedGeneration": 1,
                    "disruptionsAllowed": allowed,
                    "currentHealthy": healthy,
                    "desiredHealthy": desired,
                    "expectedPods": 1,
                }
            },
        ),
    )


AFTER = get(
    "pods/p", take=["metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "status.conditions"]
)
cases("eviction/without-budget", BOUND, RUNNING, post("pods/p/eviction", eviction(), take=WHOLE), AFTER)
cases(
    "eviction/of-unbound-pod",
    post("pods", plain_pod()),
    post("pods/p/eviction", eviction(), take=WHOLE),
    get("pods/p", 404, "NotFound"),
)
cases("eviction/of-missing-pod", post("pods/none/eviction", eviction("none"), 404, "NotFound"))
cases(
    "eviction/budget-allows",
    BOUND,
    RUNNING,
    *budget_with(1),
    post("pods/p/eviction", eviction(), 201),
    AFTER,
    get("poddisruptionbudgets/pdb", take=["status"]),
)
cases(
    "eviction/budget-refuses",
    BOUND,
    RUNNING,
    *budget_with(0),
    post("pods/p/eviction", eviction(), 429, "TooManyRequests", ("DisruptionBudget", "")),
    AFTER,
)
cases(
    "eviction/budget-not-observed-yet",
    BOUND,
    RUNNING,
    post("poddisruptionbudgets", budget(minAvailable=1)),
    post("pods/p/eviction", eviction(), 429, "TooManyRequests", ("DisruptionBudget", "")),
)
cases(
    "eviction/two-budgets",
    BOUND,
    RUNNING,
    *budget_with(1, "one"),
    *budget_with(1, "two"),
    post("pods/p/eviction", eviction(), 500),
)
cases(
    "eviction/pending-pod-ignores-budget",
    BOUND,
    *budget_with(0),
    post("pods/p/eviction", eviction(), 201),
    AFTER,
)
cases(
    "eviction/finished-pod-ignores-budget",
    BOUND,
    merge("pods/p/status", {"status": {"phase": "Succeeded"}}),
    *budget_with(0),
    post("pods/p/eviction", eviction(), 201),
    get("pods/p", 404, "NotFound"),
)
cases(
    "eviction/unready-pod-of-a-healthy-application",
    BOUND,
    merge("pods/p/status", {"status": {"phase": "Running"}}),
    *budget_with(0, healthy=1, desired=1),
    post("pods/p/eviction", eviction(), 201),
)
cases(
    "eviction/unready-pod-of-a-disrupted-application",
    BOUND,
    merge("pods/p/status", {"status": {"phase": "Running"}}),
    *budget_with(0, healthy=0, desired=1),
    post("pods/p/eviction", eviction(), 429, "TooManyRequests", ("DisruptionBudget", "")),
)
cases(
    "eviction/unready-pod-always-allowed",
    BOUND,
    merge("pods/p/status", {"status": {"phase": "Running"}}),
    *budget_with(0, healthy=0, desired=1, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"),
    post("pods/p/eviction", eviction(), 201),
)
cases(
    "eviction/dry-run",
    BOUND,
    RUNNING,
    *budget_with(1),
    post("pods/p/eviction", eviction(deleteOptions={"dryRun": ["All"]}), 201),
    AFTER,
    get("poddisruptionbudgets/pdb", take=["status.disruptionsAllowed"]),
)
cases(
    "eviction/with-grace",
    BOUND,
    RUNNING,
    post("pods/p/eviction", eviction(deleteOptions={"gracePeriodSeconds": 3}), 201),
    AFTER,
)
cases(
    "eviction/wrong-uid",
    BOUND,
    RUNNING,
    post("pods/p/eviction", eviction(deleteOptions={"preconditions": {"uid": "other"}}), 409, "Conflict"),
    AFTER,
)
cases("eviction/name-mismatch", BOUND, post("pods/p/eviction", eviction("other"), 400, "BadRequest"))
cases(
    "eviction/of-a-terminating-pod",
    BOUND,
    RUNNING,
    delete("pods/p"),
    *budget_with(0),
    post("pods/p/eviction", eviction(), 201),
)
cases(
    "eviction/policy-v1beta1",
    BOUND,
    RUNNING,
    post("pods/p/eviction", {**eviction(), "apiVersion": "policy/v1beta1"}, 201),
)
cases(
    "eviction/budget-with-other-selector",
    BOUND,
    RUNNING,
    *budget_with(0, minAvailable=1, selector={"matchLabels": {"app": "z"}}),
    post("pods/p/eviction", eviction(), 201),
)
cases(
    "eviction/budget-with-empty-selector",
    BOUND,
    RUNNING,
    *budget_with(0, minAvailable=1, selector={}),
    post("pods/p/eviction", eviction(), 429, "TooManyRequests", ("DisruptionBudget", "")),
)

SIZED = (
    post("nodes", node(status={"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}})),
    post(
        "pods",
        plain_pod(
            containers=[container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "3"}})],
            nodeName="{u}",
        ),
    ),
)
RESIZED = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
cases(
    "resize/cpu",
    *SIZED,
    strategic("pods/p/resize", RESIZED, take=["spec.containers[0].resources", "metadata.generation"]),
)
cases("resize/get", *SIZED, get("pods/p/resize", take=["kind", "metadata.name"]))
cases(
    "resize/qos-class-may-not-change",
    SIZED[0],
    post(
        "pods",
        plain_pod(
            nodeName="{u}",
            containers=[
                container(
                    resources={
                        "requests": {"cpu": "1", "memory": "1Gi"},
                        "limits": {"cpu": "2", "memory": "1Gi"},
                    }
                )
            ],
        ),
    ),
    strategic(
        "pods/p/resize",
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}},
        422,
        "Invalid",
    ),
)
cases(
    "resize/image-may-not-change",
    *SIZED,
    strategic(
        "pods/p/resize",
        {"spec": {"containers": [{"name": "c", "image": "x:2"}]}},
        take=["spec.containers[0].image"],
    ),
)
cases(
    "resize/on-the-main-resource",
    *SIZED,
    strategic("pods/p", RESIZED, 422, "Invalid", ("FieldValueForbidden", "spec")),
)
cases(
    "resize/requests-over-limits",
    *SIZED,
    strategic(
        "pods/p/resize",
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}},
        422,
        "Invalid",
    ),
)
cases(
    "resize/over-the-nodes-capacity",
    post("nodes", node(status={"allocatable": {"cpu": "1500m"}})),
    SIZED[1],
    strategic("pods/p/resize", RESIZED, 403, "Forbidden"),
)
cases(
    "resize/on-a-missing-node",
    post("pods", plain_pod(nodeName="n", containers=[container(resources={"requests": {"cpu": "1"}})])),
    strategic("pods/p/resize", RESIZED, 403, "Forbidden"),
)
cases("resize/missing-pod", strategic("pods/none/resize", RESIZED, 404, "NotFound"))
cases("resize/request-of-best-effort-pod", P, strategic("pods/p/resize", RESIZED, 422, "Invalid"))

DEBUG = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "x"}]}}
cases("ephemeral/add", P, strategic("pods/p/ephemeralcontainers", DEBUG, take=["spec.ephemeralContainers"]))
cases("ephemeral/get", P, get("pods/p/ephemeralcontainers", take=["kind", "metadata.name"]))
cases(
    "ephemeral/name-taken",
    P,
    strategic(
        "pods/p/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "c", "image": "x"}]}},
        422,
        "Invalid",
    ),
)
cases(
    "ephemeral/cannot-change",
    P,
    strategic("pods/p/ephemeralcontainers", DEBUG),
    strategic(
        "pods/p/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "debug", "image": "y"}]}},
        422,
        "Invalid",
    ),
)
cases(
    "ephemeral/not-on-create",
    post(
        "pods",
        plain_pod(ephemeralContainers=[{"name": "d", "image": "x"}]),
        422,
        "Invalid",
        ("FieldValueForbidden", "spec.ephemeralContainers"),
    ),
)
cases(
    "ephemeral/on-the-main-resource",
    P,
    strategic("pods/p", DEBUG, 422, "Invalid", ("FieldValueForbidden", "spec")),
)

cases("log/missing-pod", get("pods/none/log", 404, "NotFound"))
cases("log/unbound-pod", P, get("pods/p/log", 204))
cases("log/unknown-container", P, get("pods/p/log?container=zzz", 400, "BadRequest"))
cases(
    "log/several-containers",
    post("pods", plain_pod(containers=[container("a"), container("b")])),
    get("pods/p/log", 400, "BadRequest"),
)
cases("log/bad-tail-lines", P, get("pods/p/log?tailLines=-1", 422, "Invalid", (INVALID, "tailLines")))
cases("log/bad-since", P, get("pods/p/log?sinceSeconds=0", 422, "Invalid", (INVALID, "sinceSeconds")))
cases(
    "log/two-sinces", P, get("pods/p/log?sinceSeconds=1&sinceTime=2020-01-01T00%3A00%3A00Z", 422, "Invalid")
)
cases("log/limit-bytes-zero", P, get("pods/p/log?limitBytes=0", 422, "Invalid", (INVALID, "limitBytes")))
