"""The page in a real Chromium, on a real cluster: people look, click and type."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holokube.base.pace import Pace
from holokube.client.client import Client
from holokube.client.resources import DEPLOYMENTS, NODES
from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy, group_template
from holokube.cluster.living import LivingOptions
from holokube.hollow.profile import named_profile
from tests import builders
from tests.chromium import Chromium, Page
from tests.dashboard.living_page import LivingPage, living_page

READY = "document.documentElement.dataset.ready"


def opened(chromium: Chromium, url: str, **how: Any) -> Page:
    page = chromium.open(url, **how)
    page.until(READY)
    page.settle()
    return page


def place_of(page: Page, name: str) -> tuple[float, float]:
    """Where the middle of a tile is on the screen."""
    found = page.evaluate(
        f"(() => {{ holokube.wall.reveal('{name}'); const place = holokube.wall.places.get('{name}'); "
        "const box = document.getElementById('wall').getBoundingClientRect(); "
        "return [box.left + place.x + place.w / 2, "
        "box.top + place.y + holokube.wall.size / 2 - holokube.wall.box.scrollTop]; })()"
    )
    return found[0], found[1]


def fault_of(living: LivingPage, name: str) -> str:
    node = living.ask(lambda client: client.get(NODES, name))
    return str((node["metadata"].get("annotations") or {}).get("holokube.dev/fault", ""))


def cordon(living: LivingPage, name: str, word: bool | None) -> None:
    living.ask(lambda client: client.patch(NODES, name, {"spec": {"unschedulable": word}}))


@pytest.fixture(scope="module")
def hundred() -> Iterator[LivingPage]:
    """A cluster of a hundred nodes in three zones, on the wall clock."""
    options = LivingOptions(profile=named_profile("fast"), zones=("a", "b", "c"))
    with living_page(100, options) as living:
        yield living


@pytest.fixture
def page(chromium: Chromium, hundred: LivingPage) -> Iterator[Page]:
    made = opened(chromium, hundred.url, width=1280, height=900)
    yield made
    assert made.complaints == [], "nothing is refused by the policy, nothing fails"
    assert all(request.startswith((hundred.url, "data:")) for request in made.requests), "nothing comes from elsewhere"
    made.close()


def test_a_hundred_nodes_are_on_the_wall(page: Page) -> None:
    assert page.text("#figure-nodes .value") == "100"
    assert page.evaluate("holokube.wall.order.length") == 100
    heads = page.evaluate("holokube.wall.heads.map((head) => [head.key, head.nodes])")
    assert heads == [["a", 34], ["b", 33], ["c", 33]]
    assert page.evaluate("holokube.wall.height <= holokube.wall.box.clientHeight"), "all of them can be seen at once"
    assert page.text("#figure-cost .value") == "no price"
    page.choose("#group-by", "group")
    assert page.evaluate("holokube.wall.heads.map((head) => head.key)") == ["node"]


def test_a_deployment_that_is_applied_shows_up_as_pods(page: Page, hundred: LivingPage) -> None:
    deployment = builders.deployment("shop", replicas=40, app="shop")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "2", "memory": "4Gi"}}
    hundred.ask(lambda client: client.create(DEPLOYMENTS, deployment, "default"))
    page.until("holokube.model.totals.pods.running === 40")
    assert page.text("#figure-running .value") == "40"
    blocks = page.evaluate("[...holokube.model.nodes.values()].flatMap((node) => node.blocks)")
    assert sum(block[2] for block in blocks) == 40 and {block[0] for block in blocks} == {"default/shop"}
    name = page.evaluate("[...holokube.model.nodes.values()].find((node) => node.pods).name")
    page.click_at(*place_of(page, name))
    page.until("document.querySelectorAll('#detail .pods .name').length > 0")
    assert "default/shop-" in page.text("#detail .pods .name")


def test_pods_that_find_no_node_are_told_with_the_reason(page: Page, hundred: LivingPage) -> None:
    deployment = builders.deployment("giant", replicas=3, app="giant")
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "900"}}
    hundred.ask(lambda client: client.create(DEPLOYMENTS, deployment, "default"))
    page.until("document.getElementById('pending').innerText.includes('Insufficient cpu')")
    assert "default/giant" in page.text("#pending") and page.text("#pending .times").endswith(" 3")
    assert page.text("#pending-count") == "3"
    hundred.ask(lambda client: client.delete(DEPLOYMENTS, "giant", "default"))
    page.until("holokube.model.totals.pending === 0")


def test_a_node_is_broken_by_two_clicks_and_healed_by_one(page: Page, hundred: LivingPage) -> None:
    page.click_at(*place_of(page, "node-7"))
    assert page.text("#detail h2") == "node-7"
    page.choose("#fault-kind", "not-ready")
    page.click("#break")
    assert "again" in page.text("#break") and fault_of(hundred, "node-7") == "", "the first click only asks"
    page.click("#break")
    page.until("holokube.model.nodes.get('node-7').state === 'not-ready'")
    assert fault_of(hundred, "node-7") == "not-ready"
    node = hundred.ask(lambda client: client.get(NODES, "node-7"))
    assert next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready") == "False"
    assert "not ready" in page.text("#detail .state")
    page.until("document.getElementById('decisions').innerText.includes('node-7 broken by hand')")
    page.click("#heal")
    page.until("holokube.model.nodes.get('node-7').state === 'ready'")
    assert fault_of(hundred, "node-7") == ""


def test_leaving_the_button_takes_the_question_back(page: Page, hundred: LivingPage) -> None:
    page.click_at(*place_of(page, "node-8"))
    page.click("#break")
    page.click("#find")
    assert page.text("#break") == "Break it"
    page.click("#break")
    assert fault_of(hundred, "node-8") == ""


def test_a_whole_zone_is_broken_by_its_heading(page: Page, hundred: LivingPage) -> None:
    left, top = page.evaluate(
        "(() => { const box = document.getElementById('wall').getBoundingClientRect(); "
        "const head = holokube.wall.heads.find((one) => one.key === 'b'); "
        "return [box.left + 20, box.top + head.y + 12]; })()"
    )
    page.click_at(left, top)
    assert page.text("#detail h2") == "zone b"
    page.click("#break")
    assert "33 nodes" in page.text("#break")
    page.click("#break")
    page.until("[...holokube.model.nodes.values()].filter((node) => node.faults.includes('silent')).length === 33")
    nodes = hundred.ask(lambda client: client.list(NODES, label_selector="topology.kubernetes.io/zone=b")).items
    assert {node["metadata"]["annotations"]["holokube.dev/fault"] for node in nodes} == {"silent"}
    page.click("#heal")
    page.until("[...holokube.model.nodes.values()].every((node) => !node.faults.length)")


def test_what_the_colours_stand_for_is_told(page: Page, hundred: LivingPage) -> None:
    for name in ("zebra", "ant"):
        deployment = builders.deployment(name, replicas=5, app=name)
        deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        hundred.ask(lambda client, one=deployment: client.create(DEPLOYMENTS, one, "default"))
    page.until("['ant', 'zebra'].every((name) => document.querySelector(`#key [title='default/${name}']`))")
    names = page.evaluate("[...document.querySelectorAll('#key .name')].map((name) => name.textContent)")
    assert names == sorted(names), "one that grows does not change places"
    colors = page.evaluate("[...document.querySelectorAll('#key .swatch')].map((one) => one.style.background)")
    assert len(set(colors)) == len(names)
    page.resize(340, 500)
    page.until("document.getElementById('key').innerText.includes('requested')")
    assert page.evaluate("holokube.wall.size") < 28, "too small for workloads: the shade says how full a node is"
    for name in ("zebra", "ant"):
        hundred.ask(lambda client, one=name: client.delete(DEPLOYMENTS, one, "default"))


def test_what_was_chosen_outlives_a_reload(page: Page) -> None:
    page.choose("#group-by", "state")
    page.choose("#fill-by", "memory")
    page.loaded = False
    page.call("Page.reload")
    page._browser.wait("the reload", lambda: page.loaded)
    page.until(READY)
    chosen = "['group-by', 'fill-by'].map((id) => document.getElementById(id).value)"
    assert page.evaluate(chosen) == page.evaluate("[holokube.wall.groupBy, holokube.wall.fill]") == ["state", "memory"]
    page.evaluate("sessionStorage.clear()")


def test_many_small_groups_do_not_squeeze_their_nodes(page: Page) -> None:
    page.evaluate(
        "(() => { let i = 0; for (const node of holokube.model.nodes.values()) node.type = `t-${i++ % 50}`; })()"
    )
    page.choose("#group-by", "type")
    assert page.evaluate("holokube.wall.heads.length") == 50
    assert page.evaluate("holokube.wall.size") >= 34, "pods can be told apart, and the wall is scrolled"
    page.evaluate("(() => { const one = holokube.model.nodes.get('node-0'); for (let i = 0; i < 2000; i++) "
                  "holokube.model.nodes.set(`x-${i}`, { ...one, name: `x-${i}`, type: `t-${i % 12}` }); "
                  "for (const at of holokube.model.nodes.values()) at.type = `t-${parseInt(at.type.slice(2)) % 12}`; "
                  "holokube.wall.relayout(); })()")
    page.settle()
    assert page.evaluate("holokube.wall.heads.length") == 12
    assert page.evaluate("holokube.wall.size") < 34, "of many nodes in a group, as many as possible are seen at once"
    page.evaluate("sessionStorage.clear()")


def test_a_long_name_leaves_room_to_close(page: Page) -> None:
    page.evaluate("holokube.detail.openGroup('group', 'node', `group ${'long-'.repeat(40)}name`)")
    left, top, width, _ = page.box("#detail .tools button")
    title = page.evaluate("(() => { const box = document.querySelector('#detail h2').getBoundingClientRect(); "
                          "return [box.right, box.top, box.bottom]; })()")
    assert left >= title[0] and title[1] - 10 <= top < title[2] and left + width <= 1280, "beside it, not below"


def test_the_keyboard_goes_everywhere(page: Page) -> None:
    page.evaluate("document.getElementById('wall').focus()")
    page.press("ArrowRight")
    first = page.evaluate("holokube.wall.selected")
    page.press("ArrowRight")
    second = page.evaluate("holokube.wall.selected")
    assert first and second and first != second
    assert second in page.evaluate("document.getElementById('wall-said').textContent"), "it is said aloud"
    page.press("ArrowDown")
    below = page.evaluate("holokube.wall.selected")
    assert page.evaluate(
        f"holokube.wall.places.get('{below}').y > holokube.wall.places.get('{second}').y"
    )
    page.press("Enter")
    assert page.text("#detail h2") == below
    page.press("Escape")
    assert page.evaluate("document.getElementById('detail').hidden && document.activeElement.id === 'wall'")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.write("#find", "node-42")
    page.press("Enter")
    assert page.text("#detail h2") == "node-42"


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page) -> None:
    page.resize(390, 844, touch=True)
    page.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate("scrollTo(0, document.querySelector('.wall-panel').offsetTop - 60)")
    page.click_at(*place_of(page, "node-0"))
    assert page.text("#detail h2") == "node-0"
    bottom = page.evaluate("document.getElementById('detail').getBoundingClientRect().bottom")
    assert bottom == pytest.approx(844, abs=2), "a sheet at the bottom"


def test_dark_and_light_follow_the_system_and_the_button(chromium: Chromium, hundred: LivingPage) -> None:
    page = opened(chromium, hundred.url, prefers_color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)
    page.click("#theme")
    light = page.evaluate(color)
    assert sum(map(int, dark[4:-1].split(","))) < 120 < 600 < sum(map(int, light[4:-1].split(",")))
    page.click("#theme")
    assert page.evaluate(color) == dark
    page.close()


def test_who_wants_little_motion_gets_none(chromium: Chromium, hundred: LivingPage) -> None:
    for wish, flashes in (("reduce", 0), ("no-preference", 1)):
        page = opened(chromium, hundred.url, prefers_reduced_motion=wish)
        page.evaluate("holokube.most = 0; holokube.wall.flashes.set = function (...given) "
                      "{ holokube.most++; return Map.prototype.set.apply(this, given); }")
        for word, state in ((True, "draining"), (None, "ready")):
            cordon(hundred, "node-5", word)
            page.until(f"holokube.model.nodes.get('node-5').state === '{state}'")
        assert page.evaluate("holokube.most") == 2 * flashes
        page.close()


def test_two_pages_see_the_same_and_one_that_was_lost_comes_back(chromium: Chromium, hundred: LivingPage) -> None:
    one, two = opened(chromium, hundred.url), opened(chromium, hundred.url)
    cordon(hundred, "node-9", True)
    for page in (one, two):
        page.call("Page.bringToFront")
        page.until("holokube.model.nodes.get('node-9').state === 'draining'")
    hundred.drop_streams()
    two.until("document.getElementById('link').dataset.state === 'lost'")
    cordon(hundred, "node-9", None)
    for page in (two, one):
        page.call("Page.bringToFront")
        page.until("holokube.model.nodes.get('node-9').state === 'ready'")
        assert page.text("#link") == "live"
    one.close()
    two.close()


def test_tabs_that_nobody_looks_at_leave_connections_to_those_that_are(
    chromium: Chromium, hundred: LivingPage
) -> None:
    # A browser has six connections to an address.
    pages = [opened(chromium, hundred.url) for _ in range(8)]
    pages[0].call("Page.bringToFront")
    pages[0].until("document.getElementById('link').textContent === 'live'")
    pages[0].click_at(*place_of(pages[0], "node-3"))
    pages[0].choose("#fault-kind", "slow")
    pages[0].click("#break")
    pages[0].click("#break")
    pages[0].until("holokube.model.nodes.get('node-3').faults.length")
    pages[0].click("#heal")
    pages[0].until("!holokube.model.nodes.get('node-3').faults.length")
    for page in pages:
        page.close()


def test_a_cluster_that_is_stuck_does_not_look_alive(chromium: Chromium) -> None:
    with living_page(2) as living:
        page = opened(chromium, living.url)
        go_on = threading.Event()
        living.loop.call_soon_threadsafe(go_on.wait)
        try:
            page.until("document.getElementById('link').textContent.startsWith('no news')")
        finally:
            go_on.set()
        page.until("document.getElementById('link').textContent === 'live'")
        page.close()


def test_a_cluster_that_stops_says_so_and_is_found_again_when_it_comes_back(chromium: Chromium) -> None:
    with living_page(2) as living:
        page = opened(chromium, living.url)
        port = int(living.url.rstrip("/").rpartition(":")[2])
        page.click_at(*place_of(page, "node-0"))
    page.until("document.getElementById('link').textContent === 'the cluster has stopped'")
    page.click("#break")
    page.click("#break")
    page.until("document.getElementById('toast').textContent.startsWith('Nobody answers')")
    assert page.text("#link") == "the cluster has stopped" and page.text("#figure-nodes .value") == "2"
    with living_page(3, port=port):
        page.until("document.getElementById('link').textContent === 'live'")
        assert page.text("#figure-nodes .value") == "3"
    page.close()


# --- virtual time


def autoscaled(pace: Pace) -> Any:
    templates = [group_template("pool", cpu="4", memory="16Gi", price_usd_per_hour="0.2")]
    options = LivingOptions(profile=named_profile("fast"), policy=ClusterAutoscalerPolicy(templates=templates))
    return living_page(2, options, pace=pace, title="cluster-autoscaler")


def test_virtual_time_is_paused_slowed_and_resumed(chromium: Chromium) -> None:
    pace = Pace(60.0)
    with autoscaled(pace) as living:
        page = opened(chromium, living.url)
        assert page.text("#time-kind").startswith("virtual time") and page.text("#title") == "cluster-autoscaler"
        assert page.evaluate("document.querySelector('#speeds [aria-checked=true]').dataset.speed") == "60"
        page.click("#pause")
        page.until("holokube.model.status.paused")
        assert pace.is_paused and page.text("#pause") == "Resume" and "paused" in page.text("#time-kind")
        stands_s = living.clock.monotonic()
        # Several deltas later it still does.
        page.evaluate("holokube.seen = 0; holokube.model.apply = ((apply) => function (...given) "
                      "{ holokube.seen++; return apply.apply(this, given); })(holokube.model.apply)")
        page.until("holokube.seen > 4")
        assert living.clock.monotonic() == stands_s
        page.click("#speeds button:nth-child(5)")
        assert pace.speed == 3600.0 and pace.is_paused, "another speed does not end a pause"
        page.press("p")
        page.until("!holokube.model.status.paused")
        before = page.evaluate("holokube.model.now")
        page.until(f"holokube.model.now > {before} + 60")
        page.close()


def test_the_autoscaler_is_seen_at_work(chromium: Chromium) -> None:
    with autoscaled(Pace(600.0)) as living:
        page = opened(chromium, living.url)

        async def ask_for_more(client: Client) -> None:
            deployment = builders.deployment("load", replicas=90, app="load")
            requests = {"cpu": "1500m", "memory": "2Gi"}
            deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
            await client.create(DEPLOYMENTS, deployment, "default")

        living.ask(ask_for_more)
        page.until("holokube.model.totals.pods.running === 90")
        assert page.evaluate("[...holokube.model.nodes.values()].some((node) => node.group === 'pool')")
        assert "/h" in page.text("#figure-cost .value") and "without a price" in page.text("#figure-cost .sub")
        page.until("document.getElementById('decisions').innerText.includes('pool enlarged')")
        page.until("document.getElementById('decisions').innerText.includes('joined')")
        assert page.complaints == []
        page.close()
