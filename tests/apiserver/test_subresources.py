from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import IN_PROCESS
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.subresources import scale as scale_module
from holokube.kube.errors import ApiError, BadRequest, Conflict, InternalError, Invalid, NotFound, TooManyRequests
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import budget, deployment, node, pod


async def through(
    world: World, plural: str, name: str, door: str, verb: str, body: Any = None, group: str = "", **query: str
) -> Any:
    outcome = await world.registry.subresources.handle(
        world.served(plural, group), "default", name, door, verb, body=body,
        content_type="application/merge-patch+json", query=query, options=WriteOptions(), caller=IN_PROCESS,
    )  # fmt: skip
    return outcome.stored.obj if isinstance(outcome, WriteResult) else outcome


def binding(target: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": target}}


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


def test_binding_says_where_a_pod_runs() -> None:
    async def body(world: World) -> None:
        await world.create("nodes", node("n", **{"topology.kubernetes.io/zone": "z"}))
        await world.create("pods", pod())
        await through(world, "pods", "p", "binding", "create", binding("n"))
        bound = world.get("pods", "p")
        assert bound["spec"]["nodeName"] == "n"
        assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
        scheduled = next(c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled")
        assert scheduled["status"] == "True"

    in_world(body)


def test_a_bound_pod_cannot_be_bound_again() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod(node="n"))
        with pytest.raises(Conflict, match='already assigned to node "n"'):
            await through(world, "pods", "p", "binding", "create", binding("m"))

    in_world(body)


def test_a_gated_pod_cannot_be_bound() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod(schedulingGates=[{"name": "example.com/wait"}]))
        with pytest.raises(Conflict, match="schedulingGates"):
            await through(world, "pods", "p", "binding", "create", binding("n"))

    in_world(body)


async def running_pod(world: World, *budgets: dict[str, Any]) -> None:
    given = pod(node="n")
    given["metadata"]["labels"] = {"app": "a"}
    await world.create("pods", given)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await world.patch("pods", "p", {"status": ready}, subresource="status")
    for each in budgets:
        name = each["metadata"]["name"]
        await world.create("poddisruptionbudgets", each, "policy")
        await world.patch("poddisruptionbudgets", name, {"status": each["status"]}, "policy", subresource="status")


def test_an_eviction_takes_one_disruption_from_the_budget() -> None:
    async def body(world: World) -> None:
        await running_pod(world, budget("b", "a", allowed=1))
        await through(world, "pods", "p", "eviction", "create", eviction("p"))
        assert world.get("pods", "p")["metadata"]["deletionTimestamp"]
        status = world.get("poddisruptionbudgets", "b", "policy")["status"]
        assert status["disruptionsAllowed"] == 0
        assert list(status["disruptedPods"]) == ["p"]

    in_world(body)


def test_an_exhausted_budget_says_not_now_and_why() -> None:
    async def body(world: World) -> None:
        await running_pod(world, budget("b", "a", allowed=0, desired=2, healthy=1))
        with pytest.raises(TooManyRequests) as caught:
            await through(world, "pods", "p", "eviction", "create", eviction("p"))
        assert caught.value.causes[0].reason == "DisruptionBudget"
        assert "needs 2 healthy pods and has 1 currently" in caught.value.causes[0].message
        assert "deletionTimestamp" not in world.get("pods", "p")["metadata"]

    in_world(body)


def test_two_budgets_for_one_pod_are_refused() -> None:
    async def body(world: World) -> None:
        await running_pod(world, budget("b", "a", allowed=1), budget("c", "a", allowed=1))
        with pytest.raises(InternalError, match="more than one PodDisruptionBudget"):
            await through(world, "pods", "p", "eviction", "create", eviction("p"))

    in_world(body)


def test_scale_shows_and_changes_replicas() -> None:
    async def body(world: World) -> None:
        await world.create("deployments", deployment(replicas=3), "apps")
        scale = await through(world, "deployments", "d", "scale", "get", group="apps")
        assert (scale["spec"]["replicas"], scale["status"]["selector"]) == (3, "app=a")
        scale = await through(world, "deployments", "d", "scale", "patch", {"spec": {"replicas": 8}}, "apps")
        assert scale["spec"]["replicas"] == 8
        changed = world.get("deployments", "d", "apps")
        assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (8, 2)

    in_world(body)


