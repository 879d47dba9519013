"""The reference of scenario files, made of the types that read them: their docstrings, fields and defaults."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import MISSING
from functools import cache
from typing import Final

from holokube.lab.results import MEASURES
from holokube.lab.scenario import curves, faults, node_groups
from holokube.lab.scenario.behaviour import Failure, PodBehaviour
from holokube.lab.scenario.model import API_VERSION, KIND, ClusterSpec, PolicySpec, Scenario, Workload
from holokube.lab.scenario.shapes import FileField, file_fields
from holokube.lab.scenario.traces import TraceSource

_HEAD: Final = f"""\
# Scenarios

<!-- Written by `python tools/docs/scenario_reference.py`; change the types in holokube.lab.scenario, not this file. -->

A scenario is a YAML file that describes a cluster at the start of a run, what happens in it and when, which autoscalers
decide how many nodes there are, and what must hold at the end. `holokube run FILE` runs it. [Examples](../examples) to
start from; the [tutorial](tutorial.md) introduces the most important fields.

```yaml
apiVersion: {API_VERSION}
kind: {KIND}
metadata:
  name: lunch-break
spec:
  duration: 6h
  start: 2026-01-05T09:00:00Z
  workloads:
  - name: web
    curve: {{kind: diurnal, low: 5, high: 40, peak: "12:30", noise: 0.1}}
    manifests:
    - file: web.yaml
  policies:
  - karpenter
  - kind: cluster-autoscaler
    flags: [--expander=least-waste]
    nodeGroups:
    - {{instanceType: m-4x-amd64-linux, max: 50}}
  assertions:
  - pending_p99_s < 60
```

A field that is not listed here is an error. All mistakes in a file are reported at once, each with file, line and
column, the field, and what to write instead:

    scenario.yaml:10:29: spec.workloads[0].curve.hihg: there is no such field. Did you mean high?

Paths are relative to the file of the scenario. Durations are written as in Go, plus days: `90s`, `5m`, `1h30m`, `24h`,
`1d`. Times such as `at` and `until` count from the start of the run.

## Variants and single values

`--variant FILE` overlays a second, partial scenario on the first: mappings are merged field by field, lists whose items
all have a `name` item by item, and everything else is replaced. A field with an empty value removes that field from the
first scenario. The name of the file labels the variant in tables.

`holokube sweep` changes single values by their paths: `--set spec.workloads[0].curve.high=20,40`. List items can also
be addressed by name: `--set spec.workloads[web].curve.high=20,40`. Names with dots are quoted:
`labels["app.kubernetes.io/name"]`.

## Manifests

Where a list of manifests is expected, each item is an inline Kubernetes object, `file: NAME`, or just the name of a
file. A file may hold many objects, as YAML or JSON, optionally gzipped: plain manifests, the output of `kubectl get ...
-o yaml` (or `-o json`), or of `holokube snapshot`. Fields that only live objects have, such as uid and status, are
removed, except in `snapshots`. A field that the kind does not have is an error, as in the scenario itself.

## Catalogues

A catalogue says which machines there are, where, and at what price. Inline or as a JSON file it is a list; the file
format of Karpenter's kwok provider, whose offerings have `Price` and `Requirements`, is read too:

    catalog:
    - name: m5.large
      resources: {{cpu: "2", memory: 8Gi, pods: "58"}}
      architecture: amd64                # the default
      operatingSystems: [linux]          # the default
      offerings:
      - {{zone: eu-1a, capacityType: on-demand, price: 0.096}}    # USD per hour
      - {{zone: eu-1a, capacityType: spot, price: 0.035}}

A CSV file has a line for each type, or for each type and zone. The columns `name`, `cpu`, `memory` and `price` are
required; optional are `zone`, `capacity-type`, `arch` and `os` (several values as `a|b`), `spot-price`, `pods`,
`ephemeral-storage`, resources such as `nvidia.com/gpu`, and node labels as `label:KEY`:

    name,cpu,memory,price,spot-price,zone
    m5.large,2,8Gi,0.096,0.035,eu-1a|eu-1b

