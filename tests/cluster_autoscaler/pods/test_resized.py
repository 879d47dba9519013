"""Which pods take something else than they ask for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.cluster_autoscaler.pods.resized import has_what_it_asks_for
from holokube.packing.podclass import requests_of
from tests.cluster_autoscaler.scale_down.world import make_pod

AMOUNTS = st.none() | st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "2"])})
RESOURCES = st.none() | st.fixed_dictionaries({}, optional={"requests": AMOUNTS})
STATUS = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "d", "other"])}, optional={"resources": RESOURCES, "allocatedResources": AMOUNTS})
CONDITIONS = st.sampled_from([[], [{"type": "PodResizePending", "reason": "Infeasible"}]])


@given(st.lists(RESOURCES, min_size=1, max_size=2), st.lists(STATUS, max_size=3), st.booleans(), CONDITIONS)
def test_a_pod_that_has_what_it_asks_for_takes_what_its_spec_says(
    asked: list[Any], told: list[Any], is_init: bool, conditions: list[Any]
) -> None:
    containers = [{"name": name, "resources": one} for name, one in zip("cd", asked, strict=False)]
    status = {"initContainerStatuses" if is_init else "containerStatuses": told, "conditions": conditions}
    pod = {**make_pod("p"), "spec": {"containers": containers}, "status": status}
    if has_what_it_asks_for(pod):
        assert requests_of(pod, use_status=True) == requests_of(pod)


def test_most_pods_do() -> None:
    pod = make_pod("p", cpu="1", memory="1Gi")
    requests = {"cpu": "1", "memory": "1Gi"}
    assert has_what_it_asks_for(pod)
    status = {"name": "c", "resources": {"requests": requests}, "allocatedResources": requests}
    assert has_what_it_asks_for({**pod, "status": {"containerStatuses": [status]}})
    assert not has_what_it_asks_for({**pod, "status": {"containerStatuses": [{**status, "allocatedResources": {}}]}})
    assert not has_what_it_asks_for({**pod, "status": {"resources": {}}})
