"""A problem in one object: ``nodePools``, ``pods``, ``existingNodes``, ``pdbs``, ``daemonSetPods``, ``options``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.base.errors import UsageError
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.plan.given import Given
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.timeformat import TimeFormatError, parse_time
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import Catalog

_LISTS: Final = ("nodePools", "pods", "existingNodes", "pdbs", "daemonSetPods")
_OPTIONS: Final = ("concurrency", "listInstanceTypes", "now", "spotToSpotConsolidation")
_HINT: Final = "A problem has nodePools, pods, existingNodes, pdbs, daemonSetPods and options."


def is_case(obj: Any) -> bool:
    """Whether an object is a problem and not a Kubernetes object."""
    return isinstance(obj, Mapping) and "nodePools" in obj and "kind" not in obj


def read_case(obj: Mapping[str, Any], source: str, catalog: Catalog) -> Given:
    """The problem in an object; UsageError, naming the field, if it makes no sense."""
    for field in obj:
        if field not in (*_LISTS, "options"):
            raise UsageError(f"{source}: a problem has no field {field!r}", hint=_HINT)
    lists = {field: _list(obj, field, source) for field in _LISTS}
    options = obj.get("options") or {}
    for field in options:
        if field not in _OPTIONS:
            raise UsageError(f"{source}: there is no option {field!r}", hint=f"There are {', '.join(_OPTIONS)}.")
    try:
        pools = tuple(map(NodePool.of, lists["nodePools"]))
        now_s = parse_time(options["now"]).timestamp() if options.get("now") else 0.0
    except (ValueError, TimeFormatError) as error:
        raise UsageError(f"{source}: {error}", hint="Correct the field that is named.") from error
    pods = tuple(lists["pods"])
    return Given(
        pools=pools,
        catalog=catalog,
        pods=pods,
        daemon_pods=tuple(lists["daemonSetPods"]),
        nodes=tuple(_node(entry, f"{source}: existingNodes[{n}]") for n, entry in enumerate(lists["existingNodes"])),
        pdbs=tuple(lists["pdbs"]),
        now_s=now_s,
        spot_to_spot=options.get("spotToSpotConsolidation"),
        listed_types=options.get("listInstanceTypes"),
        wants_disruption=bool(options.get("now")) or (bool(lists["existingNodes"]) and not pods),
        is_case=True,
    )


def _list(obj: Mapping[str, Any], field: str, source: str) -> list[JsonObject]:
    found = obj.get(field)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UsageError(f"{source}: {field} must be a list of objects", hint=_HINT)
    for number, one in enumerate(found):
        metadata = one.get("metadata")
        if field != "existingNodes" and not (isinstance(metadata, dict) and metadata.get("name")):
            raise UsageError(f"{source}: {field}[{number}] has no metadata.name", hint="Every object needs a name.")
    return found


def _node(entry: Mapping[str, Any], source: str) -> StateNode:
    node, claim = entry.get("node"), entry.get("nodeClaim")
    if not node and not claim:
        raise UsageError(f"{source} has neither node nor nodeClaim", hint="Give one of them, or both.")
    return StateNode(node or None, claim or None, tuple(entry.get("pods") or ()))
