from __future__ import annotations

from typing import Any

import pytest

from holokube.apiserver import repeats
from holokube.kube.errors import Invalid
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


def test_only_so_many_texts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "KEPT", 4)

    async def body(world: World) -> None:
        for number in range(12):
            made = await world.create("pods", of_template(terminationGracePeriodSeconds=number))
            assert made["spec"]["terminationGracePeriodSeconds"] == number
        remembered = world.registry.writes._repeats
        assert len(remembered._readings) <= 4 and len(remembered._prepared) <= 4

    in_world(body)
