"""A scene: calls from any thread, and what it says of itself."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.pace import Pace
from holokube.dashboard.scene import Scene
from holokube.dashboard.view import ClusterView
from tests.dashboard.made import ready_node


def made_scene(loop: asyncio.AbstractEventLoop, pace: Pace | None = None) -> Scene:
    return Scene(ClusterView(VirtualClock()), loop, pace=pace)


def test_a_call_happens_on_the_clusters_thread() -> None:
    async def main() -> None:
        scene = made_scene(asyncio.get_running_loop())
        threads: list[threading.Thread] = []

        def elsewhere() -> object:
            return scene.call(threading.current_thread).result(), threads.append(threading.current_thread())

        called = await asyncio.to_thread(elsewhere)
        assert isinstance(called, tuple) and called[0] is threading.current_thread() and threads[0] is not called[0]

    asyncio.run(main())


def test_an_error_of_a_call_reaches_whoever_called() -> None:
    async def main() -> None:
        scene = made_scene(asyncio.get_running_loop())

        def fail() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            await scene.answer(scene.call(fail))

    asyncio.run(main())


def test_a_loop_that_has_ended_is_an_error_not_a_wait() -> None:
    loop = asyncio.new_event_loop()
    scene = made_scene(loop)
    waiting = scene.call(lambda: None)
    loop.close()

    async def work() -> None:
        """Never begins."""

    async def main() -> None:
        with pytest.raises(HolokubeError, match="has stopped"):
            await scene.answer(waiting)

    asyncio.run(main())
    for begin in (lambda: scene.call(lambda: None), lambda: scene.run(work())):
        with pytest.raises(HolokubeError, match="has stopped"):
            begin()


def test_on_virtual_time_what_has_ended_is_a_run() -> None:
    loop = asyncio.new_event_loop()
    scene = replace(made_scene(loop), is_virtual=True)
    loop.close()
    with pytest.raises(HolokubeError, match="the run is over"):
        scene.call(lambda: None)


def test_it_tells_its_pace_in_words_that_json_has() -> None:
    loop = asyncio.new_event_loop()
    try:
        scene = made_scene(loop, Pace())
        assert scene.status()["speed"] is None and scene.status()["can"] == {"pace": True, "faults": False}
        assert scene.status()["now"] == scene.view.clock.time()
        plain = made_scene(loop).status()
        assert plain["speed"] == 1.0 and not plain["paused"] and plain["can"]["pace"] is False
    finally:
        loop.close()


def test_between_two_events_the_display_moves_on() -> None:
    real_s = [0.0]
    pace = Pace(10.0, real=lambda: real_s[0])
    loop = asyncio.new_event_loop()
    try:
        scene = made_scene(loop, pace)
        start_s = scene.view.clock.time()
        pace.wait_s(0.0, 100.0)
        real_s[0] = 3.0
        assert scene.status()["now"] == pytest.approx(start_s + 30)
    finally:
        loop.close()


def test_a_target_that_names_nothing_is_refused() -> None:
    loop = asyncio.new_event_loop()
    try:
        scene = made_scene(loop)
        scene.view.on_node("ADDED", None, ready_node("n"))
        assert scene.names({"nodes": ["n", "gone", 7]}) == ["n"] and scene.names({"zone": ""}) == ["n"]
        for target in ({}, {"nodes": ["gone"]}, {"zone": "z"}, {"group": "g"}):
            with pytest.raises(UsageError, match="no node"):
                scene.names(target)
    finally:
        loop.close()
