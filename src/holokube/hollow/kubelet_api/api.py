"""The kubelet's own API, without sockets: from a node, a path and a query to an answer.

Served: ``/healthz``, ``/pods``, ``/runningpods``, ``/stats/summary``, ``/metrics/resource``, ``/containerLogs``. What
needs a process in a container (exec, attach, run, portForward) is refused; what would have to be invented
(``/metrics/cadvisor``, ``/metrics/probes``, ``/configz``, the node's own log files) is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from holokube.apiserver.subresources.logs import LogOptions, TextStream, container_log
from holokube.hollow.kubelet_api.container_logs import HollowLogs
from holokube.hollow.kubelet_api.statistics import PROMETHEUS_TEXT, resource_metrics, summary
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.usage import started_containers
from holokube.kube.errors import ApiError, NotFound
from holokube.kube.types import JsonObject

JSON = "application/json"
NO_PROCESSES = "hollow pods have no processes"
_NEEDS_PROCESSES = frozenset({"exec", "attach", "run", "portForward"})
_KWOK_METRICS = "metrics/nodes/"


class NoProcesses(ApiError):
    """Somebody wants into a container."""

    code = 501
    reason = "NotImplemented"


class KubeletApi:
    """The kubelets of all nodes of a process."""

    def __init__(self, view: KubeletView) -> None:
        self.view = view
        self.logs = HollowLogs(view)

    def node_in(self, path: str) -> tuple[str, str]:
        """The node that a path names, or that its pod is on, and the path on that node; "" for none.

        ``/nodes/NAME/...``, kwok's ``/metrics/nodes/NAME/...``, ``/containerLogs/NAMESPACE/POD/CONTAINER``.
        """
        path = path.strip("/")
        for prefix in ("nodes/", _KWOK_METRICS):
            if path.startswith(prefix):
                name, _, rest = path.removeprefix(prefix).partition("/")
                return name, rest
        parts = path.split("/")
        if parts[0] in {"containerLogs", *_NEEDS_PROCESSES} and len(parts) >= 3:
            pod = self.view.pod(parts[1], parts[2])
            if pod is not None:
                return str(pod["spec"].get("nodeName") or ""), path
        return "", path

    def answer(self, node: str, path: str, query: Mapping[str, str]) -> tuple[bytes, str] | TextStream:
        """Body and media type, or a stream; an ApiError otherwise."""
        path = path.strip("/")
        parts = path.split("/")
        if parts[0] in _NEEDS_PROCESSES:
            raise NoProcesses(f"{NO_PROCESSES}: {parts[0]} is not possible")
        if path == "healthz":
            self.view.node(node)
            return b"ok", "text/plain; charset=utf-8"
        if path in ("pods", "runningpods"):
            self.view.node(node)
            return orjson.dumps(self._pods(node) if path == "pods" else self._running_pods(node)), JSON
        if path == "stats/summary":
            return orjson.dumps(summary(self.view, self.view.node(node)), option=orjson.OPT_INDENT_2), JSON
        if path == "metrics/resource":
            return resource_metrics(self.view, self.view.node(node)), PROMETHEUS_TEXT
        if parts[0] == "containerLogs" and len(parts) == 4:
            self.view.node(node)
            return self._container_log(node, (parts[1], parts[2], parts[3]), query)
        raise NotFound(f"a hollow kubelet does not serve /{path}")

    def _pods(self, node: str) -> JsonObject:
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.view.pods_on(node)}

    def _running_pods(self, node: str) -> JsonObject:
        """What a container runtime would know of them."""
        items = []
        for pod in self.view.pods_on(node):
            running = {name for name, _ in started_containers(pod)}
            if not running:
                continue
            meta, spec = pod["metadata"], pod["spec"]
            containers = [
                {"name": c["name"], "image": c.get("image", ""), "resources": {}}
                for c in (*(spec.get("initContainers") or ()), *spec["containers"])
                if c["name"] in running
            ]
            items.append(
                {
                    "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
                    "spec": {"containers": containers},
                    "status": {},
                }
            )
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}

    def _container_log(
        self, node: str, which: tuple[str, str, str], query: Mapping[str, str]
    ) -> tuple[bytes, str] | TextStream:
        namespace, name, container = which
        pod = self.view.pod(namespace, name)
        if pod is None or pod["spec"].get("nodeName") != node:
            raise NotFound(f'pod "{name}" not found in namespace "{namespace}" on node "{node}"')
        known = [
            c["name"]
            for field in ("containers", "initContainers", "ephemeralContainers")
            for c in pod["spec"].get(field) or ()
        ]
        if container not in known:
            raise NotFound(f'container "{container}" not found in pod "{name}"')
        return container_log(self.logs, pod, container, LogOptions.parse(name, query, self.view.now_s))
