"""A controller that depends on the time of day, and a whole day of its life in a tenth of a second.

    python examples/virtual_time_controller.py

``Sleeper`` switches Deployments off at night; an annotation says from when to when. It is written against
``holokube.client`` and ``holokube.runtime`` and knows nothing of virtual time; given an HTTP transport and
the wall clock, the same class runs against a live cluster.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import DEPLOYMENTS
from holokube.runtime.app import App
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerRunner, InformerSource, enqueue_self, split_key
from holokube.testing import Cluster

NIGHT = "example.com/night"  # "20-6": asleep from 20:00 to 6:00, UTC
REPLICAS_BY_DAY = "example.com/replicas-by-day"


class Sleeper:
    """Scales Deployments to zero at night and back in the morning."""

    def __init__(self, clock: Clock, client: Client, deployments: Informer) -> None:
        self._clock = clock
        self._client = client
        self._deployments = deployments.lister

    async def reconcile(self, key: str) -> Result | None:
        deployment = self._deployments.by_key(key)
        night = (deployment or {}).get("metadata", {}).get("annotations", {}).get(NIGHT)
        if deployment is None or night is None:
            return None
        now = self._clock.now()
        asleep, next_switch = night_state(night, now)
        wanted = 0 if asleep else int(deployment["metadata"]["annotations"].get(REPLICAS_BY_DAY, "1"))
        if deployment["spec"]["replicas"] != wanted:
            namespace, name = split_key(key)
            scale = await self._client.get_scale(DEPLOYMENTS, name, namespace)
            await self._client.update_scale(
                DEPLOYMENTS, name, {**scale, "spec": {"replicas": wanted}}, namespace
            )
        return Result(requeue_after_s=(next_switch - now).total_seconds())


def night_state(night: str, now: datetime) -> tuple[bool, datetime]:
    """Whether it is night, and when that changes: pure, so that it can be tested without any cluster."""
    start, end = (int(hour) for hour in night.split("-"))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    switches = [midnight + timedelta(days=day, hours=hour) for day in (0, 1) for hour in (start, end)]
    hour = now.hour
    asleep = start <= hour < end if start < end else hour >= start or hour < end
    return asleep, min(switch for switch in switches if switch > now)


def deployment(name: str, night: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "annotations": {NIGHT: night, REPLICAS_BY_DAY: str(replicas)}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "registry.example.com/app:1"}]},
            },
        },
    }


def a_day(hours: int = 24) -> list[tuple[str, dict[str, int]]]:
    """What the replicas are, hour by hour."""
    timeline: list[tuple[str, dict[str, int]]] = []
    with Cluster("virtual", seed=1) as cluster:
        client, clock = cluster.client, cluster.clock

        async def live() -> None:
            for spec in (deployment("shop", "20-6", 10), deployment("reports", "8-18", 4)):
                await client.create(DEPLOYMENTS, spec, "default")
            informer = Informer(clock, client, DEPLOYMENTS)
            app = App(clock)
            app.add(InformerRunner("informers", [informer]))
            sleeper = Sleeper(clock, client, informer)
            app.add(
                Controller(
                    clock, "sleeper", sleeper.reconcile, sources=[InformerSource(informer, enqueue_self)]
                )
            )
            app.add(Observer(clock, client, hours, timeline, app))
            await app.run()

        cluster.run(live)
    return timeline


class Observer:
    """Writes down the replicas every hour, and ends the run after so many hours."""

    name = "observer"

    def __init__(
        self, clock: Clock, client: Client, hours: int, timeline: list[tuple[str, dict[str, int]]], app: App
    ) -> None:
        self._clock, self._client, self._hours, self._timeline, self._app = (
            clock,
            client,
            hours,
            timeline,
            app,
        )

    async def run(self, _stop: object) -> None:
        for _ in range(self._hours):
            await self._clock.sleep(3600)
            listed = await self._client.list(DEPLOYMENTS)
            replicas = {obj["metadata"]["name"]: obj["spec"]["replicas"] for obj in listed.items}
            self._timeline.append((f"{self._clock.now():%H:%M}", replicas))
        self._app.stop("the day is over")


def main() -> None:
    started_s = time.perf_counter()
    timeline = a_day()
    took_s = time.perf_counter() - started_s
    print("time   shop        reports")
    for hour, replicas in timeline:
        print(f"{hour}  {'#' * replicas['shop']:<10}  {'#' * replicas['reports']}")
    print(f"\n24 hours of cluster life in {took_s:.2f} s.")


if __name__ == "__main__":
    main()
