"""What the pods of DaemonSets have that others do not."""

from __future__ import annotations

from holokube.kube.daemons import with_daemon_tolerations


def keys(spec: dict[str, object]) -> list[str]:
    tolerations = with_daemon_tolerations(spec)["tolerations"]
    return [toleration["key"].removeprefix("node.kubernetes.io/") for toleration in tolerations]


def test_daemons_stay_on_nodes_with_problems() -> None:
    problems = ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]
    assert keys({}) == problems
    assert keys({"hostNetwork": True}) == [*problems, "network-unavailable"]


def test_a_toleration_that_is_there_is_replaced_and_others_are_kept() -> None:
    own = {"key": "x", "operator": "Exists"}
    limited = {
        "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5,
    }  # fmt: skip
    spec = {"tolerations": [own, limited], "hostPID": True}
    given = with_daemon_tolerations(spec)
    assert given["hostPID"] is True
    assert given["tolerations"][0] == own
    assert given["tolerations"][1] == {key: value for key, value in limited.items() if key != "tolerationSeconds"}
    assert len(given["tolerations"]) == 7
    assert spec["tolerations"] == [own, limited]
