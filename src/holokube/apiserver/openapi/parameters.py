"""Query and path parameters of operations, with our own words about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holokube.kube.types import JsonObject

_QUERY: dict[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "Send BOOKMARK events in a watch, now and then."),
    "command": ("string", "Command to run, and its arguments; may be given several times."),
    "container": ("string", "Name of the container; may be left out if the pod has only one."),
    "continue": ("string", "Token of an earlier answer, to get the page after it."),
    "dryRun": ("string", "With All, go through every step but store nothing."),
    "fieldManager": ("string", "Name under which the changed fields are recorded, at most 128 characters."),
    "fieldSelector": ("string", "Restrict to objects whose fields match, such as spec.nodeName=n1."),
    "fieldValidation": ("string", "What to do about unknown or duplicate fields: Strict, Warn or Ignore."),
    "follow": ("boolean", "Go on sending lines as they are written."),
    "force": ("boolean", "Take over fields that others own; for apply patches only."),
    "gracePeriodSeconds": ("integer", "Seconds until the object is deleted; zero means at once."),
    "ignoreStoreReadErrorWithClusterBreakingPotential": (
        "boolean",
        "Delete an object even though it cannot be read from the store.",
    ),
    "insecureSkipTLSVerifyBackend": ("boolean", "Do not check the certificate of the kubelet."),
    "labelSelector": ("string", "Restrict to objects whose labels match, such as app=web,tier!=db."),
    "limit": ("integer", "Most objects in one answer; the rest is had with continue."),
    "limitBytes": ("integer", "Most bytes of log to send."),
    "orphanDependents": ("boolean", "Old spelling of propagationPolicy: leave dependents alone."),
    "path": ("string", "Path of the request that is passed on."),
    "ports": ("integer", "Ports to forward."),
    "pretty": ("string", "With true, the answer is indented."),
    "previous": ("boolean", "Log of the container before its last restart."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "How fresh the answer must be, or where a watch begins."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Begin a watch with the objects there are, then a bookmark."),
    "shardSelector": ("string", "Restrict to the objects of one shard."),
    "sinceSeconds": ("integer", "Only lines of the last so many seconds."),
    "stderr": ("boolean", "Connect standard error."),
    "stdin": ("boolean", "Connect standard input."),
    "stdout": ("boolean", "Connect standard output."),
    "stream": ("string", "Which stream of the container: All, Stdout or Stderr."),
    "tailLines": ("integer", "Only the last so many lines."),
    "timeoutSeconds": ("integer", "Seconds after which a list or watch ends."),
    "timestamps": ("boolean", "Put the time before each line."),
    "tty": ("boolean", "Use a terminal."),
    "watch": ("boolean", "Send changes as they happen instead of a list."),
}

LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch",
)  # fmt: skip
WRITE = ("dryRun", "fieldManager", "fieldValidation")
PATCH = (*WRITE, "force")
DELETE = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
    "propagationPolicy",
)  # fmt: skip
DELETE_COLLECTION = (*DELETE, *(name for name in LIST if name not in ("allowWatchBookmarks", "watch")))

# Query parameters of subresources that pass a request on, by the kind of their options.
CONNECT = {
    "PodAttachOptions": ("container", "stderr", "stdin", "stdout", "tty"),
    "PodExecOptions": ("command", "container", "stderr", "stdin", "stdout", "tty"),
    "PodPortForwardOptions": ("ports",),
    "PodProxyOptions": ("path",),
    "ServiceProxyOptions": ("path",),
    "NodeProxyOptions": ("path",),
}
LOG = (
    "container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "previous", "sinceSeconds", "stream",
    "tailLines", "timestamps",
)  # fmt: skip


def query(names: Iterable[str]) -> list[JsonObject]:
    return [
        {
            "name": name,
            "in": "query",
            "description": _QUERY[name][1],
            "schema": {"type": _QUERY[name][0], "uniqueItems": True},
        }
        for name in names
    ]


def path_parameter(name: str, description: str) -> JsonObject:
    return {
        "name": name,
        "in": "path",
        "description": description,
        "required": True,
        "schema": {"type": "string", "uniqueItems": True},
    }


def in_order(parameters: Iterable[JsonObject]) -> list[JsonObject]:
    return sorted(parameters, key=lambda parameter: (parameter["name"], parameter["in"]))


def hoist(operations: Sequence[JsonObject]) -> list[JsonObject]:
    """Take out of the operations of one path what all of them have in common; it belongs to the path."""
    shared = list(operations[0]["parameters"])
    for operation in operations[1:]:
        shared = [parameter for parameter in shared if parameter in operation["parameters"]]
    for operation in operations:
        own = in_order(p for p in operation.pop("parameters") if p not in shared)
        if own:
            operation["parameters"] = own
    return in_order(shared)
