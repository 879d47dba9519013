from __future__ import annotations

import pytest

from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import changed, created, pod, update


def with_status(old: JsonObject, status: JsonObject) -> JsonObject:
    return changed(old, "status", status)


def test_a_status_is_written_with_all_that_go_writes() -> None:
    old = created("pods", pod())
    status = {
        "phase": "Running",
        "message": "",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True", "reason": ""}],
        "containerStatuses": [{"name": "c", "state": {"running": {}}}],
    }
    outcome = update("pods", old, with_status(old, status), status=True)
    assert outcome.causes == []
    assert outcome.obj["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
        ],
        "containerStatuses": [
            {
                "name": "c", "ready": False, "restartCount": 0, "image": "", "imageID": "",
                "state": {"running": {"startedAt": None}}, "lastState": {},
            }
        ],
    }  # fmt: skip


def test_the_single_address_wins_over_the_list() -> None:
    old = created("pods", pod())
    new = with_status(old, {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]})
    assert update("pods", old, new, status=True).obj["status"]["podIPs"] == [{"ip": "10.0.0.1"}]


def test_an_observed_generation_stays_when_an_old_writer_leaves_it_out() -> None:
    old = created("pods", pod())
    old["status"] |= {
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
    }
    new = with_status(old, {"conditions": [{"type": "Ready", "status": "False"}]})
    status = update("pods", old, new, status=True).obj["status"]
    assert status["observedGeneration"] == 3
    assert status["conditions"][0]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"qosClass": "Guaranteed"}, [("Invalid", "status.qosClass")]),
        ({"podIP": "nowhere"}, [("Invalid", "status.podIPs[0]")]),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}, [("Invalid", "status.podIPs")]),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, []),
        ({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}, [("Invalid", "status.hostIPs[0].ip")]),
        ({"nominatedNodeName": "A_"}, [("Invalid", "status.nominatedNodeName")]),
        ({"conditions": [{"type": "a b", "status": "True"}]}, [("Invalid", "status.conditions[0].Type")]),
        ({"observedGeneration": -1}, [("Invalid", "status.observedGeneration")]),
        ({"resourceClaimStatuses": [{"name": "gpu"}]}, [("Invalid", "status.resourceClaimStatuses[0].name")]),
    ],
)
def test_a_status_must_make_sense(status: JsonObject, fields: list[tuple[str, str]]) -> None:
    old = created("pods", pod())
    assert update("pods", old, with_status(old, status), status=True).fields == fields


def test_a_bound_pod_cannot_be_nominated() -> None:
    old = created("pods", pod({"nodeName": "n1"}))
    outcome = update("pods", old, with_status(old, {"nominatedNodeName": "n2"}), status=True)
    assert outcome.fields == [("Forbidden", "status.nominatedNodeName")]


@pytest.mark.parametrize(
    ("pod_policy", "container", "exit_code", "may_restart"),
    [
        ("Always", {}, 0, True),
        ("Never", {}, 1, False),
        ("OnFailure", {}, 1, True),
        ("OnFailure", {}, 0, False),
        ("Never", {"restartPolicy": "OnFailure"}, 1, True),
        ("Always", {"restartPolicy": "Never"}, 1, False),
        (
            "Never",
            {"restartPolicy": "Never", "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]},
            42,
            True,
        ),
    ],
)  # fmt: skip
def test_a_container_that_has_ended_for_good_stays_ended(
    pod_policy: str, container: JsonObject, exit_code: int, may_restart: bool
) -> None:
    old = created("pods", pod({"restartPolicy": pod_policy}, **container))
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": exit_code}}}]
    new = with_status(old, {"containerStatuses": [{"name": "c", "state": {"running": {}}}]})
    fields = update("pods", old, new, status=True).fields
    assert fields == ([] if may_restart else [("Forbidden", "status.containerStatuses[0].state")])
