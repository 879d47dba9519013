"""Jobs: how they count, fail, retry, wait, and end."""

from __future__ import annotations

from holokube.client.resources import CRON_JOBS, JOBS, PODS, RESOURCE_QUOTAS
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios.objects import has_condition, job
from tests.workload_parity.stage import JsonObject, Stage

topic = Topic("jobs")


def is_over(found: JsonObject) -> bool:
    return has_condition(found, "Complete") or has_condition(found, "Failed")


def index_of(found: JsonObject) -> int:
    return int(found["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


async def by_index(stage: Stage) -> dict[int, JsonObject]:
    return {index_of(found): found for found in await stage.active()}


@topic
async def job_completes(stage: Stage) -> None:
    await stage.create(JOBS, job("work", completions=3, parallelism=2))
    await stage.step("two pods")
    await stage.start((await stage.active())[:1])
    await stage.step("one ready")
    await stage.end((await stage.active())[:1])
    await stage.step("one done")
    await stage.end(await stage.active())
    await stage.settle()
    await stage.end(await stage.active())
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")
    await stage.delete(JOBS, "work", propagation="Background")
    await stage.step("deleted")


@topic
async def job_as_a_work_queue(stage: Stage) -> None:
    await stage.create(JOBS, job("work", parallelism=3))
    await stage.step("three pods")
    await stage.start(await stage.active())
    await stage.end((await stage.active())[:1])
    await stage.step("the queue is empty")
    await stage.end(await stage.active())
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


@topic
async def job_fails_beyond_its_backoff_limit(stage: Stage) -> None:
    await stage.create(JOBS, job("work", backoffLimit=1))
    await stage.settle()
    await stage.end(await stage.active(), "Failed", 1)
    await stage.step("failed once")
    await stage.until_pods(lambda pods: len(pods) == 2)
    await stage.step("second try")
    await stage.end(await stage.active(), "Failed", 1)
    await stage.until(JOBS, "work", is_over)
    await stage.step("failed")


@topic
async def job_fails_with_others_running(stage: Stage) -> None:
    await stage.create(JOBS, job("work", backoffLimit=0, parallelism=3, completions=3))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.settle()
    await stage.end((await stage.active())[:1], "Failed", 1)
    await stage.step("others leave")
    await stage.end([p for p in await stage.pods() if p["status"]["phase"] == "Running"], "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("failed")


@topic
async def job_indexed(stage: Stage) -> None:
    await stage.create(JOBS, job("work", completionMode="Indexed", completions=5, parallelism=3))
    await stage.step("first three")
    found = await by_index(stage)
    await stage.end([found[0], found[2]])
    await stage.step("two done")
    await stage.end(list((await by_index(stage)).values()))
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


@topic
async def job_with_backoff_per_index(stage: Stage) -> None:
    made = job("work", completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0)
    await stage.create(JOBS, made)
    await stage.settle()
    found = await by_index(stage)
    await stage.end([found[1]], "Failed", 1)
    await stage.step("one index failed")
    await stage.end([found[0], found[2]])
    await stage.until(JOBS, "work", is_over)
    await stage.step("failed")


@topic
async def job_with_too_many_failed_indexes(stage: Stage) -> None:
    made = job(
        "work", completionMode="Indexed", completions=4, parallelism=4, backoffLimitPerIndex=0, maxFailedIndexes=1
    )
    await stage.create(JOBS, made)
    await stage.settle()
    found = await by_index(stage)
    await stage.start(list(found.values()))
    await stage.settle()
    await stage.end([found[1], found[3]], "Failed", 1)
    await stage.step("too many")
    await stage.end([p for p in await stage.pods() if p["status"]["phase"] == "Running"], "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("failed")


@topic
async def job_retries_an_index(stage: Stage) -> None:
    made = job("work", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    await stage.create(JOBS, made)
    await stage.settle()
    found = await by_index(stage)
    await stage.end([found[1]], "Failed", 1)
    await stage.until_pods(lambda pods: len(pods) == 3)
    await stage.step("second try of an index")
    await stage.end(list((await by_index(stage)).values()))
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


def failure_policy(action: str, **rule: object) -> JsonObject:
    return {"rules": [{"action": action, **rule}]}


EXIT_42 = {"containerName": "c", "operator": "In", "values": [42]}
DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]


@topic
async def job_fails_by_policy(stage: Stage) -> None:
    made = job("work", parallelism=2, completions=2, podFailurePolicy=failure_policy("FailJob", onExitCodes=EXIT_42))
    await stage.create(JOBS, made)
    await stage.settle()
    await stage.start(await stage.active())
    await stage.settle()
    await stage.end((await stage.active())[:1], "Failed", 42)
    await stage.step("the other leaves")
    await stage.end([p for p in await stage.pods() if p["status"]["phase"] == "Running"], "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("failed")


@topic
async def job_ignores_disruptions(stage: Stage) -> None:
    made = job("work", backoffLimit=0, podFailurePolicy=failure_policy("Ignore", onPodConditions=DISRUPTED))
    await stage.create(JOBS, made)
    await stage.settle()
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Test", "lastTransitionTime": None}
    await stage.end(await stage.active(), "Failed", 137, conditions=[condition])
    await stage.until_pods(lambda pods: len(pods) == 2)
    await stage.step("ignored")
    await stage.end(await stage.active())
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


@topic
async def job_fails_an_index_by_policy(stage: Stage) -> None:
    made = job(
        "work", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=3,
        podFailurePolicy=failure_policy("FailIndex", onExitCodes=EXIT_42),
    )  # fmt: skip
    await stage.create(JOBS, made)
    await stage.settle()
    found = await by_index(stage)
    await stage.end([found[0]], "Failed", 42)
    await stage.step("the index failed")
    await stage.end([found[1]])
    await stage.until(JOBS, "work", is_over)
    await stage.step("failed")


@topic
async def job_succeeds_early(stage: Stage) -> None:
    rules = [{"succeededIndexes": "0-1", "succeededCount": 1}]
    made = job("work", completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": rules})
    await stage.create(JOBS, made)
    await stage.settle()
    found = await by_index(stage)
    await stage.start(list(found.values()))
    await stage.settle()
    await stage.end([found[1]])
    await stage.step("criteria met")
    await stage.end([p for p in await stage.pods() if p["status"]["phase"] == "Running"], "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("complete")


@topic
async def job_is_suspended_and_resumed(stage: Stage) -> None:
    await stage.create(JOBS, job("work", suspend=True, parallelism=2, completions=2))
    await stage.step("suspended from the start")
    await stage.patch(JOBS, "work", {"spec": {"suspend": False}})
    await stage.step("resumed")
    await stage.start(await stage.active())
    await stage.settle()
    await stage.patch(JOBS, "work", {"spec": {"suspend": True}})
    await stage.step("suspended")
    await stage.end([p for p in await stage.pods() if p["status"]["phase"] == "Running"], "Failed", 137)
    await stage.settle()
    await stage.finish()
    await stage.step("pods are gone")
    await stage.patch(JOBS, "work", {"spec": {"suspend": False}})
    await stage.settle()
    await stage.end(await stage.active())
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


@topic
async def job_exceeds_its_deadline(stage: Stage) -> None:
    await stage.create(JOBS, job("work", activeDeadlineSeconds=7))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.until_pods(lambda pods: any(p["metadata"].get("deletionTimestamp") for p in pods))
    await stage.step("too long")
    await stage.end(await stage.pods(), "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("failed")


@topic
async def job_goes_after_its_time(stage: Stage) -> None:
    await stage.create(JOBS, job("work", ttlSecondsAfterFinished=3))
    await stage.step("created")
    await stage.end(await stage.active())
    await stage.until_gone(JOBS, "work")
    await stage.step("gone")


@topic
async def job_is_scaled(stage: Stage) -> None:
    await stage.create(JOBS, job("work", parallelism=1, completions=4))
    await stage.settle()
    await stage.patch(JOBS, "work", {"spec": {"parallelism": 3}})
    await stage.step("more at once")
    await stage.start(await stage.active())
    await stage.settle()
    await stage.patch(JOBS, "work", {"spec": {"parallelism": 1}})
    await stage.step("fewer at once")
    await stage.end([p for p in await stage.pods() if p["metadata"].get("deletionTimestamp")], "Failed", 137)
    await stage.settle()
    await stage.finish()
    await stage.step("one left")


@topic
async def job_loses_a_pod(stage: Stage) -> None:
    await stage.create(JOBS, job("work"))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.settle()
    await stage.delete(PODS, (await stage.pods())[0]["metadata"]["name"])
    await stage.step("a pod is being deleted")
    await stage.end(await stage.pods(), "Failed", 137)
    await stage.settle()
    await stage.finish()
    await stage.until_pods(lambda pods: len(pods) == 1 and "deletionTimestamp" not in pods[0]["metadata"])
    await stage.step("replaced")


@topic
async def job_replaces_only_failed_pods(stage: Stage) -> None:
    await stage.create(JOBS, job("work", podReplacementPolicy="Failed"))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.settle()
    await stage.delete(PODS, (await stage.pods())[0]["metadata"]["name"])
    await stage.step("not replaced yet")
    await stage.end(await stage.pods(), "Failed", 137)
    await stage.until_pods(lambda pods: len(pods) == 2)
    await stage.finish()
    await stage.step("replaced")


@topic
async def job_without_work(stage: Stage) -> None:
    await stage.create(JOBS, job("work", completions=0))
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete at once")


@topic
async def job_managed_by_another(stage: Stage) -> None:
    await stage.create(JOBS, job("work", managedBy="example.com/other"))
    await stage.step("left alone")


@topic
async def job_is_refused_pods(stage: Stage) -> None:
    await stage.create(RESOURCE_QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    await stage.until(RESOURCE_QUOTAS, "few", lambda q: "hard" in (q.get("status") or {}))
    await stage.create(JOBS, job("work", parallelism=2, completions=2))
    await stage.step("one of two")


def cron(**spec: object) -> JsonObject:
    made = job("work")
    template = {"metadata": {"labels": {"by": "cron"}}, "spec": made["spec"]}
    return {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}


@topic
async def cron_job_starts_and_ends(stage: Stage) -> None:
    await stage.create(CRON_JOBS, cron(successfulJobsHistoryLimit=0))
    await stage.step("waits")
    await stage.until_pods(lambda pods: len(pods) == 1)
    await stage.step("started")
    await stage.end(await stage.active())
    await stage.until(CRON_JOBS, "tick", lambda c: "lastSuccessfulTime" in c["status"])
    await stage.step("done, and forgotten")
    await stage.patch(CRON_JOBS, "tick", {"spec": {"suspend": True}})
    await stage.step("suspended")
    await stage.delete(CRON_JOBS, "tick")
    await stage.step("deleted")


@topic
async def cron_job_replaces(stage: Stage) -> None:
    await stage.create(CRON_JOBS, cron(concurrencyPolicy="Replace"))
    await stage.until_pods(lambda pods: len(pods) == 1)
    (first,) = await stage.pods()
    await stage.step("first")
    await stage.until_gone(PODS, first["metadata"]["name"])
    await stage.until_pods(lambda pods: len(pods) == 1)
    await stage.step("second in its place")


@topic
async def cron_job_forbids_two(stage: Stage) -> None:
    await stage.create(CRON_JOBS, cron(concurrencyPolicy="Forbid"))
    await stage.until_pods(lambda pods: len(pods) == 1)
    await stage.step("first")
    await stage.until_event("JobAlreadyActive")
    await stage.step("no second")


@topic
async def job_restarts_too_often(stage: Stage) -> None:
    await stage.create(JOBS, job("work", restart="OnFailure", backoffLimit=2))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.step("runs")
    (found,) = await stage.pods()
    restarted = [{**found["status"]["containerStatuses"][0], "restartCount": 2}]
    await stage.patch(
        PODS, found["metadata"]["name"], {"status": {"containerStatuses": restarted}}, subresource="status"
    )
    await stage.step("too often")
    await stage.end(await stage.pods(), "Failed", 137)
    await stage.until(JOBS, "work", is_over)
    await stage.finish()
    await stage.step("failed")


@topic
async def job_counts_by_policy(stage: Stage) -> None:
    made = job("work", backoffLimit=0, podFailurePolicy=failure_policy("Count", onExitCodes=EXIT_42))
    await stage.create(JOBS, made)
    await stage.settle()
    await stage.end(await stage.active(), "Failed", 42)
    await stage.until(JOBS, "work", is_over)
    await stage.step("failed")


@topic
async def job_scales_its_indexes(stage: Stage) -> None:
    await stage.create(JOBS, job("work", completionMode="Indexed", completions=3, parallelism=3))
    await stage.settle()
    found = await by_index(stage)
    await stage.start(list(found.values()))
    await stage.settle()
    await stage.end([found[2]])
    await stage.step("the last one is done")
    await stage.patch(JOBS, "work", {"spec": {"completions": 2, "parallelism": 2}})
    await stage.step("two are enough")
    await stage.end([found[0], found[1]])
    await stage.until(JOBS, "work", is_over)
    await stage.step("complete")


@topic
async def job_is_orphaned(stage: Stage) -> None:
    await stage.create(JOBS, job("work", parallelism=2, completions=2))
    await stage.settle()
    await stage.start((await stage.active())[:1])
    await stage.settle()
    await stage.delete(JOBS, "work", propagation="Orphan")
    await stage.until_gone(JOBS, "work")
    await stage.step("its pods are nobody's")


@topic
async def job_is_deleted_in_the_foreground(stage: Stage) -> None:
    await stage.create(JOBS, job("work", parallelism=2, completions=2))
    await stage.settle()
    await stage.start(await stage.active())
    await stage.settle()
    await stage.delete(JOBS, "work", propagation="Foreground")
    await stage.step("waits for its pods")
    await stage.finish()
    await stage.until_gone(JOBS, "work")
    await stage.step("gone")
