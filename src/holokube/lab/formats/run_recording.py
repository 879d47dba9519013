"""A run of a scenario as a timeline: everything that happened in it, for others to replay."""

from __future__ import annotations

from holokube.base.log import counted
from holokube.lab.formats.recording import Recording
from holokube.lab.formats.timeline import Timeline
from holokube.lab.run.runner import OnProgress, RunningLab, run_scenario
from holokube.lab.scenario.model import PolicySpec, Scenario


def record_run(scenario: Scenario, policy: PolicySpec, on_progress: OnProgress | None = None) -> Timeline:
    """Run it, and see what its cluster saw, from the moment at which the scenario begins."""
    recordings: list[Recording] = []

    def begin(lab: RunningLab) -> None:
        recordings.append(Recording(lab.clock, lab.registry.store))

    # As with any other run, what its components have to say is nobody's reading.
    with counted():
        run_scenario(scenario, policy, on_progress=on_progress, observe=begin)
    (recording,) = recordings
    recording.close()
    # What is written while everything is taken down is no part of the run.
    return recording.timeline().between(0.0, scenario.duration_s)
