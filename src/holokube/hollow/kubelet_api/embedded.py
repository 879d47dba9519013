"""The kubelets of a fleet behind the embedded API server of the same process: no socket in between.

``kubectl logs``, ``kubectl get --raw /api/v1/nodes/NAME/proxy/stats/summary`` and ``kubectl top`` work on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from holokube.apiserver.metrics_api import Amounts, Measurement
from holokube.apiserver.registry import Registry
from holokube.apiserver.subresources.logs import TextStream
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.view import KubeletView, node_start_s
from holokube.hollow.usage import Usage
from holokube.kube.types import JsonObject

RESOLUTION_S = 15.0
"""How often metrics-server measures, by default; so long is also the window of an average."""


class HollowNodeProxy:
    """A ``NodeProxy``: asks the kubelet of a node."""

    def __init__(self, api: KubeletApi) -> None:
        self._api = api

    async def get(self, node: str, path: str, query: Mapping[str, str]) -> tuple[bytes, str] | TextStream:
        return self._api.answer(node, path, query)


class HollowMetrics:
    """A ``MetricsSource`` as metrics-server would be: it measures every 15 seconds, on the clock.

    A pod shows up with its first full window, and so does a node. One whose kubelet does not answer is absent.
    """

    def __init__(self, view: KubeletView, resolution_s: float = RESOLUTION_S) -> None:
        self._view = view
        self._resolution_s = resolution_s

    def _window(self) -> tuple[float, float]:
        end_s = self._view.now_s // self._resolution_s * self._resolution_s
        return end_s - self._resolution_s, end_s

    def measure_node(self, node: JsonObject) -> Measurement | None:
        begin_s, end_s = self._window()
        if not self._view.answers(node["metadata"]["name"]) or node_start_s(node) > begin_s:
            return None
        return Measurement(
            end_s, self._resolution_s, amounts=_amounts(self._view.node_average(node, begin_s, end_s))
        )

    def measure_pod(self, pod: JsonObject) -> Measurement | None:
        node = (pod.get("spec") or {}).get("nodeName")
        if not node or not self._view.answers(node):
            return None
        begin_s, end_s = self._window()
        uses = [use for use in self._view.containers(pod) if use.start_s <= end_s]
        # With a container too young to have an average, metrics-server leaves the whole pod out.
        if not uses or any(use.start_s > begin_s for use in uses):
            return None
        averages = {use.name: _amounts(use.average(begin_s, end_s)) for use in uses}
        return Measurement(end_s, self._resolution_s, containers=averages)


def _amounts(usage: Usage) -> Amounts:
    return Amounts(usage.cpu_nano, usage.memory_bytes)


def attach(registry: Registry, api: KubeletApi, *, metrics: bool = True) -> None:
    """Has an embedded API server ask these kubelets; without ``metrics`` there is no metrics.k8s.io."""
    registry.subresources.logs = api.logs
    registry.subresources.node_proxy = HollowNodeProxy(api)
    registry.metrics.use(HollowMetrics(api.view) if metrics else None)
