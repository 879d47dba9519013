"""What a conformance case is: named steps over HTTP, with what each must answer and what is compared.

A path that does not start with a slash names a built-in resource and is completed from `RESOURCES`:
`pods/p/status?dryRun=All` is that pod in the case's own namespace, `*pods` lists every namespace.
Texts may hold `{ns}`, `{ns2}` (fresh namespaces), `{u}` (a unique name part) and every name a step saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

WHOLE = "whole"
"""Compare the whole answer, without managed fields."""
MANAGED = "managed"
"""Compare the whole answer, managed fields included."""

_NAMESPACED = {
    "/api/v1": "pods services endpoints configmaps secrets serviceaccounts events replicationcontrollers "
    "persistentvolumeclaims limitranges resourcequotas podtemplates",
    "/apis/apps/v1": "deployments replicasets daemonsets statefulsets controllerrevisions",
    "/apis/batch/v1": "jobs cronjobs",
    "/apis/autoscaling/v2": "horizontalpodautoscalers",
    "/apis/policy/v1": "poddisruptionbudgets",
    "/apis/coordination.k8s.io/v1": "leases",
    "/apis/networking.k8s.io/v1": "ingresses networkpolicies",
    "/apis/discovery.k8s.io/v1": "endpointslices",
    "/apis/rbac.authorization.k8s.io/v1": "roles rolebindings",
    "/apis/storage.k8s.io/v1": "csistoragecapacities",
    "/apis/resource.k8s.io/v1": "resourceclaims resourceclaimtemplates",
}
_CLUSTER = {
    "/api/v1": "nodes namespaces persistentvolumes",
    "/apis/scheduling.k8s.io/v1": "priorityclasses",
    "/apis/storage.k8s.io/v1": "storageclasses csinodes csidrivers volumeattachments",
    "/apis/node.k8s.io/v1": "runtimeclasses",
    "/apis/networking.k8s.io/v1": "ingressclasses",
    "/apis/rbac.authorization.k8s.io/v1": "clusterroles clusterrolebindings",
    "/apis/resource.k8s.io/v1": "deviceclasses resourceslices",
    "/apis/admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations "
    "validatingadmissionpolicies validatingadmissionpolicybindings",
    "/apis/flowcontrol.apiserver.k8s.io/v1": "flowschemas prioritylevelconfigurations",
    "/apis/apiextensions.k8s.io/v1": "customresourcedefinitions",
    "/apis/authentication.k8s.io/v1": "tokenreviews selfsubjectreviews",
    "/apis/authorization.k8s.io/v1": "subjectaccessreviews selfsubjectaccessreviews",
}
RESOURCES: dict[str, tuple[str, bool]] = {
    plural: (prefix, namespaced)
    for table, namespaced in ((_NAMESPACED, True), (_CLUSTER, False))
    for prefix, plurals in table.items()
    for plural in plurals.split()
}


def resolve(path: str) -> str:
    """The absolute path of a short one."""
    if path.startswith("/"):
        return path
    everywhere = path.startswith("*")
    plain = path.removeprefix("*")
    cut = min((i for i in (plain.find("/"), plain.find("?")) if i >= 0), default=len(plain))
    prefix, namespaced = RESOURCES[plain[:cut]]
    if namespaced and not everywhere:
        return f"{prefix}/namespaces/{{ns}}/{plain}"
    return f"{prefix}/{plain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request, what it must answer on every server, and which parts of the answer are compared."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    authenticated: bool = True
    code: int = 200
    reason: str = ""
    causes: tuple[tuple[str, str], ...] | None = None
    """(reason, field) of each cause, in any order; None leaves them to the recording alone."""
    has: Mapping[str, Any] = field(default_factory=dict)
    text: Sequence[str] = ()
    """Pieces that must occur in the raw answer."""
    take: str | Sequence[str] = ()
    drop: Sequence[str] = ()
    take_headers: Sequence[str] = ()
    save: Mapping[str, str] = field(default_factory=dict)
    poll: bool = False
    """Ask again until `code` and `has` hold: upstream's admission and CRD handlers follow informers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Opens a watch in the background; a later `Collect` with the same name reads it."""

    name: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Reads `count` events of a watch (0: until the server ends the stream) and compares them."""

    name: str
    count: int
    events: tuple[tuple[str, str], ...] | None = None
    """(type, object name) in order; None leaves them to the recording alone."""
    take: str | Sequence[str] = ()
    bookmarks: bool = False
    """Bookmarks come when the server likes, so they are left out unless a case is about them."""


AnyStep = Step | Watch | Collect


@dataclass(frozen=True, slots=True)
class Case:
    """A behaviour with a name of the form `topic/what-happens`."""

    id: str
    steps: tuple[AnyStep, ...]

    @property
    def topic(self) -> str:
        return self.id.split("/", 1)[0]


class Cases(list[Case]):
    """The cases of one file; calling it adds one."""

    def __call__(self, id: str, *steps: AnyStep) -> None:
        self.append(Case(id, steps))


Cause = tuple[str, str]


def _step(
    method: str,
    path: str,
    body: Any,
    code: int,
    reason: str,
    causes: tuple[Cause, ...],
    options: dict[str, Any],
) -> Step:
    expected = options.pop("causes", causes or None)
    return Step(
        method=method, path=resolve(path), body=body, code=code, reason=reason, causes=expected, **options
    )


def get(path: str, code: int = 200, reason: str = "", *causes: Cause, **options: Any) -> Step:
    return _step("GET", path, None, code, reason, causes, options)


def post(path: str, body: Any, code: int = 201, reason: str = "", *causes: Cause, **options: Any) -> Step:
    return _step("POST", path, body, code, reason, causes, options)


def put(path: str, body: Any, code: int = 200, reason: str = "", *causes: Cause, **options: Any) -> Step:
    return _step("PUT", path, body, code, reason, causes, options)


def delete(
    path: str, body: Any = None, code: int = 200, reason: str = "", *causes: Cause, **options: Any
) -> Step:
    return _step("DELETE", path, body, code, reason, causes, options)


def merge(path: str, body: Any, code: int = 200, reason: str = "", *causes: Cause, **options: Any) -> Step:
    return _step("PATCH", path, body, code, reason, causes, {"content_type": MERGE_PATCH, **options})


def strategic(
    path: str, body: Any, code: int = 200, reason: str = "", *causes: Cause, **options: Any
) -> Step:
    return _step("PATCH", path, body, code, reason, causes, {"content_type": STRATEGIC_PATCH, **options})


def json_patch(
    path: str, body: Any, code: int = 200, reason: str = "", *causes: Cause, **options: Any
) -> Step:
    return _step("PATCH", path, body, code, reason, causes, {"content_type": JSON_PATCH, **options})


def apply(path: str, body: Any, code: int = 200, reason: str = "", *causes: Cause, **options: Any) -> Step:
    """Server-side apply; the path carries `fieldManager` unless the case is about its absence."""
    return _step("PATCH", path, body, code, reason, causes, {"content_type": APPLY_PATCH, **options})


def request(
    method: str,
    path: str,
    code: int = 200,
    reason: str = "",
    *causes: Cause,
    body: Any = None,
    **options: Any,
) -> Step:
    return _step(method, path, body, code, reason, causes, options)


def watch(path: str, name: str = "w", **headers: str) -> Watch:
    """Opens a watch; the query must hold `watch=true` or the path the old `/watch/` prefix."""
    return Watch(name=name, path=resolve(path), headers={k.replace("_", "-"): v for k, v in headers.items()})


def collect(*events: Cause, name: str = "w", take: str | Sequence[str] = (), **options: Any) -> Collect:
    """Expects exactly these events, read one by one."""
    options.setdefault("count", len(events))
    return Collect(name=name, events=events, take=take, **options)
