"""Prints where ours differs from the recordings: `python -m tests.workload_parity.compare [topic or scenario ...]`."""

from __future__ import annotations

import logging
import sys

from tests.workload_parity.normalize import differences
from tests.workload_parity.record import load
from tests.workload_parity.scenario import Scenario
from tests.workload_parity.scenarios import TOPICS
from tests.workload_parity.targets import Steps, play_embedded


def compare(scenario: Scenario, real: Steps) -> list[str]:
    """One line per difference, each with the step it shows up in."""
    ours = play_embedded(scenario)
    assert [title for title, _ in real] == [title for title, _ in ours], "the recording is of another script"
    return [
        f"{title}: {line}"
        for (title, recorded), (_, played) in zip(real, ours, strict=True)
        for line in differences(recorded, played)
    ]


def main() -> None:
    wanted = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    total = good = 0
    for topic in TOPICS:
        recorded = load(topic)
        for scenario in topic.scenarios:
            if wanted and topic.name not in wanted and scenario.name not in wanted:
                continue
            total += 1
            if scenario.name not in recorded:
                print(f"{scenario.name}: not recorded")
                continue
            try:
                lines = compare(scenario, recorded[scenario.name])
            except Exception as error:
                lines = [f"{error!r} {getattr(error, '__notes__', '')}"]
            good += not lines
            for line in lines:
                print(f"{scenario.name}: {line}")
    print(f"{good} of {total} scenarios are equal")


if __name__ == "__main__":
    main()
