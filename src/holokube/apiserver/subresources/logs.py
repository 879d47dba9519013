"""pods/log: hollow containers write no logs, so these are made up, and say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.options import parse_bool, parse_int
from holokube.kube.errors import BadRequest, invalid
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_TEXT = "text/plain"


class LogSource(Protocol):
    """Where log lines come from; each is (RFC 3339 time, text)."""

    def lines(self, pod: JsonObject, container: str) -> list[tuple[str, str]]: ...


class SyntheticLogs:
    """One line per thing that is known about the container."""

    def lines(self, pod: JsonObject, container: str) -> list[tuple[str, str]]:
        started = (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
        images = {c["name"]: c.get("image", "") for c in _containers(pod)}
        node = pod["spec"].get("nodeName", "")
        return [
            (started, f"hollow container {container} ({images.get(container, '')}) on node {node}"),
            (started, "this container is simulated and writes no output of its own"),
        ]


def _containers(pod: JsonObject) -> list[JsonObject]:
    spec = pod.get("spec") or {}
    return [
        *(spec.get("initContainers") or []),
        *(spec.get("containers") or []),
        *(spec.get("ephemeralContainers") or []),
    ]


def pod_log(
    registry: Registry, source: LogSource, namespace: str, name: str, query: Mapping[str, str]
) -> tuple[bytes, str]:
    """The log of one container, cut as the query asks."""
    pod = registry.get_stored(registry.resolve("", "v1", "pods"), namespace, name).obj
    _validate(name, query)
    container = _choose(pod, name, query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        # Nobody could have written anything yet.
        return b"", _TEXT
    lines = source.lines(pod, container)
    tail = parse_int(query, "tailLines")
    if tail is not None:
        lines = lines[len(lines) - min(tail, len(lines)) :]
    stamped = bool(parse_bool(query, "timestamps"))
    text = "".join(f"{when} {line}\n" if stamped else f"{line}\n" for when, line in lines).encode()
    limit = parse_int(query, "limitBytes")
    return (text if limit is None else text[:limit]), _TEXT


def _validate(name: str, query: Mapping[str, str]) -> None:
    errors = FieldErrors()
    tail, limit = parse_int(query, "tailLines"), parse_int(query, "limitBytes")
    since = parse_int(query, "sinceSeconds")
    if tail is not None and tail < 0:
        errors.invalid("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        errors.invalid("limitBytes", limit, "must be greater than 0")
    if since is not None and query.get("sinceTime"):
        errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif since is not None and since < 1:
        errors.invalid("sinceSeconds", since, "must be greater than 0")
    if errors:
        raise invalid("", "PodLogOptions", name, errors.causes)


def _choose(pod: JsonObject, name: str, container: str) -> str:
    spec = pod.get("spec") or {}
    if container:
        if container not in [c["name"] for c in _containers(pod)]:
            raise BadRequest(f"container {container} is not valid for pod {name}")
        return container
    mains = [c["name"] for c in spec.get("containers") or []]
    if len(mains) == 1:
        return str(mains[0])
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if default in mains:
        return str(default)
    message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(mains)}]"
    inits = [c["name"] for c in spec.get("initContainers") or []]
    if inits:
        message += f" or one of the init containers: [{' '.join(inits)}]"
    raise BadRequest(message)
