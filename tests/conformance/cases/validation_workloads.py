"""What workloads, autoscalers and budgets may not be."""

from __future__ import annotations

from typing import Any

from tests.conformance.causes import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, UNSUPPORTED
from tests.conformance.model import Cases, post
from tests.conformance.objects import (
    autoscaler,
    budget,
    container,
    cron_job,
    daemon_set,
    deployment,
    job,
    pod,
    replica_set,
    replication_controller,
    selector,
    stateful_set,
    template,
)

cases = Cases()
Cause = tuple[str, str]


def refused(name: str, path: str, body: dict[str, Any], *causes: Cause) -> None:
    cases(f"validation/{name}", post(path, body, 422, "Invalid", *causes))


OTHER = selector({"app": "z"})
for plural, make in (
    ("deployments", deployment),
    ("replicasets", replica_set),
    ("daemonsets", daemon_set),
    ("statefulsets", stateful_set),
):
    refused(
        f"{plural}-selector-unlike-template",
        plural,
        make(selector=OTHER),
        (INVALID, "spec.template.metadata.labels"),
    )
    refused(f"{plural}-without-selector", plural, make(selector=None))
    refused(f"{plural}-empty-selector", plural, make(selector={}))
    refused(
        f"{plural}-pod-never-restarts",
        plural,
        make(template=template(restartPolicy="Never")),
        (UNSUPPORTED, "spec.template.spec.restartPolicy"),
    )
    refused(
        f"{plural}-template-without-containers",
        plural,
        make(template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}),
        (REQUIRED, "spec.template.spec.containers"),
    )
for plural, make in (
    ("deployments", deployment),
    ("replicasets", replica_set),
    ("statefulsets", stateful_set),
    ("replicationcontrollers", replication_controller),
):
    refused(f"{plural}-negative-replicas", plural, make(replicas=-1), (INVALID, "spec.replicas"))
