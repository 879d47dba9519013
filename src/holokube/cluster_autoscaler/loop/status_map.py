"""The status ConfigMap, and the events that are told on it."""

from __future__ import annotations

from typing import Literal

from holokube.base.errors import TransportError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS
from holokube.cluster_autoscaler.actuation.ports import Recorder
from holokube.cluster_autoscaler.cluster_state.status import initial_status, last_updated_text, status_text
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.errors import ApiError, NotFound
from holokube.kube.types import JsonObject

LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"

_log = get_logger("holokube.cluster_autoscaler.loop")


class StatusMap:
    """Writes the status once per turn. With ``--write-status-configmap=false`` there is none, and no events on it."""

    def __init__(self, client: Client, recorder: Recorder, options: AutoscalerOptions) -> None:
        self._client = client
        self._recorder = recorder
        self._is_active = options.write_status_configmap
        self._name = options.status_config_map_name
        self._namespace = options.namespace
        self._object: JsonObject | None = None

    def event(self, type: Literal["Normal", "Warning"] | str, reason: str, message: str, /) -> None:
        """Something happened to the cluster as a whole."""
        _log.info(message, reason=reason) if type == "Normal" else _log.warning(message, reason=reason)
        if self._is_active and self._object is not None:
            self._recorder.event(self._object, type, reason, message)

    async def begin(self, now_s: float) -> None:
        """Make the ConfigMap, so that events have something to be told on. What is there already is overwritten."""
        await self.write(initial_status(), now_s)

    async def write(self, status: JsonObject, now_s: float) -> None:
        """Publish a status. A failure is logged; the next turn tries again."""
        if not self._is_active:
            return
        time = last_updated_text(now_s)
        try:
            self._object = await self._put(status_text(status, time), time)
        except (ApiError, TransportError) as error:
            _log.warning("The status could not be written", config_map=f"{self._namespace}/{self._name}",
                         error=str(error))

    async def delete(self) -> None:
        """Remove it at the end."""
        if not self._is_active:
            return
        try:
            await self._client.delete(CONFIG_MAPS, self._name, self._namespace)
        except NotFound:
            pass
        except (ApiError, TransportError) as error:
            _log.warning("The status could not be removed", error=str(error))

    async def _put(self, text: str, time: str) -> JsonObject:
        try:
            known = await self._client.get(CONFIG_MAPS, self._name, self._namespace)
        except NotFound:
            return await self._client.create(CONFIG_MAPS, {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": self._name, "namespace": self._namespace, "annotations": {LAST_UPDATED: time}},
                "data": {"status": text},
            }, self._namespace)
        annotations = {**(known["metadata"].get("annotations") or {}), LAST_UPDATED: time}
        return await self._client.update(CONFIG_MAPS, {
            **known, "metadata": {**known["metadata"], "annotations": annotations},
            "data": {**(known.get("data") or {}), "status": text},
        }, self._namespace)
