"""Scenario files for tests."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

HEAD = """\
apiVersion: holokube.dev/v1alpha1
kind: Scenario
metadata: {name: trial}
spec:
"""

DEPLOYMENT = """\
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers: [{name: web, image: web, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
"""

JOB = """\
- apiVersion: batch/v1
  kind: Job
  metadata: {name: work}
  spec:
    template:
      spec:
        restartPolicy: Never
        containers: [{name: work, image: work}]
"""


def spec(text: str) -> str:
    """A scenario with what is below ``spec``."""
    return HEAD + indent(text, "  ")


def workload(text: str, manifests: str = DEPLOYMENT) -> str:
    """A scenario with one workload: ``text`` are its fields besides name and manifests."""
    fields = indent(text, "  ")
    return spec(f"duration: 1h\nworkloads:\n- name: web\n{fields}  manifests:\n{indent(manifests, '  ')}")


def written(folder: Path, text: str, name: str = "scenario.yaml") -> Path:
    """A file with the text."""
    path = folder / name
    path.write_text(text)
    return path
