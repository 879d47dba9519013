"""Custom resources: served when established, scaled, shown as tables, gone with their definition."""

from __future__ import annotations

from tests.conformance.causes import INVALID
from tests.conformance.model import (
    APPLY_PATCH,
    TABLE,
    WHOLE,
    Cases,
    apply,
    collect,
    delete,
    get,
    json_patch,
    merge,
    post,
    put,
    strategic,
    watch,
)
from tests.conformance.objects import WIDGETS as W
from tests.conformance.objects import crd, widget
from tests.conformance.widgets import INT, NAME, OPEN, STATUS, TEXT, defined, schema

cases = Cases()

cases(
    "custom/conditions",
    post("customresourcedefinitions", crd(), take=["spec", "status"]),
    get(
        NAME,
        poll=True,
        has={"status.conditions.*.status": ["True", "True"]},
        take=[
            "status.conditions.*.type",
            "status.conditions.*.reason",
            "status.acceptedNames",
            "status.storedVersions",
        ],
    ),
)
cases("custom/create", *OPEN, post(W, widget(spec={"a": 1}), take=WHOLE), get(W + "/w", take=WHOLE))
cases(
    "custom/generation",
    *defined(crd(schema(a=INT), STATUS)),
    post(W, widget(spec={"a": 1}), take=["metadata.generation"]),
    merge(W + "/w", {"spec": {"a": 2}}, take=["metadata.generation"]),
    merge(W + "/w", {"metadata": {"labels": {"x": "y"}}}, take=["metadata.generation"]),
    merge(W + "/w/status", {"status": {"x": 1}}, take=["metadata.generation"]),
)
cases(
    "custom/generation-without-status-subresource",
    *OPEN,
    post(W, widget(spec={"a": 1}), take=["metadata.generation"]),
    merge(W + "/w", {"status": {"x": 1}}, take=["metadata.generation", "status"]),
    merge(W + "/w", {"metadata": {"labels": {"x": "y"}}}, take=["metadata.generation"]),
)
cases(
    "custom/discovery",
    *defined(
        crd(
            version=STATUS,
            names={"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
        )
    ),
    get("/apis/{u}.example.com", poll=True, take=WHOLE),
    get(
        "/apis/{u}.example.com/v1",
        poll=True,
        take=[
            "groupVersion",
            "resources[name=widgets].kind",
            "resources[name=widgets].listKind",
            "resources[name=widgets].shortNames",
            "resources[name=widgets].categories",
            "resources[name=widgets].verbs",
            "resources[name=widgets].singularName",
            "resources[name=widgets/status].verbs",
            "resources[name=widgets/status].kind",
        ],
    ),
)
cases(
    "custom/list",
    *OPEN,
    post(W, widget("a")),
    post(W, widget("b")),
    get(W, take=["kind", "apiVersion", "items.*.metadata.name"]),
    get("/apis/{u}.example.com/v1/widgets", take=["kind", "items.*.kind"]),
)
cases("custom/missing", *OPEN, get(W + "/none", 404, "NotFound"), delete(W + "/none", None, 404, "NotFound"))
cases("custom/existing", *OPEN, post(W, widget()), post(W, widget(), 409, "AlreadyExists"))
cases("custom/name-invalid", *OPEN, post(W, widget("Bad_Name"), 422, "Invalid", (INVALID, "metadata.name")))
cases(
    "custom/kind-mismatch", *OPEN, post(W, {**widget(), "kind": "Other"}, 422, "Invalid", (INVALID, "kind"))
)
cases("custom/kind-missing", *OPEN, post(W, {"metadata": {"name": "w"}}, 400, "BadRequest"))
cases(
    "custom/cluster-scoped",
    *defined(crd(scope="Cluster")),
    post("/apis/{u}.example.com/v1/widgets", widget(), take=["metadata.namespace", "metadata.name"]),
    get(W + "/w", 404),
)
cases(
    "custom/metadata-is-validated",
    *OPEN,
    post(W, widget("w", {"labels": {"a": "b c"}}), 422, "Invalid", (INVALID, "metadata.labels")),
)
cases(
    "custom/update-needs-version",
    *OPEN,
    post(W, widget(), save={"rv": "metadata.resourceVersion"}),
    put(W + "/w", widget(spec={"a": 2}), 422, "Invalid", (INVALID, "metadata.resourceVersion")),
    put(W + "/w", widget("w", {"resourceVersion": "{rv}"}, spec={"a": 2}), take=["spec"]),
    put(W + "/w", widget("w", {"resourceVersion": "{rv}"}, spec={"a": 3}), 409, "Conflict"),
)
cases(
    "custom/strategic-patch-is-unsupported",
    *OPEN,
    post(W, widget()),
    strategic(W + "/w", {}, 415, "UnsupportedMediaType"),
)
cases(
    "custom/json-patch",
    *OPEN,
    post(W, widget(spec={"a": [1]})),
    json_patch(W + "/w", [{"op": "add", "path": "/spec/a/-", "value": 2}], take=["spec"]),
)
cases(
    "custom/merge-patch",
    *OPEN,
    post(W, widget(spec={"a": 1, "b": 2})),
    merge(W + "/w", {"spec": {"a": None}}, take=["spec"]),
)
cases(
    "custom/no-op-keeps-version",
    *OPEN,
    post(W, widget(spec={"a": 1}), take=["metadata.resourceVersion"]),
    merge(W + "/w", {"spec": {"a": 1}}, take=["metadata.resourceVersion"]),
)
cases(
    "custom/watch",
    *OPEN,
    get(W, save={"rv": "metadata.resourceVersion"}),
    watch(W + "?watch=true&resourceVersion={rv}"),
    post(W, widget()),
    merge(W + "/w", {"spec": {"a": 1}}),
    delete(W + "/w"),
    collect(("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w"), take=["spec", "kind"]),
)
cases("custom/delete-answer", *OPEN, post(W, widget()), delete(W + "/w", take=WHOLE))
cases(
    "custom/field-selector",
    *OPEN,
    post(W, widget("a")),
    post(W, widget("b")),
    get(W + "?fieldSelector=metadata.name%3Da", take=["items.*.metadata.name"]),
    get(W + "?fieldSelector=spec.a%3Da", 400, "BadRequest"),
)
cases(
    "custom/selectable-fields",
    *defined(crd(schema(color=TEXT), {"selectableFields": [{"jsonPath": ".spec.color"}]})),
    post(W, widget("a", spec={"color": "red"})),
    post(W, widget("b", spec={"color": "blue"})),
    get(W + "?fieldSelector=spec.color%3Dblue", take=["items.*.metadata.name"]),
)
cases("custom/dry-run", *OPEN, post(W + "?dryRun=All", widget()), get(W + "/w", 404, "NotFound"))
cases(
    "custom/generate-name",
    *OPEN,
    post(
        W,
        {"apiVersion": "{u}.example.com/v1", "kind": "Widget", "metadata": {"generateName": "w-"}},
        take=["metadata.name"],
    ),
)

WITH_STATUS = defined(crd(version=STATUS))
cases(
    "custom/status-is-dropped-on-create",
    *WITH_STATUS,
    post(W, widget(spec={"a": 1}, status={"b": 2}), take=["spec", "status"]),
)
cases(
    "custom/status-is-ignored-on-main",
    *WITH_STATUS,
    post(W, widget(spec={"a": 1})),
    merge(W + "/w", {"spec": {"a": 2}, "status": {"b": 2}}, take=["spec", "status"]),
)
cases(
    "custom/status-subresource",
    *WITH_STATUS,
    post(W, widget(spec={"a": 1})),
    merge(
        W + "/w/status",
        {"spec": {"a": 2}, "metadata": {"labels": {"x": "y"}}, "status": {"b": 2}},
        take=["spec", "status", "metadata.labels"],
    ),
    get(W + "/w/status", take=["status"]),
)
cases(
    "custom/status-without-subresource",
    *OPEN,
    post(W, widget()),
    merge(W + "/w/status", {"status": {"a": 1}}, 404),
)
cases(
    "custom/status-put",
    *WITH_STATUS,
    post(W, widget(spec={"a": 1}), save={"rv": "metadata.resourceVersion"}),
    put(
        W + "/w/status",
        widget("w", {"resourceVersion": "{rv}"}, spec={"a": 9}, status={"b": 2}),
        take=["spec", "status"],
    ),
)
SCALE = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.n",
            "statusReplicasPath": ".status.n",
            "labelSelectorPath": ".status.sel",
        },
    }
}
SCALED = defined(crd(schema(n=INT), SCALE))
cases(
    "custom/scale-get",
    *SCALED,
    post(W, widget(spec={"n": 3})),
    merge(W + "/w/status", {"status": {"n": 2, "sel": "a=b"}}),
    get(W + "/w/scale", take=WHOLE),
)
cases(
    "custom/scale-put",
    *SCALED,
    post(W, widget(spec={"n": 3})),
    put(
        W + "/w/scale",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "w", "namespace": "{ns}"},
            "spec": {"replicas": 5},
        },
        take=["spec"],
    ),
    get(W + "/w", take=["spec", "metadata.generation"]),
)
cases(
    "custom/scale-patch",
    *SCALED,
    post(W, widget(spec={"n": 3})),
    merge(W + "/w/scale", {"spec": {"replicas": 6}}, take=["spec"]),
)
cases(
    "custom/scale-negative",
    *SCALED,
    post(W, widget(spec={"n": 3})),
    merge(W + "/w/scale", {"spec": {"replicas": -6}}, 422, "Invalid"),
)
cases(
    "custom/scale-without-replicas",
    *SCALED,
    post(W, widget(spec={})),
    get(W + "/w/scale", 500, "InternalError"),
)

