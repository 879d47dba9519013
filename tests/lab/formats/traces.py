"""Traces in SimKube's form, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.builders import deployment

START = 1_743_286_823
POD_HASH = 10_855_072_724_872_030_168


def cron_job(name: str = "hello", namespace: str = "default") -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "OnFailure"}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": namespace, "annotations": {}},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }


def simkube_trace(**changed: Any) -> dict[str, Any]:
    """A CronJob and a Deployment that is scaled; all fields are there, as SimKube demands."""
    web, hello = deployment("web", "shop", 2), cron_job()
    lifecycles: list[Any] = [
        {"Finished": [START + 38, START + 68]},
        {"Finished": [START + 98, START + 148]},
        {"Running": START + 158},
        "Empty",
    ]
    return {
        "version": 2,
        "config": {
            "trackedObjects": {
                "apps/v1.Deployment": {"podSpecTemplatePaths": ["/spec/template"]},
                "batch/v1.CronJob": {"trackLifecycle": True},
            }
        },
        "events": [
            {"ts": START, "applied_objs": [], "deleted_objs": []},
            {"ts": START, "applied_objs": [web, hello], "deleted_objs": []},
            {"ts": START + 60, "applied_objs": [deployment("web", "shop", 5)], "deleted_objs": []},
            {"ts": START + 205, "applied_objs": [], "deleted_objs": [hello]},
        ],
        "index": {"apps/v1.Deployment": {"shop/web": 1}, "batch/v1.CronJob": {"default/hello": 2**64 - 1}},
        "pod_lifecycles": {("batch/v1.CronJob", "default/hello"): {POD_HASH: lifecycles}},
        **changed,
    }


def write_trace(folder: Path, **changed: Any) -> Path:
    path = folder / "trace.sktrace"
    path.write_bytes(msgspec.msgpack.encode(simkube_trace(**changed)))
    return path
