"""Watches: where they start, what selectors let through, bookmarks, ends and errors."""

from __future__ import annotations

from tests.conformance.model import (
    PARTIAL,
    TABLE,
    WHOLE,
    Cases,
    collect,
    delete,
    get,
    merge,
    post,
    put,
    watch,
)
from tests.conformance.objects import config_map, deployment, namespace, node, plain_pod

cases = Cases()
RV = {"rv": "metadata.resourceVersion"}
LIST = get("configmaps", save=RV)
A = post("configmaps", config_map("a", x="1"))
INITIAL = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
NO_INITIAL = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=false"
SHAPE = ["data", "metadata.resourceVersion", "kind", "apiVersion"]

cases(
    "watch/from-a-list",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    A,
    merge("configmaps/a", {"data": {"x": "2"}}),
    delete("configmaps/a"),
    collect(("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), take=SHAPE),
)
cases(
    "watch/replays-history",
    LIST,
    A,
    merge("configmaps/a", {"data": {"x": "2"}}),
    delete("configmaps/a"),
    watch("configmaps?watch=true&resourceVersion={rv}"),
    collect(("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), take=SHAPE),
)
cases(
    "watch/whole-events",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    A,
    delete("configmaps/a"),
    collect(("ADDED", "a"), ("DELETED", "a"), take=WHOLE),
)
cases(
    "watch/without-version-starts-with-what-is-there",
    A,
    watch("configmaps?watch=true"),
    collect(("ADDED", "a"), take=SHAPE),
    post("configmaps", config_map("b")),
    collect(("ADDED", "b")),
)
cases(
    "watch/from-version-zero",
    A,
    get("configmaps/a?resourceVersion=0", poll=True),
    watch("configmaps?watch=true&resourceVersion=0"),
    collect(("ADDED", "a")),
    post("configmaps", config_map("b")),
    collect(("ADDED", "b")),
)
cases(
    "watch/from-an-objects-own-version",
    post("configmaps", config_map("a"), save=RV),
    watch("configmaps?watch=true&resourceVersion={rv}"),
    post("configmaps", config_map("b")),
    collect(("ADDED", "b")),
)
cases(
    "watch/no-op-writes-are-silent",
    A,
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    put("configmaps/a", config_map("a", x="1")),
    merge("configmaps/a", {"data": {"x": "1"}}),
    post("configmaps?dryRun=All", config_map("z")),
    post("configmaps", config_map("end")),
    collect(("ADDED", "end")),
)
cases(
    "watch/other-namespaces-are-silent",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    post("/api/v1/namespaces/{ns2}/configmaps", config_map("x")),
    post("configmaps", config_map("end")),
    collect(("ADDED", "end")),
)
cases(
    "watch/all-namespaces",
    get("*configmaps", save=RV),
    watch("*configmaps?watch=true&resourceVersion={rv}&labelSelector=case%3D{u}"),
    post("configmaps", config_map("x", {"labels": {"case": "{u}"}})),
    post("/api/v1/namespaces/{ns2}/configmaps", config_map("y", {"labels": {"case": "{u}"}})),
    collect(("ADDED", "x"), ("ADDED", "y"), take=["metadata.namespace"]),
)
cases(
    "watch/field-selector-on-name",
    A,
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}&fieldSelector=metadata.name%3Da"),
    post("configmaps", config_map("b")),
    merge("configmaps/a", {"data": {"x": "3"}}),
    delete("configmaps/a"),
    collect(("MODIFIED", "a"), ("DELETED", "a"), take=SHAPE),
)
cases(
    "watch/old-prefix-for-a-collection",
    A,
    LIST,
    watch("/api/v1/watch/namespaces/{ns}/configmaps?resourceVersion={rv}"),
    post("configmaps", config_map("b")),
    collect(("ADDED", "b")),
)
cases(
    "watch/old-prefix-for-a-name",
    A,
    LIST,
    watch("/api/v1/watch/namespaces/{ns}/configmaps/a?resourceVersion={rv}"),
    post("configmaps", config_map("b")),
    merge("configmaps/a", {"data": {"x": "3"}}),
    collect(("MODIFIED", "a")),
)
cases(
    "watch/old-prefix-for-all-namespaces",
    get("*configmaps", save=RV),
    watch("/api/v1/watch/configmaps?resourceVersion={rv}&labelSelector=case%3D{u}"),
    post("configmaps", config_map("x", {"labels": {"case": "{u}"}})),
    collect(("ADDED", "x")),
)
cases(
    "watch/old-prefix-for-nodes",
    get("nodes", save=RV),
    watch("/api/v1/watch/nodes/{u}?resourceVersion={rv}"),
    post("nodes", node()),
    collect(("ADDED", "{u}")),
)

LABELLED = {"labels": {"app": "x"}}
cases(
    "watch/label-edges",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}&labelSelector=app%3Dx"),
    post("configmaps", config_map("a")),
    merge("configmaps/a", {"metadata": LABELLED}),
    merge("configmaps/a", {"data": {"x": "1"}}),
    merge("configmaps/a", {"metadata": {"labels": {"app": "y"}}}),
    merge("configmaps/a", {"data": {"x": "2"}}),
    delete("configmaps/a"),
    post("configmaps", config_map("end", LABELLED)),
    collect(
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "end"),
        take=["data", "metadata.labels", "metadata.resourceVersion"],
    ),
)
cases(
    "watch/label-edges-replayed",
    LIST,
    post("configmaps", config_map("a")),
    merge("configmaps/a", {"metadata": LABELLED}),
    merge("configmaps/a", {"data": {"x": "1"}}),
    merge("configmaps/a", {"metadata": {"labels": {"app": "y"}}}),
    delete("configmaps/a"),
    post("configmaps", config_map("end", LABELLED)),
    watch("configmaps?watch=true&resourceVersion={rv}&labelSelector=app%3Dx"),
    collect(
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "end"),
        take=["data", "metadata.labels"],
    ),
)
cases(
    "watch/delete-of-a-selected-object",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}&labelSelector=app%3Dx"),
    post("configmaps", config_map("a", LABELLED)),
    delete("configmaps/a"),
    collect(("ADDED", "a"), ("DELETED", "a"), take=["metadata.labels"]),
)
cases(
    "watch/field-edges-of-pods",
    get("pods", save=RV),
    watch("pods?watch=true&resourceVersion={rv}&fieldSelector=spec.nodeName%3Dn"),
    post("pods", plain_pod("p")),
    post(
        "pods/p/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        },
    ),
    delete("pods/p?gracePeriodSeconds=0"),
    collect(("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p"), take=["spec.nodeName"]),
)
cases(
    "watch/phase-edges-of-pods",
    get("pods", save=RV),
    watch("pods?watch=true&resourceVersion={rv}&fieldSelector=status.phase%3DRunning"),
    post("pods", plain_pod("p")),
    merge("pods/p/status", {"status": {"phase": "Running"}}),
    merge("pods/p", {"metadata": {"labels": {"a": "b"}}}),
    merge("pods/p/status", {"status": {"phase": "Failed"}}),
    collect(("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p"), take=["status.phase", "metadata.labels"]),
)
cases(
    "watch/graceful-deletion",
    get("pods", save=RV),
    watch("pods?watch=true&resourceVersion={rv}"),
    post("pods", plain_pod("p", nodeName="n")),
    delete("pods/p"),
    delete("pods/p?gracePeriodSeconds=0"),
    collect(
        ("ADDED", "p"),
        ("MODIFIED", "p"),
        ("MODIFIED", "p"),
        ("DELETED", "p"),
        take=["metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"],
    ),
)
cases(
    "watch/finalizer-deletion",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    post("configmaps", config_map("a", {"finalizers": ["example.com/f"]})),
    delete("configmaps/a"),
    merge("configmaps/a", {"metadata": {"finalizers": None}}),
    collect(
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        take=["metadata.deletionTimestamp", "metadata.finalizers", "metadata.resourceVersion"],
    ),
)
cases(
    "watch/status-writes",
    get("deployments", save=RV),
    watch("deployments?watch=true&resourceVersion={rv}"),
    post("deployments", deployment()),
    put("deployments/d/status", {**deployment(), "status": {"replicas": 1}}),
    collect(("ADDED", "d"), ("MODIFIED", "d"), take=["status", "metadata.generation"]),
)
cases(
    "watch/namespace-becoming-terminating",
    get("namespaces", save=RV),
    watch("namespaces?watch=true&resourceVersion={rv}&fieldSelector=metadata.name%3D{u}"),
    post("namespaces", namespace()),
    delete("namespaces/{u}"),
    collect(("ADDED", "{u}"), ("MODIFIED", "{u}"), take=["status.phase"]),
)
cases(
    "watch/collection-deletion",
    post("configmaps", config_map("a")),
    post("configmaps", config_map("b")),
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}"),
    delete("configmaps?fieldSelector=metadata.name%3Da"),
    delete("configmaps?fieldSelector=metadata.name%3Db"),
    collect(("DELETED", "a"), ("DELETED", "b")),
)

