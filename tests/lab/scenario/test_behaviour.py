from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.hollow.behaviour import behaviour_of
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.profile import Spread
from holokube.kube.types import JsonObject
from holokube.lab.scenario.behaviour import Failure, PodBehaviour, annotated

FIXED = Spread(min_s=3.0, max_s=3.0)
UNIFORM = Spread(min_s=2.0, max_s=8.0)


def pod(annotations: dict[str, str], uid: str = "1") -> JsonObject:
    return {"metadata": {"name": "p", "uid": uid, "annotations": annotations},
            "spec": {"containers": [{"name": "c"}]}}  # fmt: skip


def test_a_behaviour_without_wishes_leaves_no_trace() -> None:
    assert PodBehaviour().annotations() == {}
    assert PodBehaviour().drawn(Rng(1)) == {}


def test_hollow_nodes_understand_what_a_template_is_told() -> None:
    told = PodBehaviour(
        start_up=FIXED, ready_after=FIXED, run_time=FIXED, stop_time=FIXED, cpu_usage="60%", memory_usage="100Mi"
    ).annotations()
    found = behaviour_of(pod(told), 0.0, KeyedDraws(1))
    assert (found.start_s, found.ready_s, found.run_s, found.stop_s) == (3.0, 3.0, 3.0, 3.0)
    assert found.problems == ()


def test_pods_of_a_template_draw_their_start_for_themselves() -> None:
    told = PodBehaviour(start_up=UNIFORM, stop_time=UNIFORM).annotations()
    found = [behaviour_of(pod(told, str(number)), 0.0, KeyedDraws(1)) for number in range(50)]
    starts = [one.start_s for one in found]
    assert all(start is not None and 2.0 <= start <= 8.0 for start in starts)
    assert len(set(starts)) > 40
    assert all(one.stop_s is not None and 2.0 <= one.stop_s <= 8.0 for one in found)


def test_pods_of_jobs_draw_their_run_time_for_themselves() -> None:
    told = PodBehaviour(run_time=UNIFORM).annotations()
    found = behaviour_of(pod(told), 0.0, KeyedDraws(1))
    assert found.run_s is None
    assert found.job_run_s is not None
    assert 2.0 <= found.job_run_s <= 8.0


def test_a_failing_template_fails_as_told() -> None:
    told = PodBehaviour(failure=Failure(reason="OOMKilled", after=FIXED)).annotations()
    found = behaviour_of(pod(told), 0.0, KeyedDraws(1))
    assert (found.failure, found.fails_after_s, found.exit_code) == ("OOMKilled", 3.0, 137)


@given(st.integers())
def test_whatever_arrives_has_drawn_values_within_their_bounds(seed: int) -> None:
    behaviour = PodBehaviour(start_up=UNIFORM, run_time=Spread(min_s=60.0, mean_s=600.0, max_s=3600.0))
    found = behaviour_of(pod(behaviour.drawn(Rng(seed))), 0.0, KeyedDraws(1))
    assert found.start_s is not None
    assert found.run_s is not None
    assert 2.0 <= found.start_s <= 8.0
    assert 60.0 <= found.run_s <= 3600.0
    assert found.problems == ()


def test_a_share_of_what_arrives_fails() -> None:
    behaviour, rng = PodBehaviour(failure=Failure(share=0.25, exit_code=3)), Rng(1)
    drawn = [behaviour_of(pod(behaviour.drawn(rng)), 0.0, KeyedDraws(1)) for _ in range(2000)]
    failed = [one for one in drawn if one.failure]
    assert 420 < len(failed) < 580
    assert all(one.exit_code == 3 for one in failed)


def test_annotations_go_to_the_pods_of_whatever_kind() -> None:
    template: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    assert annotated({"kind": "Pod", "metadata": {"name": "p"}}, {"x": "1"})["metadata"]["annotations"] == {"x": "1"}
    deployment = annotated({"kind": "Deployment", "spec": {"template": template}}, {"x": "1"})
    assert deployment["spec"]["template"]["metadata"] == {"labels": {"a": "b"}, "annotations": {"x": "1"}}
    cron = annotated({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}}, {"x": "1"})
    assert cron["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] == {"x": "1"}
    assert template == {"metadata": {"labels": {"a": "b"}}, "spec": {}}


def test_what_a_manifest_says_itself_stays() -> None:
    template: JsonObject = {"metadata": {"annotations": {"x": "own"}}}
    found = annotated({"kind": "Deployment", "spec": {"template": template}}, {"x": "1", "y": "2"})
    assert found["spec"]["template"]["metadata"]["annotations"] == {"x": "own", "y": "2"}


def test_objects_without_pods_stay_as_they_are() -> None:
    service: JsonObject = {"kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    assert annotated(service, {"x": "1"}) is service
