"""Small Stages with the constructs that kwok's own ones use."""

from __future__ import annotations

from typing import Any

from holokube.hollow.stages.loading import StageSet, parse_stages

HEAD = "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: NAME}\nspec:\n  resourceRef: {kind: KIND}\n"


def stage(name: str, body: str, kind: str = "Pod") -> str:
    """A Stage document; the body is what stands under spec besides resourceRef."""
    indented = "\n".join(f"  {line}" for line in body.strip("\n").splitlines())
    return f"---\n{HEAD.replace('NAME', name).replace('KIND', kind)}{indented}\n"


def stages(*documents: str) -> StageSet:
    return parse_stages("\n".join(documents).encode(), "sample.yaml")


START = stage(
    "start",
    """
selector:
  matchExpressions:
  - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
  - {key: .status.phase, operator: In, values: [Pending]}
  - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
    operator: NotIn
    values: ["True"]
delay:
  durationMilliseconds: 1000
  durationFrom: {expressionFrom: '.metadata.annotations["start.stage.example.com/delay"]'}
  jitterDurationMilliseconds: 5000
  jitterDurationFrom: {jq: {expression: '.metadata.annotations["start.stage.example.com/jitter-delay"]'}}
next:
  event: {type: Normal, reason: Created, message: Created container}
  statusTemplate: |
    {{ $now := Now }}
    {{ $root := . }}
    conditions:
    - {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
    containerStatuses:
    {{ range $index, $item := .spec.containers }}
    - image: {{ $item.image | Quote }}
      name: {{ $item.name | Quote }}
      ready: true
      restartCount: {{ $index }}
      {{ if eq $root.spec.restartPolicy "Always" }}
      state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
    {{ end }}
    hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
    {{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) }}
    podIP: {{ index . 0 | Quote }}
    podIPs:
    {{ range . }}
    - ip: {{ . | Quote }}
    {{ end }}
    {{ end }}
    phase: Running
""",
)
COMPLETE = stage(
    "complete",
    """
selector:
  matchExpressions:
  - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
  - {key: .status.phase, operator: In, values: [Running]}
  - {key: '.metadata.ownerReferences.[].kind', operator: In, values: [Job]}
next:
  statusTemplate: |
    phase: Succeeded
""",
)
DELETE = stage(
    "delete",
    """
selector:
  matchExpressions:
  - {key: .metadata.deletionTimestamp, operator: Exists}
next:
  delete: true
""",
)
INITIALIZE = stage(
    "initialize",
    """
selector:
  matchExpressions:
  - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
    operator: NotIn
    values: ["True"]
next:
  statusTemplate: |
    conditions:
    {{ range NodeConditions }}
    - type: {{ .type | Quote }}
      status: {{ .status | Quote }}
      reason: {{ .reason | Quote }}
      lastHeartbeatTime: {{ Now | Quote }}
    {{ end }}
    addresses:
    - {address: {{ NodeIP | Quote }}, type: InternalIP}
    - {address: {{ NodeName | Quote }}, type: Hostname}
    {{ with NodePort }}
    daemonEndpoints: {kubeletEndpoint: {Port: {{ . }}}}
    {{ end }}
    capacity:
    {{ with .status.capacity }}
    {{ YAML . 1 }}
    {{ else }}
      cpu: 1k
    {{ end }}
    nodeInfo:
      kubeletVersion: {{ printf "sample-%s" Version }}
    phase: Running
""",
    kind="Node",
)
HEARTBEAT = stage(
    "heartbeat",
    """
selector:
  matchExpressions:
  - {key: .status.phase, operator: In, values: [Running]}
delay:
  durationMilliseconds: 20000
next:
  statusTemplate: |
    conditions:
    {{ range NodeConditions }}
    - {type: {{ .type | Quote }}, status: {{ .status | Quote }}, lastHeartbeatTime: {{ Now | Quote }}}
    {{ end }}
immediateNextStage: true
""",
    kind="Node",
)


def pending_pod(**metadata: Any) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "default", "uid": "u1", "resourceVersion": "1", **metadata}
    spec = {"nodeName": "n", "restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
