"""The page of a run on virtual time: ``run_scenario(..., observe=page.observe)``, for one run after the other."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.pace import Pace
from holokube.client.resources import NODES, PODS
from holokube.dashboard.attach import attach
from holokube.dashboard.dashboard import Dashboard
from holokube.dashboard.node_facts import prices_from
from holokube.lab.run.runner import RunningLab


class RunPage:
    """A dashboard whose time can be slowed down and paused. Looking on changes nothing; breaking a node does."""

    def __init__(self, clock: Clock, *, pace: Pace | None = None, port: int = 0) -> None:
        """``clock`` is real time; ``pace`` is how the first run begins, as fast as possible unless told."""
        self.pace = pace if pace is not None else Pace()
        self._dashboard = Dashboard(clock, port=port)

    def start(self) -> str:
        """Begin to serve; returns the address."""
        return self._dashboard.start()

    def observe(self, lab: RunningLab) -> None:
        """Show a run from now on."""
        informers = lab.living.informers
        lab.loop.set_pace(self.pace)
        self._dashboard.show(attach(
            lab.clock, informers.get(NODES), informers.get(PODS), journal=lab.journal, client=lab.client,
            pace=self.pace, price_of=prices_from(lab.scenario.catalog), title=f"{lab.scenario.name}: {lab.policy.name}",
        ))  # fmt: skip

    def end_run(self, note: str = "the run is over") -> None:
        """Pages keep the last picture, with a note."""
        self._dashboard.clear(note)

    def stop(self) -> None:
        """End it."""
        self._dashboard.stop()
