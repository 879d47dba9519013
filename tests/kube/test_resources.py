from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube import resources as r
from tests.kube.recordings import recorded

MI = 1024 * 1024 * 1000


def container(
    cpu: str = "", memory: str = "", *, limits: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    requests = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}, **fields}


def sidecar(cpu: str = "", memory: str = "", **fields: Any) -> dict[str, Any]:
    return container(cpu, memory, restartPolicy="Always", **fields)


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


def test_pods_add_up_as_upstream_adds_them_up() -> None:
    for case in recorded("pod_resources"):
        use_status = case["use_status"]
        requests = r.pod_requests(case["pod"], use_status=use_status)
        assert (case, requests) == (case, r.parse_resources(case["requests"]))
        limits = r.pod_limits(case["pod"], use_status=use_status)
        assert (case, limits) == (case, r.parse_resources(case["limits"]))
        without = r.pod_requests(case["pod"], use_status=use_status, exclude_overhead=True)
        assert (case, without) == (case, r.parse_resources(case["requests_without_overhead"]))


@pytest.mark.parametrize(
    ("case", "cpu_milli"),
    [
        # 100 + 200
        (pod(container("100m"), container("200m")), 300),
        # max(300, 250)
        (pod(container("100m"), container("200m"), initContainers=[container("250m")]), 300),
        # max(300, 500): the largest init container, not their sum
        (pod(container("300m"), initContainers=[container("500m"), container("400m")]), 500),
        # 100 + sidecar 50
        (pod(container("100m"), initContainers=[sidecar("50m")]), 150),
        # max(100 + 50, 50 + 200): the init container runs beside the sidecar before it
        (pod(container("100m"), initContainers=[sidecar("50m"), container("200m")]), 250),
        # max(100 + 50, 200): the sidecar starts after the init container
        (pod(container("100m"), initContainers=[container("200m"), sidecar("50m")]), 200),
        # max(10 + 30 + 40, 30 + 100, 30 + 40 + 90)
        (pod(container("10m"),
             initContainers=[sidecar("30m"), container("100m"), sidecar("40m"), container("90m")]), 160),
        # 100 + overhead 25
        (pod(container("100m"), overhead={"cpu": "25m"}), 125),
        # spec.resources stands instead of the sum, overhead still comes on top
        (pod(container("100m"), resources={"requests": {"cpu": "1"}}, overhead={"cpu": "25m"}), 1025),
        (pod(container("100m"), resources={"limits": {"cpu": "1"}}), 100),
    ],
)  # fmt: skip
def test_requested_cpu(case: dict[str, Any], cpu_milli: int) -> None:
    assert r.pod_requests(case) == {"cpu": cpu_milli}


def test_every_resource_is_counted_for_itself() -> None:
    case = pod(container("100m", "64Mi"), initContainers=[container("1", "32Mi")])
    assert r.pod_requests(case) == {"cpu": 1000, "memory": 64 * MI}


def test_pod_level_amounts_count_only_for_cpu_memory_and_hugepages() -> None:
    whole = {"memory": "1Gi", "hugepages-2Mi": "4Mi", "gpu": "3"}
    case = pod(container("100m"), resources={"requests": whole})
    assert r.pod_requests(case) == {"cpu": 100, "memory": 1024 * MI, "hugepages-2Mi": 4 * MI}
    assert r.pod_requests(case, skip_pod_level=True) == {"cpu": 100}


def resizing(reason: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {
        "containerStatuses": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}},
                "allocatedResources": {"cpu": "400m"},
            }
        ]
    }
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return {**pod(container("500m", limits={"cpu": "900m"})), "status": status}


def test_a_pod_in_resize_counts_with_the_largest_amount() -> None:
    assert r.pod_requests(resizing()) == {"cpu": 500}
    assert r.pod_requests(resizing(), use_status=True) == {"cpu": 500}
    assert r.pod_requests(resizing("Deferred"), use_status=True) == {"cpu": 500}
    assert r.pod_limits(resizing(), use_status=True) == {"cpu": 900}


def test_an_infeasible_resize_counts_with_what_the_pod_has() -> None:
    assert r.pod_requests(resizing("Infeasible"), use_status=True) == {"cpu": 400}
    assert r.pod_limits(resizing("Infeasible"), use_status=True) == {"cpu": 600}


def test_overhead_is_added_only_to_limits_that_exist() -> None:
    case = pod(container(limits={"cpu": "1"}), overhead={"cpu": "100m", "memory": "10Mi"})
    assert r.pod_limits(case) == {"cpu": 1100}
    assert r.pod_limits(case, exclude_overhead=True) == {"cpu": 1000}


def test_missing_requests_can_be_assumed_but_a_written_zero_stays() -> None:
    case = pod(container("0"), container("", "1Mi"))
    assert r.pod_requests(case, assume_missing=r.NONZERO_REQUESTS) == {"cpu": 100, "memory": 201 * MI}


