"""Getting and listing: selectors, pages, resource versions, list shapes."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, delete, get, merge, post, put
from tests.conformance.objects import config_map, deployment, job, lease, node, pod, secret, service, thing

cases = Cases()

cases("get/configmap", post("configmaps", config_map(a="b")), get("configmaps/cm", take=WHOLE))
cases("get/missing", get("configmaps/none", 404, "NotFound"))
cases("get/missing-of-a-group", get("deployments/none", 404, "NotFound"))
cases("get/missing-namespace", get("/api/v1/namespaces/{u}-none", 404, "NotFound"))
cases("get/object-in-missing-namespace", get("/api/v1/namespaces/{u}-none/configmaps/x", 404, "NotFound"))
cases(
    "get/resource-version-zero",
    post("configmaps", config_map()),
    get("configmaps/cm?resourceVersion=0", poll=True, take=["metadata.name"]),
)
cases(
    "get/resource-version-of-its-own",
    post("configmaps", config_map(), save={"rv": "metadata.resourceVersion"}),
    get("configmaps/cm?resourceVersion={rv}", take=["metadata.resourceVersion"]),
)
cases(
    "get/resource-version-not-a-number",
    post("configmaps", config_map()),
    get("configmaps/cm?resourceVersion=abc", 500),
)
cases(
    "get/resource-version-in-the-future",
    post("configmaps", config_map()),
    get("configmaps/cm?resourceVersion=9999999999", 504, "Timeout", ("ResourceVersionTooLarge", "")),
)
cases("get/name-in-other-case", post("configmaps", config_map()), get("configmaps/CM", 404, "NotFound"))

THREE = (
    post("configmaps", config_map("a", {"labels": {"app": "x", "tier": "1"}})),
    post("configmaps", config_map("b", {"labels": {"app": "x", "tier": "2"}})),
    post("configmaps", config_map("c", {"labels": {"app": "y"}})),
    post("configmaps", config_map("d")),
)
for name, query, found in (
    ("equal", "app%3Dx", "ab"),
    ("double-equal", "app%3D%3Dx", "ab"),
    ("not-equal", "app!%3Dx", "cd"),
    ("in", "app%20in%20(x,y)", "abc"),
    ("not-in", "app%20notin%20(x)", "cd"),
    ("exists", "tier", "ab"),
    ("not-exists", "!tier", "cd"),
    ("several", "app%3Dx,tier!%3D1", "b"),
    ("greater", "tier%20%3E%201", "b"),
    ("less", "tier%20%3C%202", "a"),
    ("empty-value", "app%3D", ""),
    ("empty", "", "abcd"),
    ("in-with-empty", "app%20in%20(x,)", "ab"),
    ("spaces", "%20app%20%3D%20x%20,%20tier%20%3D%202%20", "b"),
    ("in-empty-set", "app%20in%20()", ""),
    ("only-key-with-prefix", "example.com/none", ""),
):
    cases(
        f"list/label-{name}",
        *THREE,
        get(f"configmaps?labelSelector={query}", has={"items.*.metadata.name": list(found)}),
    )
for name, query in (
    ("operator", "app%3D%3D%3Dx"),
    ("unclosed-set", "app%20in%20(x"),
    ("bad-key", "-app%3Dx"),
    ("bad-value", "app%3D-x-"),
    ("greater-than-text", "app%20%3E%20x"),
    ("only-comma", ","),
    ("lonely-bang", "!"),
    ("two-words", "a%20b"),
    ("value-too-long", "a%3D" + "x" * 64),
    ("bad-prefix", "a/b/c%3Dx"),
):
    cases(f"list/bad-label-{name}", get(f"configmaps?labelSelector={query}", 400, "BadRequest"))

cases(
    "list/field-name",
    *THREE,
    get("configmaps?fieldSelector=metadata.name%3Db", has={"items.*.metadata.name": ["b"]}),
)
cases(
    "list/field-name-not",
    *THREE,
    get("configmaps?fieldSelector=metadata.name!%3Db", has={"items.*.metadata.name": ["a", "c", "d"]}),
)
cases(
    "list/field-namespace",
    post("configmaps", config_map("a", {"labels": {"case": "{u}"}})),
    post("/api/v1/namespaces/{ns2}/configmaps", config_map("b", {"labels": {"case": "{u}"}})),
    get(
        "*configmaps?labelSelector=case%3D{u}&fieldSelector=metadata.namespace%3D{ns2}",
        has={"items.*.metadata.name": ["b"]},
    ),
)
cases(
    "list/field-and-label",
    *THREE,
    get(
        "configmaps?fieldSelector=metadata.name!%3Da&labelSelector=app%3Dx",
        has={"items.*.metadata.name": ["b"]},
    ),
)
cases(
    "list/field-on-name-path-mismatch",
    *THREE,
    get("configmaps?fieldSelector=metadata.name%3Da,metadata.name%3Db", has={"items": []}),
)
for name, path in (
    ("configmap-data", "configmaps?fieldSelector=data.a%3Db"),
    ("pod-label", "pods?fieldSelector=metadata.labels.a%3Db"),
    ("deployment-replicas", "deployments?fieldSelector=spec.replicas%3D1"),
    ("malformed", "pods?fieldSelector=metadata.name"),
    ("operator", "pods?fieldSelector=metadata.name%20in%20(a)"),
    ("service-port", "services?fieldSelector=spec.ports%3D80"),
):
    cases(f"list/bad-field-{name}", get(path, 400, "BadRequest"))
cases(
    "list/field-pods",
    post("pods", pod("a", nodeName="n1", restartPolicy="Never")),
    post("pods", pod("b", schedulerName="other")),
    get("pods?fieldSelector=spec.nodeName%3Dn1", has={"items.*.metadata.name": ["a"]}),
    get("pods?fieldSelector=spec.nodeName%3D", has={"items.*.metadata.name": ["b"]}),
    get("pods?fieldSelector=spec.schedulerName%3Dother", has={"items.*.metadata.name": ["b"]}),
    get("pods?fieldSelector=spec.restartPolicy%3DNever", has={"items.*.metadata.name": ["a"]}),
    get("pods?fieldSelector=spec.serviceAccountName%3Ddefault", has={"items.*.metadata.name": ["a", "b"]}),
    get("pods?fieldSelector=spec.hostNetwork%3Dtrue", has={"items": []}),
    get("pods?fieldSelector=status.phase%3DPending", has={"items.*.metadata.name": ["a", "b"]}),
    get("pods?fieldSelector=status.podIP%3D1.2.3.4", has={"items": []}),
    get("pods?fieldSelector=status.nominatedNodeName%3Dn", has={"items": []}),
)
cases(
    "list/field-pods-of-phase-pair",
    post("pods", pod("a")),
    get(
        "pods?fieldSelector=status.phase!%3DFailed,status.phase!%3DSucceeded",
        has={"items.*.metadata.name": ["a"]},
    ),
)
cases(
    "list/field-nodes",
    post("nodes", node("{u}-a", {"labels": {"case": "{u}"}}, spec={"unschedulable": True})),
    post("nodes", node("{u}-b", {"labels": {"case": "{u}"}})),
    get(
        "nodes?labelSelector=case%3D{u}&fieldSelector=spec.unschedulable%3Dtrue",
        has={"items.*.metadata.name": ["{u}-a"]},
    ),
    get(
        "nodes?labelSelector=case%3D{u}&fieldSelector=spec.unschedulable%3Dfalse",
        has={"items.*.metadata.name": ["{u}-b"]},
    ),
)
cases(
    "list/field-secrets",
    post("secrets", secret("a", type="example.com/x")),
    post("secrets", secret("b")),
    get("secrets?fieldSelector=type%3Dexample.com/x", has={"items.*.metadata.name": ["a"]}),
)
cases(
    "list/field-namespaces",
    get(
        "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3D{ns}",
        has={"items.*.metadata.name": ["{ns}"]},
    ),
)
cases(
    "list/field-jobs",
    post("jobs", job("a")),
    get("jobs?fieldSelector=status.successful%3D0", has={"items.*.metadata.name": ["a"]}),
    get("jobs?fieldSelector=status.successful%3D1", has={"items": []}),
)
EVENT: dict[str, Any] = {
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
    "reason": "Frobbed",
    "type": "Normal",
}
cases(
    "list/field-events",
    post("events", thing("v1", "Event", "a", **EVENT)),
    post("events", thing("v1", "Event", "b", **{**EVENT, "reason": "Other", "type": "Warning"})),
    get(
        "events?fieldSelector=involvedObject.name%3Dp,reason%3DFrobbed", has={"items.*.metadata.name": ["a"]}
    ),
    get("events?fieldSelector=type%3DWarning", has={"items.*.metadata.name": ["b"]}),
    get(
        "events?fieldSelector=involvedObject.kind%3DPod,involvedObject.namespace%3D{ns}",
        has={"items.*.metadata.name": ["a", "b"]},
    ),
    get("events?fieldSelector=count%3D1", 400, "BadRequest"),
)

cases("list/empty-is-an-empty-list", get("leases", take=WHOLE))
cases(
    "list/items-have-no-type",
    post("configmaps", config_map()),
    get("configmaps", take=["kind", "apiVersion", "items[0].kind", "items[0].apiVersion", "metadata"]),
)
cases("list/missing-namespace-is-empty", get("/api/v1/namespaces/{u}-none/configmaps", has={"items": []}))
cases(
    "list/sorted-by-namespace-then-name",
    *(
        post("configmaps", config_map(n, {"labels": {"case": "{u}"}}))
        for n in ("b", "a", "a-b", "a.b", "c1", "c")
    ),
    post("/api/v1/namespaces/{ns2}/configmaps", config_map("a0", {"labels": {"case": "{u}"}})),
    get("*configmaps?labelSelector=case%3D{u}", take=["items.*.metadata.name", "items.*.metadata.namespace"]),
)
for plural, kind in (
    ("pods", "PodList"),
    ("nodes", "NodeList"),
    ("deployments", "DeploymentList"),
    ("endpoints", "EndpointsList"),
    ("leases", "LeaseList"),
    ("priorityclasses", "PriorityClassList"),
    ("ingresses", "IngressList"),
    ("horizontalpodautoscalers", "HorizontalPodAutoscalerList"),
    ("networkpolicies", "NetworkPolicyList"),
    ("customresourcedefinitions", "CustomResourceDefinitionList"),
    ("storageclasses", "StorageClassList"),
    ("resourceslices", "ResourceSliceList"),
    ("csistoragecapacities", "CSIStorageCapacityList"),
    ("validatingwebhookconfigurations", "ValidatingWebhookConfigurationList"),
):
    cases(f"list/kind-of-{plural}", get(f"*{plural}?limit=1", has={"kind": kind}, take=["apiVersion"]))

FIVE = tuple(post("configmaps", config_map(name)) for name in "abcde")
cases(
    "list/pages",
    *FIVE,
    get(
        "configmaps?limit=2",
        has={"items.*.metadata.name": ["a", "b"], "metadata.remainingItemCount": 3},
        save={"token": "metadata.continue", "rv": "metadata.resourceVersion"},
    ),
    get(
        "configmaps?limit=2&continue={token}",
        save={"token": "metadata.continue"},
        has={
            "items.*.metadata.name": ["c", "d"],
            "metadata.remainingItemCount": 1,
            "metadata.resourceVersion": "{rv}",
        },
    ),
    get(
        "configmaps?limit=2&continue={token}",
        take=["metadata.continue", "metadata.remainingItemCount"],
        has={"items.*.metadata.name": ["e"], "metadata.resourceVersion": "{rv}"},
    ),
)
cases(
    "list/pages-are-consistent-under-writes",
    *FIVE,
    get("configmaps?limit=2", save={"token": "metadata.continue", "rv": "metadata.resourceVersion"}),
    delete("configmaps/d"),
    post("configmaps", config_map("cc")),
    merge("configmaps/e", {"data": {"x": "y"}}),
    get(
        "configmaps?continue={token}",
        has={
            "items.*.metadata.name": ["c", "d", "e"],
            "items[2].data": "<missing>",
            "metadata.resourceVersion": "{rv}",
        },
    ),
)
cases(
    "list/page-limit-larger-than-list",
    *FIVE,
    get("configmaps?limit=50", take=["metadata", "items.*.metadata.name"]),
)
cases(
    "list/page-limit-equal-to-list",
    *FIVE,
    get("configmaps?limit=5", take=["metadata", "items.*.metadata.name"]),
)
cases(
    "list/pages-with-a-selector-count-nothing",
    *THREE,
    get(
        "configmaps?limit=1&labelSelector=app%3Dx",
        save={"token": "metadata.continue"},
        take=["metadata.remainingItemCount", "items.*.metadata.name"],
    ),
    get(
        "configmaps?limit=5&labelSelector=app%3Dx&continue={token}",
        take=["metadata", "items.*.metadata.name"],
    ),
)
cases(
    "list/page-with-changed-selector",
    *THREE,
    get("configmaps?limit=1&labelSelector=app%3Dx", save={"token": "metadata.continue"}),
    get("configmaps?labelSelector=app%3Dy&continue={token}", take=["items.*.metadata.name"]),
)
cases("list/continue-not-a-token", get("configmaps?continue=frob", 400, "BadRequest"))
cases(
    "list/continue-with-resource-version",
    *FIVE,
    get("configmaps?limit=2", save={"token": "metadata.continue"}),
    get("configmaps?limit=2&resourceVersion=5&continue={token}", 400, "BadRequest"),
)
cases(
    "list/continue-with-resource-version-zero",
    *FIVE,
    get("configmaps?limit=2", save={"token": "metadata.continue"}),
    get("configmaps?limit=2&resourceVersion=0&continue={token}", take=["items.*.metadata.name"]),
)
cases("list/limit-negative", *FIVE, get("configmaps?limit=-1", 200, take=["items.*.metadata.name"]))
cases("list/limit-not-a-number", get("configmaps?limit=x", 400, "BadRequest"))
cases("list/timeout-not-a-number", get("configmaps?timeoutSeconds=x", 400, "BadRequest"))
cases("list/boolean-that-is-no-boolean-counts-as-true", get("configmaps?watch=maybe&timeoutSeconds=1", 200))

MADE = post("configmaps", config_map("a"), save={"rv": "metadata.resourceVersion"})
cases(
    "list/at-exact-version",
    MADE,
    post("configmaps", config_map("b")),
    get(
        "configmaps?resourceVersion={rv}&resourceVersionMatch=Exact",
        has={"items.*.metadata.name": ["a"], "metadata.resourceVersion": "{rv}"},
    ),
)
cases(
    "list/not-older-than",
    MADE,
    get(
        "configmaps?resourceVersion={rv}&resourceVersionMatch=NotOlderThan",
        has={"items.*.metadata.name": ["a"]},
    ),
)
cases(
    "list/version-without-match",
    MADE,
    get("configmaps?resourceVersion={rv}", has={"items.*.metadata.name": ["a"]}),
)
cases(
    "list/version-without-match-and-limit-is-exact",
    MADE,
    post("configmaps", config_map("b")),
    get("configmaps?resourceVersion={rv}&limit=5", has={"items.*.metadata.name": ["a"]}),
)
cases("list/version-zero", MADE, get("configmaps?resourceVersion=0", take=["kind"]))
cases(
    "list/version-zero-ignores-limit",
    *FIVE,
    get(
        "configmaps?resourceVersion=0&limit=2",
        poll=True,
        has={"items.*.metadata.name": ["a", "b", "c", "d", "e"]},
        take=["metadata.continue"],
    ),
)
for name, query in (
    ("match-without-version", "resourceVersionMatch=Exact"),
    ("exact-zero", "resourceVersion=0&resourceVersionMatch=Exact"),
    ("unknown-match", "resourceVersion=5&resourceVersionMatch=Frob"),
    ("match-with-continue", "resourceVersionMatch=Exact&resourceVersion=5&continue=x&limit=1"),
    ("initial-events-without-watch", "sendInitialEvents=true"),
):
    cases(f"list/bad-version-{name}", get(f"configmaps?{query}", 422, "Invalid"))
cases("list/version-not-a-number", get("configmaps?resourceVersion=abc", 400, "BadRequest"))
cases("list/version-negative", get("configmaps?resourceVersion=-1", 400, "BadRequest"))
cases(
    "list/version-in-the-future",
    MADE,
    get(
        "configmaps?resourceVersion=9999999999&resourceVersionMatch=NotOlderThan",
        504,
        "Timeout",
        ("ResourceVersionTooLarge", ""),
    ),
)
cases(
    "list/shows-status-changes",
    post("deployments", deployment()),
    put("deployments/d/status", {**deployment(), "status": {"replicas": 2}}),
    get("deployments", take=["items[0].status", "items[0].metadata.generation"]),
)
cases("list/services", post("services", service()), get("services", take=WHOLE))
cases("list/leases", post("leases", lease("l", holderIdentity="me")), get("leases", take=WHOLE))
