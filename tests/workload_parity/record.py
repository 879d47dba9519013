"""Records what the real kube-controller-manager does in the scenarios: `python -m tests.workload_parity.record`.

Give names of topics or scenarios to record only those; `--kubeconfig` uses a control plane that runs already.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
from pathlib import Path

from holokube.testing.controlplane import ControlPlane, find_or_build, programs_for
from tests.workload_parity.scenario import Topic
from tests.workload_parity.scenarios import TOPICS
from tests.workload_parity.targets import Steps, play_real

DATA = Path(__file__).parent / "data"
COMPONENTS = ("controller-manager",)


def load(topic: Topic) -> dict[str, Steps]:
    path = DATA / f"{topic.name}.json.gz"
    if not path.exists():
        return {}
    recorded: dict[str, list[list[object]]] = json.loads(gzip.decompress(path.read_bytes()))
    return {name: [(step[0], step[1]) for step in steps] for name, steps in recorded.items()}  # type: ignore[misc]  # the file is ours


def save(topic: Topic, recorded: dict[str, Steps]) -> None:
    known = {scenario.name for scenario in topic.scenarios}
    text = json.dumps({name: recorded[name] for name in sorted(recorded) if name in known}, sort_keys=True)
    DATA.mkdir(exist_ok=True)
    (DATA / f"{topic.name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def record(kubeconfig: str, wanted: list[str]) -> None:
    chosen = [
        (topic, scenario) for topic in TOPICS for scenario in topic.scenarios
        if not wanted or topic.name in wanted or scenario.name in wanted
    ]  # fmt: skip
    played, failures = asyncio.run(play_real(kubeconfig, [scenario for _, scenario in chosen]))
    for topic in TOPICS:
        fresh = {s.name: played[s.name] for t, s in chosen if t is topic and s.name in played}
        if fresh:
            save(topic, {**load(topic), **fresh})
    print(f"recorded {len(played)} scenarios")
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(chosen)} scenarios failed", failures)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.workload_parity.record", description=__doc__)
    parser.add_argument("wanted", nargs="*", help="topics or scenarios; all by default")
    parser.add_argument("--kubeconfig", default="")
    options = parser.parse_args()
    if options.kubeconfig:
        record(options.kubeconfig, options.wanted)
        return
    binaries = find_or_build(build=True, programs=programs_for(COMPONENTS))
    with ControlPlane(binaries, components=COMPONENTS) as plane:
        record(str(plane.kubeconfig), options.wanted)


if __name__ == "__main__":
    main()