def test_claims_on_node_resources_are_added_on_demand() -> None:
    claims = [{"resources": {"cpu": "2"}}, {"resources": {"cpu": "1", "memory": "1Mi"}}]
    case = {**pod(container("100m")), "status": {"nodeAllocatableResourceClaimStatuses": claims}}
    assert r.pod_requests(case) == {"cpu": 100}
    assert r.pod_requests(case, use_claim_status=True) == {"cpu": 3100, "memory": MI}


def test_an_empty_pod_requests_nothing() -> None:
    assert r.pod_requests({}) == {}
    assert r.pod_limits({"spec": {"containers": [{"name": "c"}]}}) == {}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (pod(container()), "BestEffort"),
        (pod(container("0")), "BestEffort"),
        (pod({"name": "c", "resources": {"requests": {"gpu": "1"}}}), "BestEffort"),
        (pod(container("1", "1Gi", limits=BOTH)), "Guaranteed"),
        (pod(container("1000m", "1024Mi", limits=BOTH)), "Guaranteed"),
        (pod(container("1", "1Gi", limits={"cpu": "1"})), "Burstable"),
        (pod(container("500m", "1Gi", limits=BOTH)), "Burstable"),
        (pod(container("1", "1Gi", limits=BOTH), container()), "Burstable"),
        (pod(container("1", "1Gi", limits=BOTH), initContainers=[container()]), "Burstable"),
        (pod(container(limits=BOTH)), "Burstable"),
        (pod(container(), resources={"requests": BOTH, "limits": BOTH}), "Guaranteed"),
        (pod(container("1", "1Gi", limits=BOTH), resources={"requests": {"cpu": "1"}}), "Burstable"),
        (pod(container(), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}), "Burstable"),
        (pod(container("1"), resources={}), "BestEffort"),
    ],
)
def test_quality_of_service(case: dict[str, Any], expected: str) -> None:
    assert r.qos_class(case) == expected


def test_amounts_are_written_with_fitting_suffixes() -> None:
    vector = {
        "cpu": 1500, "memory": 1536 * MI, "hugepages-2Mi": 4 * MI, "pods": 110_000, "example.com/gpu": 2000
    }  # fmt: skip
    assert r.to_json(vector) == {
        "cpu": "1500m", "memory": "1536Mi", "hugepages-2Mi": "4Mi", "pods": "110", "example.com/gpu": "2"
    }  # fmt: skip
    assert r.parse_resources(r.to_json(vector)) == vector


def test_fitting_ignores_zero_requests_and_misses_unknown_names() -> None:
    assert r.fits({"cpu": 100}, {"cpu": 100})
    assert not r.fits({"cpu": 101}, {"cpu": 100})
    assert not r.fits({"gpu": 1}, {"cpu": 100})
    assert r.fits({"gpu": 0}, {"gpu": -5})
    assert r.lacking({"cpu": 101, "memory": 1, "gpu": 1}, {"cpu": 100, "memory": 1}) == ["cpu", "gpu"]


names = st.sampled_from(["cpu", "memory", "gpu"])
vectors = st.dictionaries(names, st.integers(0, 10**15))


@given(vectors, vectors, vectors)
def test_vectors_add_and_subtract(a: dict[str, int], b: dict[str, int], c: dict[str, int]) -> None:
    before = dict(a)
    assert r.add(r.add(a, b), c) == r.add(a, r.add(b, c)) == r.total_of([a, b, c])
    rest = r.subtract(r.add(a, b), b)
    assert all(rest[name] == a.get(name, 0) for name in rest)
    assert r.scale(a, 3) == r.total_of([a, a, a])
    assert r.maximum(a, b) == r.maximum(b, a)
    assert a == before


@given(vectors, vectors)
def test_what_fits_leaves_nothing_negative(requests: dict[str, int], available: dict[str, int]) -> None:
    rest = r.subtract(available, requests)
    assert r.fits(requests, available) == all(milli >= 0 for milli in rest.values())
    assert r.fits(requests, available) == (r.lacking(requests, available) == [])
    assert r.fits(requests, r.maximum(requests, available))


@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=5), st.integers(0, 500))
def test_a_pod_requests_its_highest_moment(inits: list[tuple[int, bool]], main_milli: int) -> None:
    """Replays the start of the pod: which containers run at the same time, and what they use together."""
    running, moments = 0, []
    for milli, is_sidecar in inits:
        moments.append(running + milli)
        running += milli if is_sidecar else 0
    moments.append(running + main_milli)
    listed = [(sidecar if is_sidecar else container)(f"{milli}m") for milli, is_sidecar in inits]
    assert r.pod_requests(pod(container(f"{main_milli}m"), initContainers=listed))["cpu"] == max(moments)
