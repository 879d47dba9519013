from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import repeats
from holokube.apiserver.kinds import annotation_validation, pod_warnings, security_validation
from holokube.apiserver.kinds.pods import Pod
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import ApiError, Invalid
from tests.apiserver.worlds import World, in_world
from tests.builders import pod


def of_template(**spec: Any) -> dict[str, Any]:
    made = pod()
    meta = {"generateName": "web-", "namespace": "default", "labels": {"app": "web"}}
    return {**made, "metadata": meta, "spec": {**made["spec"], **spec}}


def without_identity(made: dict[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in made["metadata"].items() if k not in ("name", "uid", "resourceVersion")}
    return {**made, "metadata": meta}


def test_pods_of_one_template_are_all_made_as_the_first_was() -> None:
    async def body(world: World) -> None:
        made = [await world.create("pods", of_template()) for _ in range(3)]
        assert len({each["metadata"]["uid"] for each in made}) == 3
        assert without_identity(made[0]) == without_identity(made[1]) == without_identity(made[2])
        assert list(made[0]) == list(made[2]) and list(made[0]["spec"]) == list(made[2]["spec"])
        assert made[1]["spec"] is made[2]["spec"], "what is never changed need not be kept twice"

    in_world(body)


def test_the_time_of_a_later_pod_is_its_own() -> None:
    async def body(world: World) -> None:
        await world.create("pods", of_template())
        await world.clock.sleep(60)
        meta = (await world.create("pods", of_template()))["metadata"]
        assert meta["creationTimestamp"] == meta["managedFields"][0]["time"] == "2026-01-01T00:01:00Z"

    in_world(body)


def test_a_body_that_was_changed_is_another_body() -> None:
    async def body(world: World) -> None:
        given = of_template()
        first = await world.create("pods", given)
        given["spec"]["containers"][0]["image"] = "other:1"
        given["metadata"]["labels"]["tier"] = "x"
        second = await world.create("pods", given)
        assert first["spec"]["containers"][0]["image"] != "other:1"
        assert second["spec"]["containers"][0]["image"] == "other:1"
        owned = second["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"]
        assert "f:tier" in owned

    in_world(body)


def test_what_is_wrong_with_a_pod_is_wrong_with_the_next_one() -> None:
    async def body(world: World) -> None:
        for _ in range(2):
            with pytest.raises(Invalid, match="restartPolicy"):
                await world.create("pods", of_template(restartPolicy="Sometimes"))

    in_world(body)


def test_admission_has_its_say_about_every_pod() -> None:
    async def body(world: World) -> None:
        first = await world.create("pods", of_template())
        await world.create("priorityclasses", {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
            "value": 7, "globalDefault": True,
        }, "scheduling.k8s.io")  # fmt: skip
        second = await world.create("pods", of_template())
        assert (first["spec"]["priority"], second["spec"]["priority"]) == (0, 7)

    in_world(body)


def test_annotations_that_mean_nothing_to_the_server_keep_no_two_pods_apart() -> None:
    def annotated(name: str, value: str) -> dict[str, Any]:
        made = of_template()
        return {**made, "metadata": {**made["metadata"], "annotations": {name: value}}}

    async def body(world: World) -> None:
        made = [await world.create("pods", annotated("example.com/run", str(number))) for number in range(3)]
        assert made[0]["spec"] is made[1]["spec"] is made[2]["spec"]
        assert [one["metadata"]["annotations"]["example.com/run"] for one in made] == ["0", "1", "2"]
        cost = "controller.kubernetes.io/pod-deletion-cost"
        await world.create("pods", annotated(cost, "1"))
        with pytest.raises(Invalid, match="32bit"):
            await world.create("pods", annotated(cost, "x"))

    in_world(body)


@pytest.mark.parametrize(
    "name",
    [
        annotation_validation.MIRROR, annotation_validation._TOLERATIONS, annotation_validation._DELETION_COST,
        security_validation.SECCOMP_POD, security_validation.SECCOMP_CONTAINER, security_validation.APPARMOR_CONTAINER,
        *(name for name, _ in pod_warnings._DEPRECATED_ANNOTATIONS),
    ],
)  # fmt: skip
def test_annotations_that_rules_look_at_keep_pods_apart(name: str) -> None:
    keys = set()
    for value in ("a", "b"):
        made = of_template()
        keys.add(Pod().repeat_key({**made, "metadata": {**made["metadata"], "annotations": {name: value}}}))
    assert len(keys) == 2


def test_only_so_many_texts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "KEPT", 4)

    async def body(world: World) -> None:
        for number in range(12):
            made = await world.create("pods", of_template(terminationGracePeriodSeconds=number))
            assert made["spec"]["terminationGracePeriodSeconds"] == number
        remembered = world.registry.writes._repeats
        assert len(remembered._readings) <= 4 and len(remembered._prepared) <= 4

    in_world(body)