refused(
    "deployments-active-deadline",
    "deployments",
    deployment(template=template(activeDeadlineSeconds=5)),
    (FORBIDDEN, "spec.template.spec.activeDeadlineSeconds"),
)
refused(
    "deployments-strategy-type",
    "deployments",
    deployment(strategy={"type": "X"}),
    (UNSUPPORTED, "spec.strategy"),
)
refused(
    "deployments-recreate-with-rolling-update",
    "deployments",
    deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    (FORBIDDEN, "spec.strategy.rollingUpdate"),
)
refused(
    "deployments-surge-and-unavailable-zero",
    "deployments",
    deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    (INVALID, "spec.strategy.rollingUpdate.maxUnavailable"),
)
refused(
    "deployments-unavailable-over-hundred-percent",
    "deployments",
    deployment(strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
    (INVALID, "spec.strategy.rollingUpdate.maxUnavailable"),
)
refused(
    "deployments-surge-not-a-percentage",
    "deployments",
    deployment(strategy={"rollingUpdate": {"maxSurge": "lots"}}),
    (INVALID, "spec.strategy.rollingUpdate.maxSurge"),
)
refused(
    "deployments-negative-seconds",
    "deployments",
    deployment(minReadySeconds=-1, revisionHistoryLimit=-1, progressDeadlineSeconds=-1),
    (INVALID, "spec.minReadySeconds"),
    (INVALID, "spec.revisionHistoryLimit"),
    (INVALID, "spec.progressDeadlineSeconds"),
)
refused(
    "deployments-deadline-below-ready-seconds",
    "deployments",
    deployment(minReadySeconds=700),
    (INVALID, "spec.progressDeadlineSeconds"),
)
refused(
    "deployments-bad-selector-operator",
    "deployments",
    deployment(selector={"matchExpressions": [{"key": "app", "operator": "X", "values": ["a"]}]}),
)
refused(
    "deployments-selector-in-without-values",
    "deployments",
    deployment(selector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
)
refused(
    "deployments-bad-template-label",
    "deployments",
    deployment(template=template({"app": "a", "x": "a b"})),
    (INVALID, "spec.template.labels"),
)
refused(
    "deployments-duplicate-template-containers",
    "deployments",
    deployment(template=template(containers=[container(), container()])),
    (DUPLICATE, "spec.template.spec.containers[1].name"),
)
refused(
    "statefulsets-bad-strategy",
    "statefulsets",
    stateful_set(updateStrategy={"type": "X"}),
    (INVALID, "spec.updateStrategy"),
)
refused(
    "statefulsets-negative-partition",
    "statefulsets",
    stateful_set(updateStrategy={"rollingUpdate": {"partition": -1}}),
    (INVALID, "spec.updateStrategy.rollingUpdate.partition"),
)
refused(
    "statefulsets-pod-management",
    "statefulsets",
    stateful_set(podManagementPolicy="X"),
    (INVALID, "spec.podManagementPolicy"),
)
refused(
    "statefulsets-claim-retention",
    "statefulsets",
    stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": "X"}),
    (UNSUPPORTED, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted"),
)
refused(
    "daemonsets-bad-strategy",
    "daemonsets",
    daemon_set(updateStrategy={"type": "X"}),
    (UNSUPPORTED, "spec.updateStrategy"),
)
refused(
    "daemonsets-unavailable-zero",
    "daemonsets",
    daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
)
refused(
    "daemonsets-surge-and-unavailable",
    "daemonsets",
    daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}),
)
refused(
    "replicationcontrollers-selector-unlike-template",
    "replicationcontrollers",
    replication_controller(selector={"app": "z"}),
    (INVALID, "spec.template.metadata.labels"),
)
refused(
    "replicationcontrollers-without-template", "replicationcontrollers", replication_controller(template=None)
)

refused(
    "jobs-restart-policy-always",
    "jobs",
    job(template={"spec": {"containers": [container()], "restartPolicy": "Always"}}),
    (REQUIRED, "spec.template.spec.restartPolicy"),
)
refused(
    "jobs-restart-policy-missing",
    "jobs",
    job(template={"spec": {"containers": [container()]}}),
    (REQUIRED, "spec.template.spec.restartPolicy"),
)
refused(
    "jobs-negative-numbers",
    "jobs",
    job(
        parallelism=-1, completions=-1, backoffLimit=-1, activeDeadlineSeconds=-1, ttlSecondsAfterFinished=-1
    ),
    *(
        (INVALID, f"spec.{f}")
        for f in (
            "parallelism",
            "completions",
            "backoffLimit",
            "activeDeadlineSeconds",
            "ttlSecondsAfterFinished",
        )
    ),
)
refused(
    "jobs-indexed-without-completions",
    "jobs",
    job(completionMode="Indexed", parallelism=2),
    (REQUIRED, "spec.completions"),
)
refused("jobs-completion-mode", "jobs", job(completionMode="X"), (UNSUPPORTED, "spec.completionMode"))
refused("jobs-selector-given", "jobs", job(selector=selector()))
refused("jobs-backoff-per-index-without-index", "jobs", job(backoffLimitPerIndex=1))
refused(
    "jobs-pod-failure-policy-action",
    "jobs",
    job(podFailurePolicy={"rules": [{"action": "X", "onExitCodes": {"operator": "In", "values": [1]}}]}),
)
refused(
    "jobs-pod-failure-policy-zero-exit-code",
    "jobs",
    job(
        podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}
    ),
)
refused("jobs-managed-by", "jobs", job(managedBy="not ok"), (INVALID, "spec.managedBy"))
refused("cronjobs-bad-schedule", "cronjobs", cron_job(schedule="often"), (INVALID, "spec.schedule"))
refused("cronjobs-empty-schedule", "cronjobs", cron_job(schedule=""), (REQUIRED, "spec.schedule"))
refused("cronjobs-six-fields", "cronjobs", cron_job(schedule="0 0 * * * *"), (INVALID, "spec.schedule"))
refused(
    "cronjobs-time-zone-in-schedule",
    "cronjobs",
    cron_job(schedule="TZ=UTC 0 0 * * *"),
    (INVALID, "spec.schedule"),
)
refused(
    "cronjobs-minute-out-of-range", "cronjobs", cron_job(schedule="61 * * * *"), (INVALID, "spec.schedule")
)
refused("cronjobs-unknown-time-zone", "cronjobs", cron_job(timeZone="Moon/Base"), (INVALID, "spec.timeZone"))
refused(
    "cronjobs-concurrency",
    "cronjobs",
    cron_job(concurrencyPolicy="X"),
    (UNSUPPORTED, "spec.concurrencyPolicy"),
)
refused(
    "cronjobs-negative-history",
    "cronjobs",
    cron_job(successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1),
    (INVALID, "spec.successfulJobsHistoryLimit"),
    (INVALID, "spec.failedJobsHistoryLimit"),
)
refused(
    "cronjobs-template-restart-policy",
    "cronjobs",
    cron_job(jobTemplate={"spec": {"template": {"spec": {"containers": [container()]}}}}),
    (REQUIRED, "spec.jobTemplate.spec.template.spec.restartPolicy"),
)
cases(
    "validation/cronjobs-daily-is-fine",
    post("cronjobs", cron_job(schedule="@daily"), has={"spec.schedule": "@daily"}),
)

