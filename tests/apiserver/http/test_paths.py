from __future__ import annotations

import pytest

from holokube.apiserver.http.paths import ResourcePath, parse_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ResourcePath("", "v1", "pods")),
        ("/api/v1/namespaces", ResourcePath("", "v1", "namespaces")),
        ("/api/v1/namespaces/default", ResourcePath("", "v1", "namespaces", name="default")),
        ("/api/v1/namespaces/x/status", ResourcePath("", "v1", "namespaces", name="x", subresource="status")),
        ("/api/v1/namespaces/x/finalize", ResourcePath("", "v1", "namespaces", name="x", subresource="finalize")),
        ("/api/v1/namespaces/x/pods", ResourcePath("", "v1", "pods", "x", namespaced=True)),
        ("/api/v1/namespaces/x/pods/p", ResourcePath("", "v1", "pods", "x", "p", namespaced=True)),
        ("/api/v1/namespaces/x/pods/p/log", ResourcePath("", "v1", "pods", "x", "p", "log", namespaced=True)),
        ("/api/v1/nodes/n/proxy/stats/summary", ResourcePath("", "v1", "nodes", "", "n", "proxy", "stats/summary")),
        ("/apis/apps/v1/deployments", ResourcePath("apps", "v1", "deployments")),
        ("/apis/apps/v1/", ResourcePath("apps", "v1")),
        ("/api/v1/watch/namespaces/x/pods", ResourcePath("", "v1", "pods", "x", watch=True, namespaced=True)),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
         ResourcePath("rbac.authorization.k8s.io", "v1", "clusterroles", name="system:node")),
    ],
)  # fmt: skip
def test_a_path_names_a_resource(path: str, expected: ResourcePath) -> None:
    assert parse_path(path) == expected


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/apis/apps", "/version", "/api/v1/pods//log"])
def test_other_paths_do_not(path: str) -> None:
    assert parse_path(path) is None
