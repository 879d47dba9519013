"""What the provisioner notes about decisions, compared with noting each of them anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.karpenter.provisioning.provisioner import Provisioner
from holokube.karpenter.scheduling.problem import pod_key
from holokube.karpenter.state.pod_times import PodTimes
from holokube.kube.types import JsonObject
from tests.karpenter.objects import pod


class _Books:
    """A provisioner that only notes; one that ``forgets`` has nothing to go by from the time before."""

    def __init__(self, *, forgets: bool) -> None:
        self.clock, self.times, self.waits_s = VirtualClock(), PodTimes(), list[float]()
        metrics, state = SimpleNamespace(pod_decided=self.waits_s.append), SimpleNamespace(pod_times=self.times)
        unused = cast("Any", None)
        self._provisioner = Provisioner(
            self.clock, unused, cast("Any", metrics), cast("Any", state), unused, unused, unused, unused
        )
        self._forgets = forgets

    def solve(self, pods: list[JsonObject], failed: list[JsonObject]) -> None:
        self.clock.advance(1)
        for one in pods:
            self.times.seen(pod_key(one), self.clock.time() - 0.5)
        self._provisioner._book(pods, map(pod_key, failed))
        if self._forgets:
            self._provisioner._booked.clear()
        self.times.expect_on_claim([pod_key(one) for one in pods if one not in failed], "c")


_rounds = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["new", "bound", "gone", "failed", "same", "same"]), min_size=4, max_size=4),
        st.lists(st.integers(0, 3), unique=True),
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_rounds)
def test_what_is_noted_about_pods_is_the_same_as_if_all_were_noted_each_time(
    rounds: list[tuple[list[str], list[int]]]
) -> None:
    books = _Books(forgets=False), _Books(forgets=True)
    pods = [pod(f"p{number}") for number in range(4)]
    for changes, asked in rounds:
        for number, change in enumerate(changes):
            if change == "gone":
                for one in books:
                    one.times.forget(pod_key(pods[number]))
            if change in ("new", "gone"):
                pods[number] = pod(f"p{number}")
            elif change == "bound":
                pods[number] = pod(f"p{number}", node_name="n")
        failed = [pods[number] for number in asked if changes[number] == "failed"]
        for one in books:
            one.solve([pods[number] for number in asked], failed)
        kept, anew = books
        assert kept.waits_s == anew.waits_s
        assert kept.times.expected_on_claim("c") == anew.times.expected_on_claim("c")
