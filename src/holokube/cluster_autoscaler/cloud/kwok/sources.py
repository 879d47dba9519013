"""Where templates come from: a file, upstream's two ConfigMaps, or the cluster itself.

``KWOK_TEMPLATES_PATH`` names a file: one Node, a List, several documents, or what ``kubectl get nodes -o yaml`` or
``-o json`` printed. Without it, the ConfigMap that ``KWOK_PROVIDER_CONFIGMAP`` names (``kwok-provider-config``, if
there is one) is read in the namespace ``POD_NAMESPACE``, the pod's own, or the autoscaler's. Without either, the nodes
of the cluster are the templates. With both, the ConfigMap says how and the file says what. ``KWOK_PROVIDER_MODE``,
by which upstream chooses its kubeconfig, has no meaning: the provider talks to the cluster of its client.

Upstream's taint ``kwok-provider=true:NoSchedule`` goes onto nodes where a configuration in a ConfigMap does not skip
it, as upstream does, and onto copies of live nodes, so that no pod of the real cluster is lured to a node where
nothing runs. Templates in a file are taken at their word: whoever writes one can write a taint.

Upstream also has each template run a kube-proxy of 100m, which no node of kwok ever runs. Whoever brings upstream's
configuration gets upstream's answers; all others get nodes as they will be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holokube.apiserver.manifests import Manifests, parse_manifests, read_manifests
from holokube.base.errors import ConfigError, UsageError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS
from holokube.cluster_autoscaler.cloud.kwok.config import (
    CONFIG_KEY,
    FROM_CONFIG_MAP,
    TEMPLATES_KEY,
    KwokConfig,
    parse_config,
)
from holokube.cluster_autoscaler.cloud.kwok.grouping import Template
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject

TEMPLATES_PATH = "KWOK_TEMPLATES_PATH"
CONFIG_MAP = "KWOK_PROVIDER_CONFIGMAP"
POD_NAMESPACE = "POD_NAMESPACE"
DEFAULT_CONFIG_MAP = "kwok-provider-config"
SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_HINT = "Give v1 Node manifests, such as `kubectl get nodes -o yaml` prints."

_log = get_logger("holokube.cluster_autoscaler.kwok")


@dataclass(frozen=True, slots=True)
class Source:
    """Templates and how to read them."""

    templates: list[Template]
    name: str
    """For messages."""
    config: KwokConfig = field(default_factory=KwokConfig)
    taint: bool = True
    is_live: bool = False
    kube_proxy: bool = False
    """Whether templates have room set aside for a kube-proxy."""


async def read_source(
    client: Client,
    nodes: Sequence[JsonObject],
    environ: Mapping[str, str],
    problems: Problems,
    *,
    namespace: str,
    templates: Sequence[JsonObject] | None = None,
) -> Source:
    """The templates that the environment names; ``nodes`` are those of the cluster, ``templates`` come first."""
    path = environ.get(TEMPLATES_PATH, "").strip()
    named = environ.get(CONFIG_MAP, "").strip()
    if templates is not None:
        listed = [Template(node, f"template {number}") for number, node in enumerate(templates, 1)]
        return Source(listed, "the templates", taint=False)
    if path and not named:
        return Source(_file(path, problems), path, taint=False)
    space = _namespace(environ, namespace)
    config = await _config(client, space, named, problems)
    if config is None:
        return Source(_live(nodes), "the cluster's nodes", is_live=True)
    source = Source([], "", config, taint=not config.skip_taint, kube_proxy=True)
    if path:
        return replace(source, templates=_file(path, problems), name=path)
    if config.read_nodes_from == FROM_CONFIG_MAP:
        found, where = await _config_map_templates(client, space, config, problems)
        return replace(source, templates=found, name=where)
    return replace(source, templates=_live(nodes), name="the cluster's nodes", is_live=True)


def _namespace(environ: Mapping[str, str], fallback: str) -> str:
    given = environ.get(POD_NAMESPACE, "").strip()
    if given:
        return given
    try:
        return SERVICE_ACCOUNT_NAMESPACE.read_text().strip() or fallback
    except OSError:
        return fallback


def _live(nodes: Sequence[JsonObject]) -> list[Template]:
    return [Template(node, "in the cluster") for node in nodes]


def _file(path: str, problems: Problems) -> list[Template]:
    try:
        return _nodes_among(read_manifests(path), problems)
    except UsageError as error:
        raise ConfigError(f"{TEMPLATES_PATH}: {error.message}", hint=error.hint) from error


async def _config(client: Client, namespace: str, named: str, problems: Problems) -> KwokConfig | None:
    name = named or DEFAULT_CONFIG_MAP
    where = f"ConfigMap {namespace}/{name}"
    try:
        found = await client.get(CONFIG_MAPS, name, namespace)
    except NotFound:
        if not named:
            _log.info("no configuration for kwok groups: the cluster's nodes are the templates", looked_for=where)
            return None
        raise ConfigError(
            f"there is no {where}", hint=f"{CONFIG_MAP} names it, and {POD_NAMESPACE} its namespace."
        ) from None
    return parse_config(_entry(found, CONFIG_KEY, where), f"{where}, key {CONFIG_KEY}", problems)


async def _config_map_templates(
    client: Client, namespace: str, config: KwokConfig, problems: Problems
) -> tuple[list[Template], str]:
    where = f"ConfigMap {namespace}/{config.config_map_name}"
    try:
        found = await client.get(CONFIG_MAPS, config.config_map_name, namespace)
    except NotFound:
        raise ConfigError(
            f"there is no {where}", hint="configmap.name in the kwok provider's configuration names it."
        ) from None
    key = config.config_map_key
    if key != TEMPLATES_KEY and (TEMPLATES_KEY in (found.get("data") or {})):
        # Upstream reads the field and then takes this key whatever it says.
        problems.warn(f"{where}: configmap.key {key} is ignored, since there is a key {TEMPLATES_KEY}")
        key = TEMPLATES_KEY
    name = f"{where}, key {key}"
    try:
        return _nodes_among(parse_manifests(_entry(found, key, where).encode(), name), problems), name
    except UsageError as error:
        raise ConfigError(error.message, hint=_HINT) from error


def _entry(config_map: JsonObject, key: str, where: str) -> str:
    data: Mapping[str, str] = config_map.get("data") or {}
    if not data.get(key):
        there = ", ".join(sorted(data)) or "none"
        raise ConfigError(f"{where} has no key {key}, or nothing in it", hint=f"Its keys: {there}.")
    return data[key]


def _nodes_among(manifests: Manifests, problems: Problems) -> list[Template]:
    """The Nodes of a file; other objects are left out, and what is no object at all is an error."""
    found: list[Template] = []
    for index, obj in enumerate(manifests.objects):
        if _is_node(obj):
            found.append(Template(obj, manifests.where(index)))
        elif isinstance(obj, Mapping) and obj.get("kind") and obj.get("apiVersion"):
            problems.warn(f"{manifests.where(index)}: {obj['apiVersion']} {obj['kind']} is no Node and is left out")
        else:
            problems.error(f"{manifests.where(index)}: is no Kubernetes object with apiVersion and kind")
    return found


def _is_node(obj: Any) -> bool:
    return isinstance(obj, Mapping) and (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Node")