NUMBERS = st.sampled_from([0, 1, 8, -1, 2**31 - 1, 2**31, -(2**31), True, 1.0, "1", None])


@settings(max_examples=60, deadline=None)
@given(st.lists(
    st.one_of(
        st.fixed_dictionaries({"spec": st.fixed_dictionaries({}, optional={"replicas": NUMBERS, "x": NUMBERS})}),
        st.fixed_dictionaries({"spec": st.fixed_dictionaries({"replicas": NUMBERS}), "metadata": st.just({})}),
        st.sampled_from([{}, {"spec": None}, {"spec": []}]),
    ), min_size=1, max_size=4,
))  # fmt: skip
def test_a_patch_that_says_how_many_is_taken_as_one_that_is_merged_and_read(patches: list[Any]) -> None:
    async def outcomes(world: World, *, is_read: bool) -> list[Any]:
        await world.create("deployments", deployment("d", replicas=3), "apps")
        found: list[Any] = []
        for patch in patches:
            body = Body(patch) if is_read else patch
            try:
                found.append(await through(world, "deployments", "d", "scale", "patch", body, "apps"))
            except ApiError as problem:
                found.append(problem.to_status())
            found.append(world.get("deployments", "d", "apps"))
        return found

    assert in_world(partial(outcomes, is_read=False)) == in_world(partial(outcomes, is_read=True))


def test_every_scale_shows_its_own_selector_and_a_bounded_number_of_them_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scale_module, "_SELECTORS_KEPT", 2)

    async def body(world: World) -> None:
        door = scale_module.ScaleDoor(world.registry)
        served = world.served("deployments", "apps")
        for number in range(5):
            made = deployment(f"d{number}")
            labels = {"app": f"a{number}"}
            spec = {**made["spec"], "selector": {"matchLabels": labels}}
            spec["template"] = {**spec["template"], "metadata": {"labels": labels}}
            await world.create("deployments", {**made, "spec": spec}, "apps")
        for number in (0, 1, 0, 2, 3, 4, 0):
            for replicas in (1, 2):
                shown = await door.handle(
                    served, "default", f"d{number}", "patch", {"spec": {"replicas": replicas}}, MERGE,
                    WriteOptions(), IN_PROCESS,
                )  # fmt: skip
                assert isinstance(shown, WriteResult)
                assert shown.stored.obj["status"]["selector"] == f"app=a{number}"
            assert len(door._selectors) <= 2

    in_world(body)


def test_a_negative_scale_is_invalid() -> None:
    async def body(world: World) -> None:
        await world.create("deployments", deployment(), "apps")
        with pytest.raises(Invalid) as caught:
            await through(world, "deployments", "d", "scale", "patch", {"spec": {"replicas": -1}}, "apps")
        assert caught.value.causes[0].field == "spec.replicas"

    in_world(body)


def test_logs_are_made_up_and_say_so() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod(node="n"))
        text, media_type = await through(world, "pods", "p", "log", "get", tailLines="1")
        assert text.decode() == "this container is simulated and writes no output of its own\n"
        assert media_type == "text/plain"

    in_world(body)


def test_logs_need_a_container_name_when_there_are_several() -> None:
    async def body(world: World) -> None:
        containers = [{"name": name, "image": "registry.example/x:1"} for name in ("a", "b")]
        await world.create("pods", pod(containers=containers, node="n"))
        with pytest.raises(BadRequest, match=r"choose one of: \[a b\]"):
            await through(world, "pods", "p", "log", "get")
        with pytest.raises(BadRequest, match="container z is not valid for pod p"):
            await through(world, "pods", "p", "log", "get", container="z")

    in_world(body)


def test_an_unknown_subresource_is_not_found() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod())
        with pytest.raises(NotFound):
            await through(world, "pods", "p", "frob", "get")

    in_world(body)


def test_a_terminating_namespace_goes_when_it_is_finalized() -> None:
    async def body(world: World) -> None:
        await world.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
        await world.delete("namespaces", "gone")
        current = world.get("namespaces", "gone")
        assert current["status"]["phase"] == "Terminating"
        await world.update("namespaces", {**current, "spec": {}}, subresource="finalize")
        with pytest.raises(NotFound):
            world.get("namespaces", "gone")

    in_world(body)
