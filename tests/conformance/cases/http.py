"""Paths, methods, media types and encodings: what happens before an object is looked at."""

from __future__ import annotations

from tests.conformance.model import JSON, WHOLE, Cases, delete, get, merge, post, put, request
from tests.conformance.objects import config_map, namespace, pod

cases = Cases()
PROTOBUF = "application/vnd.kubernetes.protobuf"

cases("http/unknown-path", get("/nothing/here", 404))
cases("http/unknown-core-resource", get("/api/v1/nothings", 404))
cases("http/unknown-core-version", get("/api/v9/pods", 404))
cases("http/unknown-group", get("/apis/nothing.example.com/v1/things", 404))
cases("http/unknown-version-of-a-group", get("/apis/apps/v9/deployments", 404))
cases("http/unknown-namespaced-resource", get("/api/v1/namespaces/{ns}/nothings/x", 404))
cases("http/unknown-resource-of-a-group", get("/apis/apps/v1/namespaces/{ns}/nothings", 404))
cases("http/unknown-subresource", post("pods", pod()), get("pods/p/nothing", 404))
cases(
    "http/unknown-subresource-of-configmap",
    post("configmaps", config_map()),
    get("configmaps/cm/status", 404),
)
cases("http/cluster-scoped-kind-under-namespace", get("/api/v1/namespaces/{ns}/nodes", 404))
cases("http/namespaced-kind-without-namespace", get("/api/v1/pods/p", 404))
cases("http/create-in-all-namespaces", post("*pods", pod(), 405, "MethodNotAllowed"))
cases("http/put-on-a-collection", put("configmaps", config_map(), 405, "MethodNotAllowed"))
cases("http/post-on-an-object", post("configmaps/cm", config_map(), 405, "MethodNotAllowed"))
cases("http/patch-on-a-collection", merge("configmaps", {}, 405, "MethodNotAllowed"))
cases("http/delete-all-namespaces-collection", delete("/api/v1/pods", None, 405, "MethodNotAllowed"))
cases(
    "http/get-a-create-only-resource",
    get("/apis/authentication.k8s.io/v1/tokenreviews", 405, "MethodNotAllowed"),
)
cases("http/get-binding-subresource", post("pods", pod()), get("pods/p/binding", 405, "MethodNotAllowed"))
cases("http/get-eviction-subresource", post("pods", pod()), get("pods/p/eviction", 405, "MethodNotAllowed"))
cases(
    "http/delete-status-subresource",
    post("pods", pod()),
    delete("pods/p/status", None, 405, "MethodNotAllowed"),
)
cases(
    "http/post-status-subresource", post("pods", pod()), post("pods/p/status", pod(), 405, "MethodNotAllowed")
)
cases("http/delete-collection-of-namespaces", delete("/api/v1/namespaces", None, 405, "MethodNotAllowed"))
cases("http/head-on-an-object", request("HEAD", "/api/v1/namespaces/{ns}", 405))
cases("http/options-on-an-object", request("OPTIONS", "/api/v1/namespaces/{ns}", 405))
cases("http/made-up-method", request("FROB", "/api/v1/namespaces/{ns}", 405))
cases("http/post-on-version", request("POST", "/version", 405, body={}))
cases("http/trailing-slash", get("/api/v1/namespaces/{ns}/", take=["kind", "metadata.name"]))
cases("http/double-slash", get("/api/v1//namespaces/{ns}", 404))

cases("http/accept-unknown-type", get("/api/v1/namespaces/{ns}", 406, headers={"Accept": "text/csv"}))
cases("http/accept-unknown-type-on-list", get("pods", 406, headers={"Accept": "application/xml"}))
cases(
    "http/accept-anything",
    get("/api/v1/namespaces/{ns}", headers={"Accept": "*/*"}, take_headers=["Content-Type"]),
)
cases(
    "http/accept-application-anything",
    get("/api/v1/namespaces/{ns}", 406, headers={"Accept": "application/*"}),
)
cases(
    "http/accept-json-after-unknown",
    get("pods", headers={"Accept": "text/csv, application/json;q=0.5"}, take_headers=["Content-Type"]),
)
cases(
    "http/accept-yaml",
    get("/api/v1/namespaces/{ns}", headers={"Accept": "application/yaml"}, take_headers=["Content-Type"]),
)
cases(
    "http/version-ignores-accept",
    get("/version", headers={"Accept": f"{PROTOBUF},application/json"}, take=["major", "minor"]),
)
cases(
    "http/accept-protobuf-before-json",
    get(
        "/api/v1/namespaces/{ns}",
        headers={"Accept": f"{PROTOBUF},application/json"},
        take_headers=["Content-Type"],
    ),
)
cases(
    "http/accept-json-before-protobuf",
    get(
        "/api/v1/namespaces/{ns}",
        headers={"Accept": f"application/json,{PROTOBUF}"},
        take_headers=["Content-Type"],
    ),
)
cases(
    "http/error-body-for-accept-yaml-is-yaml",
    get("configmaps/x", 404, headers={"Accept": "application/yaml"}, take_headers=["Content-Type"]),
)
cases(
    "http/table-of-unknown-version-falls-back-to-json",
    get(
        "pods",
        headers={"Accept": "application/json;as=Table;v=v9;g=meta.k8s.io,application/json"},
        take=["kind"],
    ),
)
cases(
    "http/table-of-unknown-version-alone",
    get("pods", 406, headers={"Accept": "application/json;as=Table;v=v9;g=meta.k8s.io"}),
)
cases(
    "http/unknown-conversion-target",
    get("pods", 406, headers={"Accept": "application/json;as=Frob;v=v1;g=meta.k8s.io"}),
)
cases(
    "http/pretty-printed",
    get("/api/v1/namespaces/{ns}?pretty=true", take=["metadata.name"]),
)