cases(
    "watch/timeout-ends-the-stream",
    A,
    watch("configmaps?watch=true&timeoutSeconds=1"),
    collect(("ADDED", "a"), count=0),
)
cases(
    "watch/of-nothing-ends-after-timeout",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}&timeoutSeconds=1"),
    collect(count=0),
)
END = 'metadata.annotations["k8s.io/initial-events-end"]'
cases(
    "watch/initial-events",
    A,
    post("configmaps", config_map("b")),
    watch(f"configmaps?watch=true&{INITIAL}"),
    collect(
        ("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), bookmarks=True, take=[END, "kind", "apiVersion"]
    ),
    post("configmaps", config_map("c")),
    collect(("ADDED", "c")),
)
cases(
    "watch/initial-events-of-nothing",
    watch(f"leases?watch=true&{INITIAL}"),
    collect(("BOOKMARK", ""), bookmarks=True, take=WHOLE),
)
cases(
    "watch/initial-events-with-selector",
    A,
    post("configmaps", config_map("b", LABELLED)),
    watch(f"configmaps?watch=true&{INITIAL}&labelSelector=app%3Dx"),
    collect(("ADDED", "b"), ("BOOKMARK", ""), bookmarks=True, take=[END]),
)
cases(
    "watch/initial-events-from-a-version",
    post("configmaps", config_map("a"), save=RV),
    watch(f"configmaps?watch=true&{INITIAL}&resourceVersion={{rv}}"),
    collect(("ADDED", "a"), ("BOOKMARK", ""), bookmarks=True, take=[END]),
)
cases(
    "watch/initial-events-from-zero",
    post("configmaps", config_map("a"), save=RV),
    get("configmaps/a?resourceVersion=0", poll=True),
    watch(f"configmaps?watch=true&{INITIAL}&resourceVersion=0"),
    collect(("ADDED", "a"), ("BOOKMARK", ""), bookmarks=True, take=[END]),
)
cases(
    "watch/initial-events-false",
    A,
    LIST,
    watch(f"configmaps?watch=true&{NO_INITIAL}&resourceVersion={{rv}}"),
    post("configmaps", config_map("b")),
    collect(("ADDED", "b")),
)
for name, query in (
    ("initial-events-without-match", "sendInitialEvents=true&allowWatchBookmarks=true"),
    (
        "initial-events-exact",
        "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=Exact&resourceVersion=5",
    ),
    ("match-without-initial-events", "resourceVersionMatch=NotOlderThan&resourceVersion=5"),
    ("initial-events-false-without-match", "sendInitialEvents=false"),
    ("continue", "continue=abc&limit=5&resourceVersionMatch=NotOlderThan"),
):
    cases(f"watch/bad-{name}", get(f"configmaps?watch=true&timeoutSeconds=1&{query}", 422, "Invalid"))
cases(
    "watch/initial-events-without-bookmarks",
    A,
    watch("configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    collect(("ADDED", "a")),
)
cases("watch/bad-version", get("configmaps?watch=true&timeoutSeconds=1&resourceVersion=abc", 500))
cases("watch/bad-label", get("configmaps?watch=true&timeoutSeconds=1&labelSelector=!!", 400, "BadRequest"))
cases(
    "watch/bad-field",
    get("configmaps?watch=true&timeoutSeconds=1&fieldSelector=data.a%3Db", 400, "BadRequest"),
)
cases("watch/bad-timeout", get("configmaps?watch=true&timeoutSeconds=x", 400, "BadRequest"))
cases("watch/unknown-resource", get("/api/v1/namespaces/{ns}/frobs?watch=true", 404, "NotFound"))
cases(
    "watch/missing-namespace-is-silent",
    get("/api/v1/namespaces/{u}-none/configmaps?watch=true&timeoutSeconds=1", 200),
)
cases(
    "watch/version-in-the-future",
    get("configmaps?watch=true&resourceVersion=9999999999&timeoutSeconds=1", 200),
)
cases("watch/content-type", get("configmaps?watch=true&timeoutSeconds=1", 200, take_headers=["Content-Type"]))
cases("watch/false-is-a-plain-list", get("configmaps?watch=false", 200, take=["kind"]))
cases(
    "watch/table",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}", Accept=TABLE),
    A,
    merge("configmaps/a", {"data": {"y": "2"}}),
    collect(
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        take=["kind", "columnDefinitions.*.name", "rows.*.cells", "rows[0].object.kind"],
    ),
)
cases(
    "watch/partial-metadata",
    LIST,
    watch("configmaps?watch=true&resourceVersion={rv}", Accept=PARTIAL),
    A,
    collect(("ADDED", "a"), take=WHOLE),
)
cases(
    "watch/limit-is-ignored",
    A,
    post("configmaps", config_map("b")),
    watch("configmaps?watch=true&limit=1"),
    collect(("ADDED", "a"), ("ADDED", "b")),
)
cases(
    "watch/one-object-by-its-path",
    A,
    LIST,
    get("configmaps/a?watch=true&resourceVersion={rv}&timeoutSeconds=1", 200, take=["kind"]),
)