COLUMNS = {
    "additionalPrinterColumns": [
        {"name": "A", "type": "string", "jsonPath": ".spec.a"},
        {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "When", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
}
cases(
    "custom/table-columns",
    *defined(crd(version=COLUMNS)),
    post(
        W,
        widget(
            spec={"a": "x", "n": 2},
            status={
                "conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
            },
        ),
    ),
    post(W, widget("z")),
    get(W, headers={"Accept": TABLE}, take=["columnDefinitions", "rows.*.cells"]),
)
cases(
    "custom/table-without-columns",
    *OPEN,
    post(W, widget()),
    get(W, headers={"Accept": TABLE}, take=["columnDefinitions", "rows.*.cells"]),
)

TWO_VERSIONS = crd(
    versions=[
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        for name in ("v1", "v2")
    ]
)
V2 = W.replace("/v1/", "/v2/")
cases(
    "custom/two-versions",
    *defined(TWO_VERSIONS, ("v1", "v2")),
    post(W, widget(spec={"a": 1})),
    get(V2 + "/w", take=["apiVersion", "spec", "metadata.resourceVersion"]),
    post(V2, {**widget("x"), "apiVersion": "{u}.example.com/v2"}),
    get(W, take=["apiVersion", "items.*.apiVersion", "items.*.metadata.name"]),
    get("/apis/{u}.example.com", take=["versions"]),
)
cases(
    "custom/unserved-version",
    *defined(
        crd(
            versions=[
                {
                    "name": name,
                    "served": name == "v1",
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
                for name in ("v1", "v2")
            ]
        )
    ),
    get(V2, 404),
)
cases(
    "custom/deprecated-version-warns",
    *defined(crd(version={"deprecated": True, "deprecationWarning": "use v9"})),
    get(W, take=["kind"]),
)

A = W + "/w?fieldManager=a"
cases(
    "custom/apply",
    *OPEN,
    apply(A, widget(spec={"x": {"y": 1}}), 201, take=["spec", "metadata.managedFields"]),
)
cases(
    "custom/apply-conflict",
    *OPEN,
    apply(A, widget(spec={"x": 1}), 201),
    apply(
        W + "/w?fieldManager=b", widget(spec={"x": 2}), 409, "Conflict", ("FieldManagerConflict", ".spec.x")
    ),
)
cases("custom/apply-type", *OPEN, merge(A, widget(), 201, content_type=APPLY_PATCH))
cases(
    "custom/definition-deletion-ends-service",
    *OPEN,
    post(W, widget()),
    delete(NAME, take=["kind", "status"]),
    get(NAME, 404, "NotFound", poll=True),
    get(W, 404, poll=True),
)
cases(
    "custom/definition-comes-back-empty",
    *OPEN,
    post(W, widget()),
    delete(NAME),
    get(NAME, 404, "NotFound", poll=True),
    *OPEN,
    get(W, poll=True, has={"items": []}),
)
cases(
    "custom/second-definition-with-taken-names",
    *OPEN,
    post(
        "customresourcedefinitions",
        {**crd(names={"plural": "others", "kind": "Widget"}), "metadata": {"name": "others.{u}.example.com"}},
    ),
    get(
        "customresourcedefinitions/others.{u}.example.com",
        poll=True,
        has={"status.conditions[0].status": "False"},
        take=["status.conditions.*.type", "status.conditions.*.status", "status.conditions.*.reason"],
    ),
)
cases(
    "custom/openapi-v3",
    *defined(crd(schema(a=INT))),
    get(
        "/openapi/v3/apis/{u}.example.com/v1",
        poll=True,
        take=["openapi"],
        text=["x-kubernetes-group-version-kind", '"Widget"'],
    ),
)
