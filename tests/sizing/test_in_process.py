"""The laboratory: a DaemonSet over nodes of three sizes, on virtual time, without a webhook."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import DAEMON_SETS, PODS
from holokube.kube.errors import Forbidden
from holokube.sizing.in_process import install
from holokube.testing import Cluster
from tests.kube.sizing.pods import annotated, container, daemon
from tests.sizing.worlds import make_nodes

JsonObject = dict[str, Any]


def daemon_set() -> JsonObject:
    pod = daemon(container("a", {"cpu": "1"}), container("b", {"cpu": "3"}))
    return {
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {
                    "labels": {**pod["metadata"]["labels"], "app": "agent"},
                    "annotations": annotated(request_cpu_fraction="0.1"),
                },
                "spec": {"containers": pod["spec"]["containers"]},
            },
        },
    }


def test_a_daemon_set_over_nodes_of_three_sizes_gets_three_sizes() -> None:
    with Cluster(nodes=0) as cluster:
        install(cluster.registry)
        cluster.run(make_nodes(cluster.client, small="4", mid="16", large="96"))
        cluster.run(cluster.client.create(DAEMON_SETS, daemon_set()))
        cluster.pass_time(30.0)
        pods = cluster.run(cluster.client.list(PODS)).items
        sizes = {
            pod["spec"]["nodeName"]: [one["resources"]["requests"]["cpu"] for one in pod["spec"]["containers"]]
            for pod in pods
            if pod["status"]["phase"] == "Running"
        }
    assert sizes == {"small": ["100m", "300m"], "mid": ["400m", "1200m"], "large": ["2400m", "7200m"]}


def test_trouble_is_a_warning_or_a_refusal() -> None:
    bad = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="10%")
    with Cluster() as cluster:
        install(cluster.registry)
        cluster.run(make_nodes(cluster.client, n="4"))
        made = cluster.run(cluster.client.create(PODS, bad))
        assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
        elsewhere = daemon(container("c", {"cpu": "1"}), node="ghost", request_cpu_fraction="0.1")
        made = cluster.run(cluster.client.create(PODS, elsewhere))
        assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    with Cluster() as cluster:
        install(cluster.registry, "deny")
        cluster.run(make_nodes(cluster.client, n="4"))
        with pytest.raises(Forbidden, match="request-cpu-fraction"):
            cluster.run(cluster.client.create(PODS, bad))
