"""The pytest plugin, as a user's own test-suite sees it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _quiet(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nfilterwarnings = error\n")


def test_each_test_gets_a_cluster_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from holokube.client.resources import NODES

        @pytest.mark.parametrize("turn", [1, 2])
        def test_it(cluster, turn):
            assert cluster.run(cluster.client.list(NODES)).items == []
            cluster.run(cluster.client.create(NODES, {"metadata": {"name": "n"}}))
            cluster.pass_time(3600)
            assert cluster.clock.monotonic() == 3600
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


def test_the_marker_says_how_to_start_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from holokube.base.clock import WallClock
        from holokube.client.resources import NODES

        NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        pytestmark = pytest.mark.holokube(seed=5, objects=[NODE])

        @pytest.mark.holokube(clock="wall")
        def test_wall(cluster):
            assert isinstance(cluster.clock, WallClock)
            assert cluster.seed == "5"
            assert len(cluster.run(cluster.client.list(NODES)).items) == 1

        @pytest.mark.holokube(seed=6, objects=[])
        def test_nearer_counts(cluster):
            assert cluster.seed == "6"
            assert cluster.run(cluster.client.list(NODES)).items == []
        """
    )
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


def test_the_seed_is_shown_when_a_test_fails_and_can_be_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cluster):\n    assert cluster.seed == '77'\n")
    failed = pytester.runpytest_inprocess()
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*seed 0; repeat with --holokube-seed=0"])
    pytester.runpytest_inprocess("--holokube-seed=77").assert_outcomes(passed=1)
    first = pytester.runpytest_inprocess("--holokube-seed=random").stdout.str()
    second = pytester.runpytest_inprocess("--holokube-seed=random").stdout.str()
    shown = [next(line for line in text.splitlines() if "repeat with" in line) for text in (first, second)]
    assert shown[0] != shown[1]


def test_servers_are_reached_by_any_client(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import json, ssl, stat, urllib.request
        import yaml

        def test_it(kubeconfig, kube_url, kube_token, kube_ca, kube_server):
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            assert yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == kube_url
            context = ssl.create_default_context(cafile=kube_ca)
            request = urllib.request.Request(kube_url + "/api/v1/namespaces")
            request.add_header("Authorization", "Bearer " + kube_token)
            with urllib.request.urlopen(request, context=context) as answer:
                assert len(json.load(answer)["items"]) == 4
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_it(cluster, kubeconfig): pass", "two different clusters"),
        ("@pytest.mark.holokube(clock='virtual')\ndef test_it(kubeconfig): pass", "live on the wall clock"),
        ("@pytest.mark.holokube(sed=1)\ndef test_it(cluster): pass", "by name, not 'sed'"),
        ("@pytest.mark.holokube(5)\ndef test_it(cluster): pass", "by name, not 5"),
        ("@pytest.mark.holokube(clock='sundial')\ndef test_it(cluster): pass", "no clock 'sundial'"),
    ],
)
def test_wrong_use_is_explained(pytester: pytest.Pytester, test: str, message: str) -> None:
    pytester.makepyfile(f"import pytest\n{test}\n")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()


def test_workers_of_xdist_have_servers_of_their_own(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.parametrize("turn", range(4))
        def test_it(kube_server, turn):
            assert kube_server.run(lambda client: client.request("GET", "/version"))["major"] == "1"
        """
    )
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=4)


def test_runs_without_the_fixtures_load_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_it():
            assert not {"aiohttp", "cryptography", "orjson"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess("-p", "no:kr8s", "-p", "no:anyio").assert_outcomes(passed=1)
