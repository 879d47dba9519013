"""How the pods of a workload live, told in the words that hollow nodes understand: annotations of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from holokube.base.rng import Rng
from holokube.hollow.behaviour import EXIT_CODE, FAILURE, FAILURES, READY_DELAY, RUN_TIME, START_DELAY, STOP_TIME
from holokube.hollow.profile import Spread
from holokube.hollow.usage import OWN_PREFIX
from holokube.kube.timeformat import format_duration
from holokube.kube.types import JsonObject
from holokube.lab.scenario.errors import Wrong
from holokube.lab.scenario.shapes import Shape
from holokube.lab.scenario.values import SHARE, Choice, Times, UsageCurve, Whole

_STAGE: Final = "{}.stage.kwok.x-k8s.io/{}"
FailureReason = Literal["Error", "OOMKilled", "ErrImagePull"]


@dataclass(frozen=True, slots=True)
class Failure:
    """How pods fail."""

    share: Annotated[float, SHARE] = 1.0
    """The share of pods that fail; less than 1 requires ``arrivals``."""
    reason: Annotated[FailureReason, Choice(words=FAILURES)] = "Error"
    """``ErrImagePull``: the image cannot be pulled. Otherwise the reason with which the container terminates."""
    after: Annotated[Spread | None, Times()] = None
    """How long a container runs before it fails. By default it fails immediately."""
    exit_code: Annotated[int | None, Whole(0, 255)] = None
    """By default 137 for ``OOMKilled``, otherwise 1."""


@dataclass(frozen=True, slots=True)
class PodBehaviour:
    """How the pods of a workload behave. Fields that are left out follow the profile of the cluster.

    Distributions are drawn for each pod. Workloads with ``arrivals`` may use any of them. In other workloads
    ``startUp``, ``stopTime`` and, for Jobs, ``runTime`` may be fixed or uniform; all other times must be fixed.
    """

    start_up: Annotated[Spread | None, Times()] = None
    """Time from the pulled image to a running container."""
    ready_after: Annotated[Spread | None, Times()] = None
    """Time from running to ready, for containers with a readiness or startup probe."""
    run_time: Annotated[Spread | None, Times()] = None
    """How long containers run before they exit. By default services run forever, and pods of Jobs as long as the
    profile says."""
    stop_time: Annotated[Spread | None, Times()] = None
    """Time from SIGTERM to exit, at most the grace period."""
    failure: Annotated[Failure | None, Shape(Failure)] = None
    """How pods fail. By default they do not."""
    cpu_usage: Annotated[str, UsageCurve()] = ""
    """CPU usage of each container."""
    memory_usage: Annotated[str, UsageCurve()] = ""
    """Memory usage of each container."""

    def undrawable(self, jobs: bool) -> Iterator[Wrong]:
        """What pods made of one template cannot draw for themselves; ``jobs`` if they belong to a Job."""
        remedy = "Give a fixed time, or min and max; or let the workload have arrivals."
        for name, spread, uniform in (
            ("startUp", self.start_up, True),
            ("readyAfter", self.ready_after, False),
            ("runTime", self.run_time, jobs),
            ("stopTime", self.stop_time, True),
            ("failure.after", self.failure.after if self.failure else None, False),
        ):
            if spread is None or is_fixed(spread):
                continue
            if spread.mean_s is not None:
                yield Wrong("is exponential, which is for workloads with arrivals", remedy, name)
            elif not uniform:
                yield Wrong("is a distribution, which is for workloads with arrivals", remedy, name)
        if self.failure is not None and self.failure.share < 1:
            remedy = "Let all of them fail, or let the workload have arrivals."
            yield Wrong("pods of one template fail all or not at all", remedy, "failure.share")

    def annotations(self) -> dict[str, str]:
        """For a template of many pods, each of which draws for itself."""
        found = self._usage()
        found |= _spread(self.start_up, START_DELAY, "pod-ready")
        found |= _spread(self.ready_after, READY_DELAY, "")
        found |= _spread(self.stop_time, STOP_TIME, "pod-delete")
        failure = self.failure
        if failure is None:
            return found | _spread(self.run_time, RUN_TIME, "pod-complete")
        return found | _failure(failure, failure.after.min_s if failure.after else None)

    def drawn(self, rng: Rng) -> dict[str, str]:
        """For one pod, or the one Job that is made next."""
        found = self._usage()
        for spread, key in (
            (self.start_up, START_DELAY),
            (self.ready_after, READY_DELAY),
            (self.run_time, RUN_TIME),
            (self.stop_time, STOP_TIME),
        ):
            if spread is not None:
                found[key] = format_duration(spread.at(rng.random()))
        failure = self.failure
        if failure is not None and rng.random() < failure.share:
            found |= _failure(failure, failure.after.at(rng.random()) if failure.after else None)
        return found

    def _usage(self) -> dict[str, str]:
        told = {"cpu": self.cpu_usage, "memory": self.memory_usage}
        return {OWN_PREFIX + what: curve for what, curve in told.items() if curve}


def _failure(failure: Failure, after_s: float | None) -> dict[str, str]:
    found: dict[str, str] = {FAILURE: failure.reason}
    if failure.exit_code is not None:
        found[EXIT_CODE] = str(failure.exit_code)
    if after_s is not None:
        found[RUN_TIME] = format_duration(after_s)
    return found


def is_fixed(spread: Spread | None) -> bool:
    """Whether there is nothing to draw."""
    return spread is None or (spread.mean_s is None and spread.max_s == spread.min_s)


def _spread(spread: Spread | None, key: str, stage: str) -> dict[str, str]:
    """Fixed times have an annotation of holokube's, uniform ones those of a stage of kwok's."""
    if spread is None:
        return {}
    if spread.mean_s is not None:
        # Only what arrives one by one draws these; its companions live an average life.
        return {key: format_duration(spread.mean_s)}
    if is_fixed(spread) or not stage or spread.max_s is None:
        return {key: format_duration(spread.min_s)}
    return {
        _STAGE.format(stage, "delay"): format_duration(spread.min_s),
        _STAGE.format(stage, "jitter-delay"): format_duration(spread.max_s),
    }


def pod_template_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Where a manifest says what its pods are: its template, or for a Pod the manifest itself."""
    spec = manifest.get("spec")
    if manifest.get("kind") == "Pod":
        return manifest
    if not isinstance(spec, Mapping):
        return None
    if manifest.get("kind") == "CronJob":
        job = spec.get("jobTemplate")
        spec = job.get("spec") if isinstance(job, Mapping) else None
    template = spec.get("template") if isinstance(spec, Mapping) else None
    return template if isinstance(template, Mapping) else None


def annotated(manifest: JsonObject, annotations: Mapping[str, str]) -> JsonObject:
    """The manifest with annotations on its pods; what these say themselves already stays. Others are returned as is."""
    if not annotations or pod_template_of(manifest) is None:
        return manifest
    if manifest["kind"] == "Pod":
        return _with_annotations(manifest, annotations)
    spec = manifest["spec"]
    if manifest["kind"] == "CronJob":
        job = spec["jobTemplate"]
        job_spec = {**job["spec"], "template": _with_annotations(job["spec"]["template"], annotations)}
        return {**manifest, "spec": {**spec, "jobTemplate": {**job, "spec": job_spec}}}
    return {**manifest, "spec": {**spec, "template": _with_annotations(spec["template"], annotations)}}


def _with_annotations(template: JsonObject, annotations: Mapping[str, str]) -> JsonObject:
    metadata = template.get("metadata") or {}
    merged = {**annotations, **(metadata.get("annotations") or {})}
    return {**template, "metadata": {**metadata, "annotations": merged}}