## Distributions of durations

A duration may be fixed (`5s`), uniform (`{{min: 2s, max: 8s}}`), or exponential above a minimum and capped at a maximum
(`{{min: 1m, mean: 10m, max: 1h}}`; `min` and `max` are optional).
"""

_KINDS: Final[Sequence[tuple[str, str, dict[str, type]]]] = (
    ("Curves", "The number of replicas of a workload over time. The field `kind` selects the curve.",
     dict(curves.CURVES)),
    ("Arrivals", "When Jobs or Pods are created. The field `kind` selects how.", dict(curves.ARRIVALS)),
    ("Faults", "What goes wrong. The field `kind` selects what.",
     {str(kind): cls for kind, cls in faults.FAULTS.items()}),
)  # fmt: skip


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, *_section(Scenario, "spec")]
    parts.extend(_section(ClusterSpec, "spec.cluster"))
    parts.extend(_section(Workload, "spec.workloads[]"))
    parts.extend(_section(PodBehaviour, "spec.workloads[].behaviour"))
    parts.extend(_section(Failure, "spec.workloads[].behaviour.failure"))
    parts.extend(_section(TraceSource, "spec.trace"))
    parts.extend(_section(PolicySpec, "spec.policies[]"))
    parts.extend(_section(node_groups.NodeGroup, "spec.policies[].nodeGroups[]"))
    for title, words, classes in _KINDS:
        parts.append(f"## {title}\n\n{words}\n")
        if classes.get("zone-loss") is not None:
            parts.append(f"Every fault also has these fields:\n\n{_table(faults.Fault)}\n")
        for kind, cls in classes.items():
            parts.extend(_section(cls, f"kind: {kind}", level="###"))
            if cls is curves.Steps:
                parts.extend(_section(curves.Step, "points[]", level="####"))
            elif cls is curves.Cron:
                parts.extend(_section(curves.Due, "rules[]", level="####"))
    parts.append(_measures())
    return "\n".join(parts)


def _section(cls: type, where: str, *, level: str = "##") -> Iterator[str]:
    yield f"{level} {cls.__name__}\n"
    yield f"`{where}`: {_prose(inspect.cleandoc(cls.__doc__ or ''))}\n"
    if file_fields(cls):
        yield f"{_table(cls)}\n"


def _table(cls: type) -> str:
    meanings = _meanings(cls)
    rows = ["| field | value | default | meaning |", "|---|---|---|---|"]
    for one in file_fields(cls):
        cells = (f"`{one.name}`", one.value.describes, _default(one), meanings.get(one.attribute, ""))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _default(one: FileField) -> str:
    if one.default is MISSING:
        return "required"
    if one.default is None or one.default == () or one.default == "":
        return ""
    shown = one.value.shown(one.default)
    return f"`{shown}`" if shown else ""


@cache
def _meanings(cls: type) -> dict[str, str]:
    """The text below each field in the source of a class."""
    body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    names = {one.name for one in dataclasses.fields(cls)}
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and before.target.id in names
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[before.target.id] = _prose(inspect.cleandoc(after.value.value)).replace("\n", " ")
    return found


def _prose(text: str) -> str:
    """Docstrings mark code with two backquotes, Markdown with one."""
    return text.replace("``", "`")


def _measures() -> str:
    rows = ["## Measures", "", "The measures that assertions can use, and that the results of a run contain.", ""]
    rows += ["| measure | what it is | unit | better |", "|---|---|---|---|"]
    rows += [f"| `{one.name}` | {one.title} | {one.unit} | {one.better} |" for one in MEASURES]
    told = "Seconds may be written as durations (`pending_p99_s < 2m`), shares as percentages"
    return "\n".join([*rows, "", f"{told} (`cpu_allocated_share > 60%`).", ""])