METADATA = st.fixed_dictionaries(
    {"generateName": st.sampled_from(["job-a-", "job-b-", "Bad-", ""])},
    optional={
        "labels": st.dictionaries(st.sampled_from(["a", "b/c", "bad key"]), st.sampled_from(["x", "y", ""])),
        "annotations": st.dictionaries(
            st.sampled_from([
                "n", "pod.beta.kubernetes.io/init-containers", "controller.kubernetes.io/pod-deletion-cost",
                "container.apparmor.security.beta.kubernetes.io/c", "seccomp.security.alpha.kubernetes.io/pod",
                "scheduler.alpha.kubernetes.io/critical-pod", "Kubernetes.io/x", "bad key",
            ]),
            st.sampled_from(["v", "1", "runtime/default"]),
        ),
        "finalizers": st.sampled_from([[], ["example.com/f"], ["f"]]),
        "ownerReferences": st.sampled_from([
            [], [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
            [{"apiVersion": "batch/v1", "kind": "Job", "name": "k", "uid": "w"}], [{"kind": "Job"}],
        ]),
        "managedFields": st.sampled_from([[], [{}]]),
        "deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
        "creationTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z", "x"]),
        "unknown": st.just(1),
        "generation": st.sampled_from([0, 3]),
    },
)  # fmt: skip
SPECS = st.sampled_from([
    {}, {"restartPolicy": "Never"}, {"nodeSelector": {"a": "b"}, "unknown": 1}, {"priority": "x"},
    {"hostNetwork": True}, {"containers": []}, {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
    {"terminationGracePeriodSeconds": -1},
])  # fmt: skip
BODIES = st.lists(
    st.tuples(METADATA, SPECS, st.sampled_from([{}, {"status": {"phase": "Running"}}, {"kind": "Job"}, {"more": 1}])),
    min_size=1, max_size=8,
)  # fmt: skip


def created(bodies: list[Any], *, validation: str) -> list[Any]:
    async def body(world: World) -> list[Any]:
        found: list[Any] = []
        for meta, spec, more in bodies:
            made = {**of_template(**spec), **more, "metadata": {**meta, "namespace": "default"}}
            try:
                written = await world.registry.create(
                    world.served("pods"), "default", made, WriteOptions(field_validation=validation)
                )
                found.append((written.stored.raw, written.warnings))
            except ApiError as problem:
                found.append(problem.to_status())
        return found

    return in_world(body)


@settings(max_examples=60, deadline=None)
@given(BODIES, st.sampled_from(["Warn", "Strict", "Ignore"]))
def test_a_pod_like_others_becomes_what_it_would_have_become_as_the_first(bodies: list[Any], validation: str) -> None:
    remembering = created(bodies * 3, validation=validation)
    usual = Pod.is_made_in_numbers
    Pod.is_made_in_numbers = False
    try:
        forgetting = created(bodies * 3, validation=validation)
    finally:
        Pod.is_made_in_numbers = usual
    assert remembering == forgetting
