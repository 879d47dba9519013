"""The dashboard over the wire: page, stream, actions, and who is kept out."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holokube.base.clock import VirtualClock, WallClock
from holokube.base.errors import ConfigError, HolokubeError
from holokube.base.pace import Pace
from holokube.dashboard import dashboard as dashboard_module
from holokube.dashboard import server as server_module
from holokube.dashboard.dashboard import Dashboard
from holokube.dashboard.scene import Outcome, Scene
from holokube.dashboard.view import ClusterView
from holokube.dashboard.viewers import BYTES_MAX
from tests.dashboard.made import bound_pod, ready_node
from tests.dashboard.web_client import act, ask, stream, token_of


class Stage:
    """A cluster that is nothing but a loop on a thread and a view that the test feeds."""

    def __init__(self) -> None:
        self.view = ClusterView(VirtualClock())
        self.pace = Pace()
        self.deeds: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.loop = asyncio.new_event_loop()
        self._pool = ThreadPoolExecutor(1)
        self._running = self._pool.submit(self.loop.run_forever)
        self.dashboard = Dashboard(WallClock())
        self.dashboard.start()
        self.dashboard.show(self.scene())

    @property
    def url(self) -> str:
        return self.dashboard.url

    def scene(self, *, title: str = "stage") -> Scene:
        return Scene(self.view, self.loop, title=title, is_virtual=True, pace=self.pace, break_nodes=self.break_nodes,
                     heal_nodes=self.heal_nodes)

    async def break_nodes(self, names: Sequence[str], kinds: Sequence[str]) -> Outcome:
        self.deeds.append(("break", tuple(names), tuple(kinds)))
        return Outcome(len(names))

    async def heal_nodes(self, names: Sequence[str], kinds: Sequence[str]) -> Outcome:
        self.deeds.append(("heal", tuple(names), tuple(kinds)))
        return Outcome(0, ("n: it is not ours",))

    def add(self, *names: str, zone: str = "x") -> None:
        for name in names:
            node = ready_node(name, labels={"topology.kubernetes.io/zone": zone})
            asyncio.run_coroutine_threadsafe(self._tell(node), self.loop).result()

    async def _tell(self, node: dict[str, Any]) -> None:
        self.view.on_node("ADDED", None, node)
        name = node["metadata"]["name"]
        self.view.on_pod("ADDED", None, bound_pod(f"on-{name}", name))

    def fill(self, name: str, turn: int) -> None:
        """Give a node other pods, whose names take some room."""

        async def tell() -> None:
            for number in range(100):
                self.view.on_pod("ADDED", None, bound_pod(f"{number}-{'x' * 100}", name, cpu=f"{turn}m"))

        asyncio.run_coroutine_threadsafe(tell(), self.loop).result()

    def close(self) -> None:
        self.dashboard.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._running.result()
        self._pool.shutdown()
        self.loop.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


def test_the_page_and_its_assets_are_served_with_strict_headers(stage: Stage) -> None:
    page = ask(stage.url, "/")
    assert page.code == 200 and "{{token}}" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["Cache-Control"] == "no-store"
    for name in sorted(set(server_module.read_assets()) - {"index.html"}):
        asset = ask(stage.url, f"/assets/{name}")
        assert asset.code == 200 and asset.headers["Content-Security-Policy"] == policy
        assert "http://" not in asset.text.replace("http://www.w3.org/2000/svg", "") and "https://" not in asset.text
    for path in ("/assets/index.html", "/assets/../server.py", "/assets/none.js", "/else"):
        assert ask(stage.url, path).code == 404


def test_the_page_needs_nothing_that_a_strict_policy_forbids(stage: Stage) -> None:
    text = ask(stage.url, "/").text
    assert " style=" not in text and "<style" not in text and " onclick" not in text
    assert text.count("<script") == 1 and 'src="/assets/app.js"></script>' in text


def test_a_stream_begins_with_everything_and_goes_on_with_changes(stage: Stage) -> None:
    stage.add("a")
    with stream(stage.url) as events:
        kind, snapshot = next(events)
        assert kind == "snapshot" and [row[0] for row in snapshot["rows"]] == ["a"]
        assert snapshot["title"] == "stage" and snapshot["virtual"] and snapshot["speed"] is None
        assert snapshot["can"] == {"pace": True, "faults": True}
        stage.add("b")
        kind, delta = next(event for event in events if event[1].get("rows"))
        assert kind == "delta" and [row[0] for row in delta["rows"]] == ["b"]
    with stream(stage.url) as events:
        kind, snapshot = next(events)
        assert kind == "snapshot", "a page that was lost gets everything again"
        assert [row[0] for row in snapshot["rows"]] == ["a", "b"]


def test_several_may_look_on_but_not_too_many(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "VIEWERS_MAX", 2)
    stage.add("a")
    with stream(stage.url) as first, stream(stage.url) as second:
        assert next(first)[0] == next(second)[0] == "snapshot"
        assert ask(stage.url, "/events").code == 503


def test_a_page_that_does_not_read_takes_no_memory_and_begins_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard_module, "TICK_S", 0.001)
    stage.add("a")
    with stream(stage.url, receive_bytes=4096) as events:
        assert next(events)[0] == "snapshot"
        (viewer,) = stage.dashboard._server.viewers._viewers
        for turn in range(20_000):
            if viewer.resets:
                break
            stage.fill("a", turn)
            assert viewer.queued_bytes <= BYTES_MAX
        assert viewer.resets == 1 and viewer.queued_bytes == 0
        # What the sockets hold comes first; what was dropped never does.
        assert next(event for event in events if event[0] == "snapshot")[1]["totals"]["nodes"] == 1


def test_another_cluster_may_be_shown_and_none(stage: Stage) -> None:
    stage.add("a")
    with stream(stage.url) as events:
        assert next(events)[0] == "snapshot"
        stage.dashboard.show(stage.scene(title="the next one"))
        kind, data = next(event for event in events if event[0] != "delta")
        assert kind == "snapshot" and data["title"] == "the next one"
        stage.dashboard.clear("the run is over")
        assert next(event for event in events if event[0] != "delta") == ("empty", {"note": "the run is over"})
        assert ask(stage.url, "/nodes/a/pods").code == 503
        stage.dashboard.show(stage.scene(title="back"))
        assert next(events)[1]["title"] == "back"


def test_a_run_that_ends_without_a_word_is_noticed() -> None:
    stage = Stage()
    with stream(stage.url) as events:
        assert next(events)[0] == "snapshot"
        stage.loop.call_soon_threadsafe(stage.loop.stop)
        stage._running.result()
        stage.loop.close()
        kind, data = next(event for event in events if event[0] != "delta")
        assert (kind, data["note"]) == ("empty", "the run is over")
    stage.dashboard.stop()
    stage._pool.shutdown()


def test_the_pods_of_a_node_are_told_on_demand(stage: Stage) -> None:
    stage.add("a")
    assert ask(stage.url, "/nodes/a/pods").json() == {
        "node": "a", "count": 1,
        "pods": [{"name": "default/on-a", "state": "running", "cpu": 500, "memory": 1024}],
    }  # fmt: skip
    assert ask(stage.url, "/nodes/b/pods").code == 404


def test_nodes_and_zones_are_broken_and_healed(stage: Stage) -> None:
    stage.add("a", "b", zone="x")
    stage.add("c", zone="y")
    assert act(stage.url, "break", {"target": {"nodes": ["c", "gone"]}, "kinds": ["silent"]}).json()["done"] == 1
    assert act(stage.url, "break", {"target": {"zone": "x"}, "kinds": ["not-ready"]}).json()["done"] == 2
    healed = act(stage.url, "heal", {"target": {"group": ""}, "kinds": []})
    assert healed.json() == {"done": 0, "problems": ["n: it is not ours"]}
    assert stage.deeds == [
        ("break", ("c",), ("silent",)), ("break", ("a", "b"), ("not-ready",)), ("heal", ("a", "b", "c"), ()),
    ]  # fmt: skip


def test_pace_is_controlled_and_told(stage: Stage) -> None:
    assert act(stage.url, "pace", {"speed": 60}).json()["speed"] == 60
    assert stage.pace.speed == 60.0
    assert act(stage.url, "pace", {"paused": True}).json()["paused"] and stage.pace.is_paused
    assert not act(stage.url, "pace", {"paused": False, "speed": None}).json()["paused"]
    assert stage.pace.speed == math.inf and not stage.pace.is_paused


@pytest.mark.parametrize(("verb", "body", "says"), [
    ("break", {"target": {"nodes": ["n"]}, "kinds": ["explode"]}, "no kinds of faults"),
    ("break", {"target": {"nodes": ["n"]}, "kinds": []}, "no kinds of faults"),
    ("break", {"target": {"nodes": ["gone"]}, "kinds": ["slow"]}, "no node of the name gone"),
    ("break", {"target": {"zone": "far"}, "kinds": ["slow"]}, "no node of the zone far"),
    ("break", {"target": {}, "kinds": ["slow"]}, "no node of any name"),
    ("break", {"kinds": ["slow"]}, "needs a target"),
    ("heal", {"target": {}, "kinds": "all"}, "as a list"),
    ("pace", {"speed": "fast"}, "number"),
    ("pace", {"speed": 0}, "above zero"),
    ("pace", {"speed": True}, "number"),
    ("pace", ["paused"], "an object"),
    ("pace", b"{", "no JSON"),
])  # fmt: skip
def test_nonsense_is_answered_with_what_is_wrong(stage: Stage, verb: str, body: object, says: str) -> None:
    answer = act(stage.url, verb, body)
    assert answer.code == 400 and says in answer.text
    assert stage.deeds == []


def test_an_unknown_action_is_none(stage: Stage) -> None:
    assert act(stage.url, "explode", {}).code == 404


def test_what_only_looks_on_changes_nothing(stage: Stage) -> None:
    stage.add("a")
    stage.dashboard.show(Scene(stage.view, stage.loop))
    assert act(stage.url, "break", {"target": {"nodes": ["a"]}, "kinds": ["slow"]}).code == 400
    assert act(stage.url, "pace", {"paused": True}).code == 400


def test_without_the_token_nothing_is_done(stage: Stage) -> None:
    body = {"paused": True}
    assert ask(stage.url, "/actions/pace", method="POST", body=body).code == 403
    assert ask(stage.url, "/actions/pace", method="POST", body=body, X_Holokube_Token="0" * 64).code == 403
    assert ask(stage.url, "/actions/pace", method="POST", body=body, X_Holokube_Token="é").code == 403
    assert not stage.pace.is_paused
    assert len(token_of(stage.url)) == 64


def test_a_foreign_site_is_refused_even_with_the_token(stage: Stage) -> None:
    token = token_of(stage.url)
    answer = ask(stage.url, "/actions/pace", method="POST", body={"paused": True}, X_Holokube_Token=token,
                 Origin="http://evil.example")
    assert answer.code == 403 and not stage.pace.is_paused
    own = stage.url.rstrip("/")
    assert ask(stage.url, "/actions/pace", method="POST", body={}, X_Holokube_Token=token, Origin=own).code == 200
    for origin in ("null", "http://[", own.replace("http", "https")):
        answer = ask(stage.url, "/actions/pace", method="POST", body={}, X_Holokube_Token=token, Origin=origin)
        assert answer.code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""])
def test_a_name_that_is_not_ours_is_refused(stage: Stage, host: str) -> None:
    for path in ("/", "/events", "/assets/app.js"):
        assert ask(stage.url, path, Host=host).code in (400, 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_cannot_ask_for_anything_but_may_link_here(stage: Stage, site: str) -> None:
    for path in ("/", "/events", "/assets/app.js", "/nodes/a/pods"):
        assert ask(stage.url, path, Sec_Fetch_Site=site, Sec_Fetch_Dest="empty").code == 403
    assert ask(stage.url, "/", Sec_Fetch_Site=site, Sec_Fetch_Dest="iframe").code == 403
    assert ask(stage.url, "/", Sec_Fetch_Site=site, Sec_Fetch_Dest="document").code == 200
    assert ask(stage.url, "/", Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="empty").code == 200


def test_two_dashboards_have_different_tokens(stage: Stage) -> None:
    other = Dashboard(WallClock())
    try:
        assert token_of(other.start()) != token_of(stage.url)
    finally:
        other.stop()


def test_a_port_that_is_taken_is_an_error_that_helps() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        dashboard = Dashboard(WallClock(), port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="cannot listen") as caught:
            dashboard.start()
    assert "--dashboard-port" in caught.value.hint
    dashboard.stop()


def test_it_starts_once_and_stops_with_pages_open(stage: Stage) -> None:
    with pytest.raises(HolokubeError, match="runs already"):
        stage.dashboard.start()
    with stream(stage.url) as events:
        assert next(events)[0] == "snapshot"
        stage.dashboard.stop()
        *told, last = events
        assert all(kind == "delta" for kind, _ in told), "the stream ends"
        assert last == ("empty", {"note": "the run is over"}), "and says so"
    stage.dashboard.stop()


def test_a_page_that_does_not_read_does_not_hold_up_the_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "LAST_WORDS_S", 0.01)
    stage.add("a")
    with stream(stage.url, receive_bytes=4096) as events:
        assert next(events)[0] == "snapshot"
        for turn in range(50):
            stage.fill("a", turn)
        stage.dashboard.stop()


def test_names_of_nodes_that_went_are_not_kept_for_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_module, "TICK_S", 0.001)
    monkeypatch.setattr(dashboard_module, "IDLE_TICK_S", 0.002)

    async def come_and_go() -> None:
        for number in range(100):
            node = ready_node(f"n{number}")
            stage.view.on_node("ADDED", None, node)
            stage.view.on_node("DELETED", node, None)

    async def gone() -> int:
        return len(stage.view._gone)

    asyncio.run_coroutine_threadsafe(come_and_go(), stage.loop).result()
    while asyncio.run_coroutine_threadsafe(gone(), stage.loop).result():
        pass
    with stream(stage.url) as events:
        kind, snapshot = next(events)
        assert kind == "snapshot" and snapshot["totals"]["nodes"] == 0
