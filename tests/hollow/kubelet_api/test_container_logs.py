"""Logs of hollow containers, through pods/log of the embedded server."""

from __future__ import annotations

import asyncio

import pytest

from holokube.apiserver.subresources.logs import LogOptions, TextStream, container_log
from holokube.base.errors import TransportError
from holokube.client.resources import PODS
from holokube.hollow.kubelet_api.container_logs import LINES_MAX
from holokube.hollow.profile import named_profile
from holokube.kube.errors import BadRequest, Invalid
from tests.hollow.kubelet_api.worlds import KubeletWorld

LOG = "/api/v1/namespaces/default/pods/p/log"
HEAD = [
    "hollow container c (registry.example/app:1) started on node n0, restart 0",
    "this container is simulated: it runs no process and writes no output of its own",
]


def test_a_log_has_a_beginning_and_goes_on_and_is_the_same_every_time() -> None:
    with KubeletWorld() as world:
        world.make_pod(annotations={"kwok.x-k8s.io/usage-cpu": "250m", "kwok.x-k8s.io/usage-memory": "10Mi"})
        world.pass_time(150)
        text = world.get(LOG)
        assert text.splitlines() == [
            *HEAD, "up 60s, cpu 250m, memory 10Mi", "up 2m, cpu 250m, memory 10Mi",
        ]  # fmt: skip
        assert world.get(LOG) == text
        world.pass_time(60)
        assert world.get(LOG).startswith(text)
        assert world.get(LOG, tailLines="1") == "up 3m, cpu 250m, memory 10Mi\n"
        assert world.get(LOG, tailLines="0") == ""
        assert world.get(LOG, limitBytes="10") == text[:10]
        assert world.get(LOG, sinceSeconds="60") == "up 3m, cpu 250m, memory 10Mi\n"
        stamped = world.get(LOG, timestamps="true").splitlines()
        assert stamped[0] == f"2026-01-01T00:00:05.000000000Z {HEAD[0]}"
        assert stamped[2].startswith("2026-01-01T00:01:05.000000000Z up 60s")
        assert world.get(LOG, sinceTime="2026-01-01T00:02:05Z").startswith("up 2m,")
        with pytest.raises(Invalid):
            world.get(LOG, tailLines="-1")
        with pytest.raises(TransportError, match="a stream that has no end"):
            world.get(LOG, follow="true")


def test_a_log_is_as_chatty_as_its_annotation_says_and_never_endless() -> None:
    with KubeletWorld() as world:
        world.make_pod(annotations={"holokube.dev/log-every": "1s"})
        world.pass_time(20_000)
        lines = world.get(LOG).splitlines()
        assert len(lines) == LINES_MAX
        assert lines[-1].startswith("up 5h33m")
        world.make_pod("quiet", annotations={"holokube.dev/log-every": "0s"})
        world.pass_time(1000)
        assert len(world.get(LOG.replace("/p/", "/quiet/")).splitlines()) == 2


def test_restarts_show_in_the_log_and_the_run_before_can_be_read() -> None:
    with KubeletWorld() as world:
        failing = {"holokube.dev/failure": "Error", "holokube.dev/run-time": "90s", "holokube.dev/exit-code": "3"}
        world.make_pod(annotations=failing)
        world.pass_time(80)
        with pytest.raises(BadRequest, match='previous terminated container "c" in pod "p" not found'):
            world.get(LOG, previous="true")
        world.pass_time(70)
        assert world.get(LOG).splitlines()[0].endswith("restart 1")
        previous = world.get(LOG, previous="true").splitlines()
        assert previous[0] == HEAD[0]
        assert previous[2].startswith("up 60s")
        assert previous[-1] == "ended with exit code 3 (Error)"


def test_a_container_that_has_not_started_says_why() -> None:
    with KubeletWorld(profile=named_profile("kubelet")) as world:
        world.make_pod(annotations={"holokube.dev/failure": "ErrImagePull"})
        world.pass_time(0.1)
        with pytest.raises(BadRequest, match='container "c" in pod "p" is waiting to start: ContainerCreating'):
            world.get(LOG)
        world.pass_time(60)
        with pytest.raises(BadRequest, match=r"is waiting to start: (image can't be pulled|trying and failing)"):
            world.get(LOG)


def follow(world: KubeletWorld, options: LogOptions) -> tuple[asyncio.Task[None], list[bytes]]:
    found: list[bytes] = []

    async def read() -> None:
        pod = await world.client.get(PODS, "p", "default")
        stream = container_log(world.api.logs, pod, "c", options)
        assert isinstance(stream, TextStream)
        async for piece in stream.pieces:
            found.append(piece)  # noqa: PERF401 - who looks in between sees what has come so far

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(read())

    return world.cluster.run(begin), found


def test_who_follows_sees_every_line_once_until_the_container_ends() -> None:
    with KubeletWorld() as world:
        world.make_pod(annotations={"holokube.dev/run-time": "150s"}, restartPolicy="Never")
        world.pass_time(70)
        task, found = follow(world, LogOptions(follow=True, tail_lines=1))
        world.pass_time(20)
        assert [piece.decode().partition(",")[0] for piece in found] == ["up 60s"]
        world.pass_time(100)
        assert task.done()
        text = b"".join(found).decode().splitlines()
        assert [line.partition(",")[0] for line in text] == ["up 60s", "up 2m", "ended with exit code 0 (Completed)"]


def test_following_ends_with_the_pod_and_at_the_limit() -> None:
    with KubeletWorld() as world:
        world.make_pod()
        world.pass_time(5)
        task, found = follow(world, LogOptions(follow=True))
        limited, cut = follow(world, LogOptions(follow=True, limit_bytes=200))
        world.pass_time(200)
        assert limited.done() and len(b"".join(cut)) == 200
        assert not task.done()
        world.cluster.run(world.client.delete(PODS, "p", "default", grace_s=0))
        world.pass_time(5)
        assert task.done()
        assert len(b"".join(found).decode().splitlines()) == 5
