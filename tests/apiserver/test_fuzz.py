"""Thousands of malformed requests: each is answered, none with a 500, and the server is well afterwards.

Set HOLOKUBE_FUZZ_ROUNDS to fuzz for longer and HOLOKUBE_FUZZ_SEED to go other ways; a failure prints both.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holokube.apiserver.resources import Served as Found
from tests.apiserver.wire_client import Answer, Served, WireClient, serving
from tests.clients import manifests

ROUNDS = int(os.environ.get("HOLOKUBE_FUZZ_ROUNDS", "1"))
SEED = os.environ.get("HOLOKUBE_FUZZ_SEED", "holokube")
REQUESTS = 12_000 * ROUNDS
GROWTH_MAX_BYTES = 200 * 1024 * 1024
# Upstream defines these: a pod with two budgets, a kubelet that is not there, a version from the future.
DEFINED_ERRORS = ("more than one PodDisruptionBudget", "no kubelet of node", "Too large resource version")

JSON_TYPE = b"application/json"
PATCH_TYPES = (
    b"application/json-patch+json", b"application/merge-patch+json", b"application/strategic-merge-patch+json",
    b"application/apply-patch+yaml",
)  # fmt: skip
GROUP = "fuzz.example.com"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def check(sent: str, answer: Answer | None) -> None:
    assert answer is not None, f"the connection was closed without an answer to {sent}"
    if answer.code < 500:
        return
    text = answer.body.decode(errors="replace")
    assert any(known in text for known in DEFINED_ERRORS), f"{answer.code} {text[:500]} to {sent}"


def assert_well(served: Served) -> None:
    """The server still answers, creates, watches and forgets."""
    client = WireClient(served)
    body = json.dumps({"metadata": {"generateName": "well-"}}).encode()
    path = b"/api/v1/namespaces/default/configmaps"
    made = client.request(b"POST", path, [(b"Content-Type", JSON_TYPE)], body)
    assert made is not None and made.code == 201, made
    name = json.loads(made.body)["metadata"]["name"].encode()
    watched = client.request(b"GET", path + b"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=" + name)
    assert watched is not None and b'"ADDED"' in watched.body
    gone = client.request(b"DELETE", path + b"/" + name)
    assert gone is not None and gone.code == 200
    client.close()


# -- seeded mutations: fast, many ---------------------------------------------------------------------------------

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, -0.0, 1e308, "", " ", "a", "A_b", "-", "0",
    "\u0000", "\uffff", "é", "1Gi", "-5m", "1e3", "100%", "250%", "x" * 300, "2026-01-01T00:00:00Z", "9999-12-31T99",
    [], [None], [[]], [{}], [1, "a", None], {}, {"": ""}, {"a": None}, {"name": 1}, {"$patch": "delete"},
    {"$patch": "replace"}, {"$retainKeys": ["a"]}, {"$deleteFromPrimitiveList/x": [1]}, {"matchLabels": {"a": 1}},
    {"matchExpressions": [{"key": "a", "operator": "In"}]}, {"$setElementOrder/containers": [{"name": "x"}]},
    "a/b/c", "kubernetes.io/x", "../../etc", "%s%n", "${x}", "/", "//", "\ud7ff", "٣",
)  # fmt: skip

ODD_OF_TYPE: dict[type, tuple[Any, ...]] = {
    kind: tuple(value for value in ODD_VALUES if type(value) is kind) for kind in (str, int, bool, dict, list)
}

BODIES = [
    *(yaml.safe_load(text) for text in (
        manifests.DEPLOYMENT, manifests.pod("p", "n"), manifests.node("n"), manifests.CLAIM, manifests.STATEFUL_SET,
        manifests.DAEMON_SET, manifests.widgets(GROUP),
    )),
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}],
     "selector": {"a": "b"}, "type": "NodePort", "clusterIP": "10.96.0.9"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "data": {"a": "Yg=="}, "type": "Opaque"},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fuzzed"}},
    {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"},
     "reason": "r", "message": "m", "type": "Normal", "count": 1},
    {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "eventTime":
     "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "a",
     "reason": "r", "regarding": {"kind": "Pod", "name": "p"}, "type": "Normal"},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"backoffLimit": 1, "template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}},
    {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}, "spec": {"schedule": "* * * * *",
     "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never",
                                                    "containers": [{"name": "c", "image": "i"}]}}}}}},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {
        "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                              "averageUtilization": 50}}}],
        "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}},
    {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h1"}, "spec": {
        "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 5},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {
        "holderIdentity": "me", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}},
    {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1000"}}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "p/q"},
    {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"rules": [
        {"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
            "service": {"name": "s", "port": {"number": 80}}}}]}}]}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n"}, "spec": {
        "podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 80}]}]}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "r"}, "spec": {"devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
    {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
     "metadata": {"name": "v"}, "webhooks": [{"name": "a.example.com", "sideEffects": "None",
     "failurePolicy": "Ignore", "timeoutSeconds": 1, "admissionReviewVersions": ["v1"],
     "clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": [{"apiGroups": ["nobody.example.com"],
     "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}},
    {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "a.b.c"}},
    {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "u",
     "resourceAttributes": {"verb": "get", "resource": "pods"}}},
]  # fmt: skip

SUBRESOURCE_BODIES: dict[str, Any] = {
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}},
    "binding": {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {"gracePeriodSeconds": 0}},
    "token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
}
SUBRESOURCES = ("status", "scale", "binding", "eviction", "log", "resize", "ephemeralcontainers", "token", "finalize",
                "approval", "proxy", "exec", "nonsense")  # fmt: skip

SELECTORS = (
    "a=b", "a in (b,c)", "!a", "a,b", "a notin (x),c!=d", "a in b", "a=b=c", "=", ",", "(", "a in (", "a>1", "a<x",
    "é=ü", "a=" + "b" * 70, "metadata.name=x", "metadata.name!=x,metadata.namespace=default", "spec.nodeName=n",
    "status.phase=Running", "spec.nothing=1", "metadata.name", "a\\,b=c", "involvedObject.name=p", "type=Opaque", "",
)  # fmt: skip

QUERY = {
    "labelSelector": SELECTORS, "fieldSelector": SELECTORS,
    "limit": ("0", "1", "3", "-1", "x", "9" * 30, "1.5", ""),
    "continue": ("", "x", "eyJ2IjoxfQ", "=" * 9, "%%%", "AAAA"),
    "resourceVersion": ("", "0", "1", "5", "99999999", "x", "-1", "9" * 5000), "timeoutSeconds": ("-1",),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""), "sendInitialEvents": ("true", "false", "x"),
    "allowWatchBookmarks": ("true", "1", "maybe"), "watch": ("true", "0", "1", "false"), "dryRun": ("All", "x", ""),
    "fieldManager": ("me", "x" * 200, "\n", ""), "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x"), "pretty": ("true", "x"), "gracePeriodSeconds": ("0", "-1", "x", "9" * 30),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"), "orphanDependents": ("true", "x"),
    "includeObject": ("Object", "None", "Metadata", "x"), "container": ("main", "x"), "tailLines": ("1", "-1", "x"),
    "limitBytes": ("1", "0"), "sinceSeconds": ("1", "x"), "follow": ("false",), "timeout": ("1s", "x"),
    "\ufffd": ("x",),
}  # fmt: skip

ACCEPTS = (
    b"application/json", b"*/*", b"application/yaml", b"text/html", b"", b";;;", b"application/json;q=x",
    b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", b"application/vnd.kubernetes.protobuf",
    b"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", b"application/json;as=Table;v=v9;g=x",
    b"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", b"\xff\xfe", b"a/b," * 500,
    b"application/yaml;as=Table;v=v1;g=meta.k8s.io",
)  # fmt: skip

CONTENT_TYPES = (
    JSON_TYPE, JSON_TYPE, JSON_TYPE, b"application/yaml", b"application/json; charset=utf-8", b"", b"text/plain",
    b"application/vnd.kubernetes.protobuf", b"application/cbor", b"\xff", *PATCH_TYPES,
)  # fmt: skip


class Mutator:
    """Draws requests that are nearly right."""

    def __init__(self, served: Served, seed: str) -> None:
        self.random = random.Random(seed)
        table = served.server.registry.table
        self._subresources = {resource.plural: tuple(Found(resource, next(iter(resource.versions))).info.subresources)
                              for resource in table}  # fmt: skip
        self.served = [
            (resource.group, version, resource.plural, resource.namespaced)
            for resource in table
            for version in resource.versions
        ]
        self._by_kind = {
            (f"{resource.group}/{version}" if resource.group else version, resource.kind): (
                resource.group, version, resource.plural, resource.namespaced,
            )
            for resource in table
            for version in resource.versions
        }  # fmt: skip

    def collection(self, body: Any) -> bytes:
        group, version, plural, namespaced = self._by_kind[body["apiVersion"], body["kind"]]
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{prefix}{'/namespaces/default' if namespaced else ''}/{plural}".encode()

    def request(self) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
        draw = self.random
        body: Any = copy.deepcopy(draw.choice(BODIES))
        where = self._by_kind.get((body.get("apiVersion", ""), body.get("kind", "")))
        if where is None or draw.random() < 0.05:
            where = draw.choice(self.served)
        method = draw.choices((b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"), (15, 40, 15, 25, 6, 1))[0]
        name = str((body.get("metadata") or {}).get("name", "x"))
        if method == b"POST" and name != "x" and draw.random() < 0.5:
            body["metadata"]["generateName"] = body["metadata"].pop("name") + "-"
        sub = ""
        if draw.random() < 0.2:
            sub = draw.choice(self._subresources.get(where[2]) or SUBRESOURCES)
            if method == b"POST" and sub not in SUBRESOURCE_BODIES:
                method = draw.choice((b"PUT", b"PATCH"))
        if sub in SUBRESOURCE_BODIES and draw.random() < 0.7:
            body = copy.deepcopy(SUBRESOURCE_BODIES[sub])
        target = self._path(where, "" if method == b"POST" and not sub else name, sub) + self._query()
        if method == b"DELETE" and body.get("kind") == "CustomResourceDefinition":
            method = b"GET"  # What hangs on it is to be fuzzed, too.
        headers = [(b"Accept", draw.choice(ACCEPTS))] if draw.random() < 0.15 else []
        content = b""
        if method != b"GET":
            kind = draw.choice(PATCH_TYPES) if method == b"PATCH" else JSON_TYPE
            content = self._content(body, operations=kind == PATCH_TYPES[0] and draw.random() < 0.95)
            if kind == PATCH_TYPES[3] and draw.random() < 0.9:
                target += "&fieldManager=fuzz"
            headers.append((b"Content-Type", draw.choice(CONTENT_TYPES) if draw.random() < 0.05 else kind))
        return method, target.encode(), headers, content

    def _path(self, where: tuple[str, str, str, bool], name: str, sub: str) -> str:
        group, version, plural, namespaced = where
        parts = ["apis", group, version] if group else ["api", version]
        if namespaced and self.random.random() < 0.98:
            parts += ["namespaces", self.random.choice(("default",) * 20 + ("none", "kube-system"))]
        parts.append(plural)
        if name and self.random.random() < 0.97:
            parts.append(name)
            if sub:
                parts.append(sub)
        if self.random.random() < 0.02:
            position = self.random.randrange(len(parts) + 1)
            odd = ("", "..", "watch", "namespaces", "%", "é", "a b", "x" * 500)
            parts.insert(position, self.random.choice(odd))
        return "/" + "/".join(quote(part, safe="%") if "%" not in part else part for part in parts)

    def _query(self) -> str:
        pairs = []
        while self.random.random() < 0.25:
            key = self.random.choice(tuple(QUERY))
            value = self.random.choice(QUERY[key])
            pairs.append(f"{quote(key)}={quote(value)}")
        # No watch may outlive its request, or the fuzzer waits for it.
        return "?" + "&".join(["timeoutSeconds=-1", *pairs])

    def _content(self, body: Any, *, operations: bool) -> bytes:
        draw = self.random
        if operations:
            paths = ("/spec", "/metadata/labels/a", "/metadata", "/", "", "/spec/replicas", "/a~2", "/spec/-", "/x/0")
            body = [
                {"op": draw.choice(("add", "remove", "replace", "test", "copy", "move", "x")),
                 "path": draw.choice(paths), "from": draw.choice(paths), "value": draw.choice(ODD_VALUES)}
                for _ in range(draw.randrange(3))
            ]  # fmt: skip
        for _ in range(draw.choice((0, 1, 1, 1, 2, 4))):
            body = self._mutated(body)
        content = json.dumps(body, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
        if draw.random() < 0.03:
            cut = bytearray(content)
            for _ in range(draw.randrange(1, 5)):
                cut[draw.randrange(len(cut))] = draw.randrange(256)
            content = bytes(cut[: draw.randrange(1, len(cut) + 1)])
        return content

    def _mutated(self, value: Any) -> Any:
        """The value with one part of it, anywhere, changed into something odd, copied or left out."""
        draw = self.random
        if isinstance(value, dict) and value and draw.random() < 0.9:
            key = draw.choice(tuple(value))
            if key in ("apiVersion", "kind") and len(value) > 2 and draw.random() < 0.95:
                # A wrong kind ends everything at the front door.
                rest = self._mutated({k: v for k, v in value.items() if k != key})
                return {key: value[key], **rest} if isinstance(rest, dict) else rest
            roll = draw.random()
            if roll < 0.08:
                return {k: v for k, v in value.items() if k != key}
            if roll < 0.14:
                return {**value, str(draw.choice(("unknown", "", "é", key + "x", "$patch"))): draw.choice(ODD_VALUES)}
            return {**value, key: self._mutated(value[key])}
        if isinstance(value, list) and value and draw.random() < 0.9:
            index = draw.randrange(len(value))
            if draw.random() < 0.1:
                return [*value, value[index]]
            return [*value[:index], self._mutated(value[index]), *value[index + 1 :]]
        if draw.random() < 0.75:
            # Of the same type, or the decoder is all that is tested.
            return copy.deepcopy(draw.choice(ODD_OF_TYPE.get(type(value), ODD_VALUES)))
        return copy.deepcopy(draw.choice(ODD_VALUES))


def test_thousands_of_nearly_right_requests_are_answered(served: Served) -> None:
    process = psutil.Process()
    client = WireClient(served)
    codes: Counter[int] = Counter()
    definition = json.dumps(yaml.safe_load(manifests.widgets(GROUP))).encode()
    path = b"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = client.request(b"POST", path, [(b"Content-Type", JSON_TYPE)], definition)
    assert made is not None and made.code == 201, made
    mutator = Mutator(served, SEED)
    for body in BODIES:
        # Something to read, change and delete.
        client.request(b"POST", mutator.collection(body), [(b"Content-Type", JSON_TYPE)], json.dumps(body).encode())
    before_bytes = process.memory_info().rss
    for number in range(REQUESTS):
        method, target, headers, body = mutator.request()
        answer = client.request(method, target, headers, body)
        sent = f"request {number} of seed {SEED!r}: {method!r} {target!r} {headers} {body!r}"
        check(sent, answer)
        assert answer is not None
        codes[answer.code] += 1
    client.close()
    # The fuzzer must get past the front door, or it tests nothing but the door.
    assert all(codes[code] > REQUESTS // 50 for code in (200, 201, 400, 422)), codes
    assert process.memory_info().rss - before_bytes < GROWTH_MAX_BYTES * ROUNDS
    assert_well(served)


# -- hypothesis: few, but it looks for the smallest -------------------------------------------------------------------

SETTINGS = settings(
    max_examples=150 * ROUNDS,
    deadline=None,
    derandomize=SEED == "holokube",
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
COLLECTIONS = st.sampled_from(
    [b"/api/v1/namespaces/default/pods", b"/api/v1/nodes", b"/apis/apps/v1/namespaces/default/deployments",
     b"/api/v1/namespaces", b"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
     b"/api/v1/namespaces/x/bindings", b"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
     b"/api/v1/namespaces/default/pods/x/eviction"]
)  # fmt: skip


@SETTINGS
@given(path=COLLECTIONS, body=json_values, meta=st.none() | json_values)
def test_any_json_value_is_a_body(served: Served, path: bytes, body: Any, meta: Any) -> None:
    client = WireClient(served)
    if isinstance(body, dict) and meta is not None:
        body = {**body, "metadata": meta}
    raw = json.dumps(body).encode()
    check(f"POST {path!r} {raw!r}", client.request(b"POST", path, [(b"Content-Type", JSON_TYPE)], raw))
    client.close()


@SETTINGS
@given(kind=st.sampled_from(PATCH_TYPES), patch=json_values)
def test_any_json_value_is_a_patch(served: Served, kind: bytes, patch: Any) -> None:
    client = WireClient(served)
    path = b"/api/v1/namespaces/default/services/kubernetes?fieldManager=fuzz&dryRun=All"
    raw = json.dumps(patch).encode()
    check(f"PATCH {kind!r} {raw!r}", client.request(b"PATCH", path, [(b"Content-Type", kind)], raw))
    client.close()


@SETTINGS
@given(raw=st.binary(min_size=1, max_size=200), kind=st.sampled_from(CONTENT_TYPES), envelope=st.booleans())
def test_any_bytes_are_a_body(served: Served, raw: bytes, kind: bytes, envelope: bool) -> None:
    client = WireClient(served)
    if envelope:
        raw = b"k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodSpec"[:9] + b"v1\x12\x03Pod\x12" + bytes([len(raw) % 128]) + raw
    path = b"/api/v1/namespaces/default/pods"
    check(f"POST {raw!r}", client.request(b"POST", path, [(b"Content-Type", kind)], raw))
    client.close()


@SETTINGS
@given(labels=st.text(max_size=30), fields=st.text(max_size=30), rest=st.text(max_size=30))
def test_any_text_is_a_selector_or_a_path(served: Served, labels: str, fields: str, rest: str) -> None:
    client = WireClient(served)

    def encoded(text: str) -> str:
        return quote(text.encode("utf-8", "replace"), safe="")

    selectors = f"?labelSelector={encoded(labels)}&fieldSelector={encoded(fields)}"
    for target in (f"/api/v1/pods{selectors}", f"/apis/{encoded(rest)}", f"/api/v1/pods/{encoded(rest)}{selectors}"):
        check(f"GET {target}", client.request(b"GET", target.encode()))
    client.close()


@SETTINGS
@given(
    data=st.binary(min_size=1, max_size=300),
    tail=st.sampled_from([b"", b"\r\n\r\n", b"\n\n", b" HTTP/1.1\r\n\r\n"]),
)
def test_any_bytes_on_the_socket_do_no_harm(served: Served, data: bytes, tail: bytes) -> None:
    raw = served.connect()
    raw.sendall(data + tail)
    raw.close()


def test_the_server_is_well_after_all_that(served: Served) -> None:
    assert_well(served)