refused(
    "budgets-both-fields", "poddisruptionbudgets", budget(minAvailable=1, maxUnavailable=1), (INVALID, "spec")
)
refused("budgets-negative", "poddisruptionbudgets", budget(minAvailable=-1), (INVALID, "spec.minAvailable"))
refused(
    "budgets-over-hundred-percent",
    "poddisruptionbudgets",
    budget(maxUnavailable="101%"),
    (INVALID, "spec.maxUnavailable"),
)
refused(
    "budgets-not-a-percentage",
    "poddisruptionbudgets",
    budget(maxUnavailable="some"),
    (INVALID, "spec.maxUnavailable"),
)
refused(
    "budgets-unhealthy-policy",
    "poddisruptionbudgets",
    budget(minAvailable=1, unhealthyPodEvictionPolicy="X"),
    (UNSUPPORTED, "spec.unhealthyPodEvictionPolicy"),
)
refused(
    "budgets-bad-selector",
    "poddisruptionbudgets",
    budget(minAvailable=1, selector={"matchExpressions": [{"key": "a", "operator": "X"}]}),
)
HPA = "horizontalpodautoscalers"
refused("hpa-min-over-max", HPA, autoscaler(minReplicas=5), (INVALID, "spec.maxReplicas"))
refused(
    "hpa-min-zero", HPA, autoscaler(minReplicas=0), (INVALID, "spec.minReplicas"), (FORBIDDEN, "spec.metrics")
)
refused("hpa-max-zero", HPA, autoscaler(maxReplicas=0))
refused(
    "hpa-without-target-kind",
    HPA,
    autoscaler(scaleTargetRef={"name": "d"}),
    (REQUIRED, "spec.scaleTargetRef.kind"),
    (INVALID, "spec.scaleTargetRef.apiVersion"),
)
refused(
    "hpa-without-target-name",
    HPA,
    autoscaler(scaleTargetRef={"kind": "Deployment", "apiVersion": "apps/v1"}),
    (REQUIRED, "spec.scaleTargetRef.name"),
)
refused("hpa-metric-type", HPA, autoscaler(metrics=[{"type": "X"}]))
refused("hpa-metric-without-source", HPA, autoscaler(metrics=[{"type": "Resource"}]))
refused(
    "hpa-resource-target-missing-value",
    HPA,
    autoscaler(
        metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    ),
)
refused("hpa-behavior-window", HPA, autoscaler(behavior={"scaleUp": {"stabilizationWindowSeconds": 4000}}))
refused(
    "hpa-behavior-policy",
    HPA,
    autoscaler(behavior={"scaleUp": {"policies": [{"type": "X", "value": 0, "periodSeconds": 0}]}}),
)
refused(
    "pod-template-with-ephemeral-containers",
    "deployments",
    deployment(template=template(ephemeralContainers=[{"name": "x", "image": "y"}])),
)
refused(
    "podtemplate-bad-restart-policy",
    "podtemplates",
    {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "x"},
        "template": template(restartPolicy="X"),
    },
    (UNSUPPORTED, "template.spec.restartPolicy"),
)
cases("validation/pod-is-fine", post("pods", pod()))