cases("http/body-of-unknown-type", post("configmaps", b"a,b", 415, content_type="text/csv"))
cases(
    "http/body-without-type",
    post(
        "configmaps",
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"}}',
        201,
        content_type="",
        take=["metadata.name"],
    ),
)
cases(
    "http/body-type-with-charset",
    post("configmaps", config_map(), content_type="application/json; charset=utf-8"),
)
cases("http/body-type-in-capitals", post("configmaps", config_map(), content_type="Application/JSON"))
cases("http/body-not-json", post("configmaps", b"{nope", 400, "BadRequest"))
cases("http/body-empty", post("configmaps", b"", 400, "BadRequest"))
cases(
    "http/body-truncated",
    post("configmaps", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"}', 400, "BadRequest"),
)
cases("http/body-is-a-list", post("configmaps", b"[1]", 400, "BadRequest"))
cases("http/body-is-a-number", post("configmaps", b"7", 400, "BadRequest"))
cases(
    "http/body-is-null", post("configmaps", b"null", 422, "Invalid", ("FieldValueRequired", "metadata.name"))
)
cases(
    "http/body-has-data-after-the-object",
    post(
        "configmaps", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"}}{}', 400, "BadRequest"
    ),
)
cases(
    "http/body-over-3-mib",
    post(
        "configmaps",
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"a":"'
        + b"x" * (3 * 1024 * 1024 + 10)
        + b'"}}',
        413,
        "RequestEntityTooLarge",
    ),
)
cases(
    "http/configmap-over-1-mib",
    post("configmaps", config_map(a="x" * (1024 * 1024 + 1)), 422, "Invalid", ("FieldValueTooLong", "[]")),
)
YAML = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\ndata:\n  a: 'yes'\n"
cases("http/body-yaml", post("configmaps", YAML, content_type="application/yaml", has={"data.a": "yes"}))
cases(
    "http/body-yaml-wrong-type-of-value",
    post(
        "configmaps",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\ndata:\n  a: yes\n",
        400,
        "BadRequest",
        content_type="application/yaml",
    ),
)
cases(
    "http/body-yaml-malformed",
    post("configmaps", b"apiVersion: v1\n  kind: [", 400, "BadRequest", content_type="application/yaml"),
)
cases("http/body-yaml-sent-as-json", post("configmaps", YAML, 400, "BadRequest", content_type=JSON))
cases(
    "http/patch-as-plain-json",
    post("configmaps", config_map()),
    request("PATCH", "configmaps/cm", 415, body={"data": {"a": "b"}}, content_type=JSON),
)
cases(
    "http/patch-without-type",
    post("configmaps", config_map()),
    request("PATCH", "configmaps/cm", 415, body={"data": {"a": "b"}}, content_type=""),
)
cases(
    "http/namespace-in-query-is-ignored",
    post("configmaps", config_map()),
    get("/api/v1/configmaps?namespace={ns2}&labelSelector=nothing%3Dhere", take=["kind", "items"]),
)
cases(
    "http/name-with-percent-escapes",
    post("configmaps", config_map("a.b-c")),
    get("configmaps/a%2Eb%2Dc", has={"metadata.name": "a.b-c"}),
)
cases(
    "http/audit-id-header-is-returned",
    get("/api/v1/namespaces/{ns}", headers={"Audit-ID": "conformance-1"}, take_headers=["Audit-ID"]),
)
cases("http/cache-control-header", get("/api/v1/namespaces/{ns}", take_headers=["Cache-Control"]))
cases(
    "http/gzip-for-a-big-answer",
    post("configmaps", config_map(a="x" * 200_000)),
    get("configmaps", headers={"Accept-Encoding": "gzip"}, take_headers=["Content-Encoding", "Vary"]),
)
cases(
    "http/no-gzip-for-a-small-answer",
    get(
        "configmaps?labelSelector=a%3Db",
        headers={"Accept-Encoding": "gzip"},
        take_headers=["Content-Encoding"],
    ),
)
cases(
    "http/no-gzip-when-not-asked",
    post("configmaps", config_map(a="x" * 200_000)),
    get("configmaps", headers={"Accept-Encoding": "identity"}, take_headers=["Content-Encoding"]),
)
cases("http/namespace-object-whole", post("/api/v1/namespaces", namespace(), take=WHOLE))
