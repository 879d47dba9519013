"""Which rules belong to which workload resource."""

from __future__ import annotations

from collections.abc import Mapping

from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.kinds.daemon_sets import DaemonSet
from holokube.apiserver.kinds.deployments import Deployment
from holokube.apiserver.kinds.jobs import CronJob, Job
from holokube.apiserver.kinds.pod_templates import ControllerRevision, PodTemplate
from holokube.apiserver.kinds.pods import Pod
from holokube.apiserver.kinds.replica_sets import ReplicaSet, ReplicationController
from holokube.apiserver.kinds.stateful_sets import StatefulSet

WORKLOAD_KINDS: Mapping[tuple[str, str], type[Kind]] = {
    ("", "pods"): Pod,
    ("", "podtemplates"): PodTemplate,
    ("", "replicationcontrollers"): ReplicationController,
    ("apps", "controllerrevisions"): ControllerRevision,
    ("apps", "daemonsets"): DaemonSet,
    ("apps", "deployments"): Deployment,
    ("apps", "replicasets"): ReplicaSet,
    ("apps", "statefulsets"): StatefulSet,
    ("batch", "cronjobs"): CronJob,
    ("batch", "jobs"): Job,
}
