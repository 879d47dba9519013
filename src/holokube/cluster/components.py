"""Which controllers a cluster has, and under which names they speak."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from holokube.runtime.app import Component
from holokube.workloads import (
    cron_job_controller,
    daemon_set_controller,
    deployment_controller,
    disruption_controller,
    endpoint_controller,
    endpoint_mirroring_controller,
    ephemeral_volume_controller,
    garbage_controller,
    hpa_controller,
    job_controller,
    namespace_controller,
    node_lifecycle_controller,
    node_ttl_controller,
    pod_cleaning_controller,
    quota_controller,
    replica_set_controller,
    service_account_controller,
    stateful_set_controller,
    taint_eviction_controller,
    ttl_after_finished_controller,
    volume_controller,
)

Build = Callable[..., Component]
"""Called with (clock, client, informers, recorder, rng)."""


class Part(Enum):
    """What can be left out, to put something else in its place."""

    SCHEDULER = "scheduler"
    CONTROLLERS = "controllers"
    FLEET = "fleet"


PARTS: Final = frozenset(Part)

# The name is what events carry as their source, as upstream's controllers spell it.
CONTROLLERS: Final[tuple[tuple[str, Build], ...]] = (
    ("namespace-controller", namespace_controller.build),
    ("serviceaccount-controller", service_account_controller.build),
    ("node-controller", node_lifecycle_controller.build),
    ("ttl-controller", node_ttl_controller.build),
    ("taint-eviction-controller", taint_eviction_controller.build),
    ("deployment-controller", deployment_controller.build),
    ("replicaset-controller", replica_set_controller.build),
    ("replication-controller", replica_set_controller.build_replication_controller),
    ("statefulset-controller", stateful_set_controller.build),
    ("daemonset-controller", daemon_set_controller.build),
    ("job-controller", job_controller.build),
    ("cronjob-controller", cron_job_controller.build),
    ("ttl-after-finished-controller", ttl_after_finished_controller.build),
    ("horizontal-pod-autoscaler", hpa_controller.build),
    ("controllermanager", disruption_controller.build),
    ("disruption-stale-conditions", disruption_controller.build_stale),
    ("endpoint-slice-controller", endpoint_controller.build),
    ("endpoint-controller", endpoint_controller.build_endpoints),
    ("endpoint-slice-mirroring-controller", endpoint_mirroring_controller.build),
    ("ephemeral_volume", ephemeral_volume_controller.build),
    ("persistentvolume-controller", volume_controller.build),
    ("persistentvolume-reclaimer", volume_controller.build_reclaimer),
    ("resourcequota-controller", quota_controller.build),
    ("pod-garbage-collector", pod_cleaning_controller.build),
    ("garbage-collector-controller", garbage_controller.build),
)
