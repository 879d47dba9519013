"""Upstream's configuration of the kwok provider, as it stands in a ConfigMap under the key ``config``.

Upstream reads it as Go reads JSON: keys in any case, unknown ones passed over in silence. They are passed over here,
too, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holokube.base.errors import ConfigError
from holokube.cluster_autoscaler.cloud.kwok.grouping import Grouping
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems, did_you_mean
from holokube.kube.yaml_text import YamlError, load_documents

CONFIG_KEY = "config"
TEMPLATES_KEY = "templates"
API_VERSION = "v1alpha1"
FROM_CONFIG_MAP = "configmap"
FROM_CLUSTER = "cluster"
_HINT = "It needs readNodesFrom, nodegroups and, for templates in a ConfigMap, configmap.name, as upstream has them."

_FIELDS = ("apiVersion", "readNodesFrom", "nodegroups", "nodes", "configmap", "kwok")
_NODEGROUPS = ("fromNodeLabelKey", "fromNodeAnnotationKey")
_NODES = ("gpuConfig", "skipTaint")
_GPU = ("gpuLabelKey", "availableGPUTypes")
_CONFIG_MAP = ("name", "key")


@dataclass(frozen=True, slots=True)
class KwokConfig:
    """What the configuration says."""

    read_nodes_from: str = FROM_CLUSTER
    grouping: Grouping = field(default_factory=Grouping)
    skip_taint: bool = False
    gpu_label: str = ""
    gpu_types: frozenset[str] = frozenset()
    config_map_name: str = ""
    config_map_key: str = TEMPLATES_KEY


def parse_config(text: str, where: str, problems: Problems) -> KwokConfig:
    """Reads the text of a configuration."""
    try:
        documents = load_documents(text.encode())
    except YamlError as error:
        raise ConfigError(f"{where} is neither YAML nor JSON: {' '.join(str(error).split())}", hint=_HINT) from error
    content = documents[0] if documents else None
    if not isinstance(content, Mapping):
        raise ConfigError(f"{where} holds no configuration", hint=_HINT)
    reader = _Reader(where, problems)
    config = reader.config(reader.part(content, "", _FIELDS))
    problems.raise_errors(where, _HINT)
    return config


class _Reader:
    """Reads parts of a configuration and notes what is wrong with them."""

    def __init__(self, where: str, problems: Problems) -> None:
        self._where = where
        self._problems = problems

    def config(self, top: Mapping[str, Any]) -> KwokConfig:
        version = self.text(top, "apiVersion", "")
        if version not in ("", API_VERSION):
            self._problems.warn(f"{self._where}: apiVersion is {version!r}, where {API_VERSION} is known")
        source = self.text(top, "readNodesFrom", "")
        if source not in (FROM_CONFIG_MAP, FROM_CLUSTER):
            self._problems.error(f"readNodesFrom is {source!r}: it must be {FROM_CONFIG_MAP} or {FROM_CLUSTER}")
        place = self.part(top.get("configmap"), "configmap.", _CONFIG_MAP)
        name, key = self.text(place, "name", "configmap."), self.text(place, "key", "configmap.")
        if source == FROM_CONFIG_MAP and not name:
            self._problems.error("configmap.name is missing: it names the ConfigMap that holds the templates")
        nodes = self.part(top.get("nodes"), "nodes.", _NODES)
        label, types = self._gpu(nodes.get("gpuConfig"))
        for name_ in top.get("kwok") or {}:
            self._problems.warn(
                f"{self._where}: kwok.{name_} does nothing: nodes are brought to life by `holokube fleet`, or by kwok"
            )
        return KwokConfig(
            read_nodes_from=source,
            grouping=self._grouping(top),
            skip_taint=self._skip_taint(nodes),
            gpu_label=label,
            gpu_types=types,
            config_map_name=name,
            config_map_key=key or TEMPLATES_KEY,
        )

    def part(self, value: Any, path: str, known: tuple[str, ...]) -> dict[str, Any]:
        """An object with its keys as they should be written."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._problems.error(f"{path.rstrip('.') or 'it'} must be an object, not {value!r}")
            return {}
        by_lower = {name.lower(): name for name in known}
        found: dict[str, Any] = {}
        for key, content in value.items():
            name = by_lower.get(str(key).lower())
            if name is None:
                self._problems.warn(f"{self._where}: unknown field {path}{key}{did_you_mean(str(key), known)}")
            else:
                found[name] = content
        return found

    def text(self, part: Mapping[str, Any], name: str, path: str) -> str:
        value = part.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._problems.error(f"{path}{name} must be a string, not {value!r}")
            return ""
        return value.strip()

    def _grouping(self, top: Mapping[str, Any]) -> Grouping:
        part = self.part(top.get("nodegroups"), "nodegroups.", _NODEGROUPS)
        label = self.text(part, "fromNodeLabelKey", "nodegroups.")
        annotation = self.text(part, "fromNodeAnnotationKey", "nodegroups.")
        if bool(label) == bool(annotation):
            how = "both are given" if label else "none is"
            self._problems.error(
                f"nodegroups needs one of fromNodeLabelKey and fromNodeAnnotationKey, but {how}"
            )
            return Grouping()
        return Grouping(label, annotation)

    def _skip_taint(self, nodes: Mapping[str, Any]) -> bool:
        value = nodes.get("skipTaint")
        if value is not None and not isinstance(value, bool):
            self._problems.error(f"nodes.skipTaint must be true or false, not {value!r}")
        return value is True

    def _gpu(self, value: Any) -> tuple[str, frozenset[str]]:
        if value is None:
            return "", frozenset()
        part = self.part(value, "nodes.gpuConfig.", _GPU)
        label, types = self.text(part, "gpuLabelKey", "nodes.gpuConfig."), part.get("availableGPUTypes")
        if not label or types is None:
            self._problems.error("nodes.gpuConfig needs both gpuLabelKey and availableGPUTypes")
        elif not isinstance(types, Mapping):
            self._problems.error("nodes.gpuConfig.availableGPUTypes must be an object whose keys are the types")
        else:
            return label, frozenset(map(str, types))
        return label, frozenset()
