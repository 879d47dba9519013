from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.tables.layout import Ages
from holokube.apiserver.tables.pods import pod_cells, pod_row_conditions

NOW = datetime(2026, 1, 2, tzinfo=UTC)
READY, STATUS, RESTARTS, AGE, IP, NODE, NOMINATED, GATES = range(1, 9)
RUNNING = {"running": {}}


def container(name: str = "c", state: Any = None, *, ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": 0, "state": state or {}, **more}


def cells(status: Any = None, spec: Any = None, **meta: Any) -> list[Any]:
    pod = {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", **meta},
        "spec": {"containers": [{"name": "c"}, {"name": "d"}], **(spec or {})},
        "status": status or {},
    }
    return pod_cells(pod, Ages(NOW))


def test_a_running_pod() -> None:
    status = {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        "containerStatuses": [container("c", RUNNING, ready=True), container("d", RUNNING)],
    }
    row = cells(status, {"nodeName": "n1"})
    assert row == ["p", "1/2", "Running", "0", "24h", "10.0.0.1", "n1", "<none>", "<none>"]


def test_a_waiting_container_gives_its_reason() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"phase": "Running", "containerStatuses": [container("c", waiting), container("d", RUNNING)]}
    assert cells(status)[STATUS] == "CrashLoopBackOff"


def test_the_first_container_has_the_last_word() -> None:
    first, second = {"waiting": {"reason": "First"}}, {"waiting": {"reason": "Second"}}
    status = {"phase": "Pending", "containerStatuses": [container("c", first), container("d", second)]}
    assert cells(status)[STATUS] == "First"


def test_restarts_tell_when_the_last_one_was() -> None:
    early = {"terminated": {"finishedAt": "2026-01-01T12:00:00Z"}}
    late = {"terminated": {"finishedAt": "2026-01-01T23:55:00Z"}}
    status = {
        "phase": "Running",
        "containerStatuses": [
            container("c", RUNNING, restartCount=2, lastState=late),
            container("d", RUNNING, restartCount=1, lastState=early),
        ],
    }
    assert cells(status)[RESTARTS] == "3 (5m ago)"


def test_init_containers_are_counted_by_the_one_that_is_at_work() -> None:
    done = {"terminated": {"exitCode": 0}}
    spec = {"initContainers": [{"name": "i"}, {"name": "j"}]}
    status = {"phase": "Pending", "initContainerStatuses": [container("i", done), container("j", RUNNING)]}
    row = cells(status, spec)
    assert (row[READY], row[STATUS]) == ("0/2", "Init:1/2")


def test_a_sidecar_counts_as_a_container() -> None:
    spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = container("s", RUNNING, ready=True, started=True, restartCount=4)
    mains = [container("c", RUNNING, ready=True), container("d", RUNNING, ready=True)]
    row = cells({"phase": "Running", "initContainerStatuses": [sidecar], "containerStatuses": mains}, spec)
    assert (row[READY], row[STATUS], row[RESTARTS]) == ("3/3", "Running", "4")


def test_ends_without_a_reason_show_signal_or_exit_code() -> None:
    by_code = {"phase": "Failed", "containerStatuses": [container("c", {"terminated": {"exitCode": 3}})]}
    signalled = {"terminated": {"exitCode": 137, "signal": 9}}
    by_signal = {"phase": "Failed", "containerStatuses": [container("c", signalled)]}
    assert cells(by_code)[STATUS] == "ExitCode:3"
    assert cells(by_signal)[STATUS] == "Signal:9"


def test_a_pod_of_which_one_container_is_done_still_runs() -> None:
    done = container("c", {"terminated": {"exitCode": 0, "reason": "Completed"}})
    status = {"phase": "Running", "containerStatuses": [done, container("d", RUNNING, ready=True)]}
    assert cells(status)[STATUS] == "NotReady"
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    assert cells(status)[STATUS] == "Running"


def test_deletion_shows_unless_the_pod_has_ended() -> None:
    deleted = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
    assert cells({"phase": "Running"}, **deleted)[STATUS] == "Terminating"
    assert cells({"phase": "Running", "reason": "NodeLost"}, **deleted)[STATUS] == "Unknown"
    assert cells({"phase": "Succeeded"}, **deleted)[STATUS] == "Succeeded"


def test_scheduling_gates_and_readiness_gates_show() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert cells({"phase": "Pending", "conditions": [gated]})[STATUS] == "SchedulingGated"
    spec = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    assert cells({"conditions": [{"type": "a", "status": "True"}]}, spec)[GATES] == "1/2"


def test_rows_of_ended_pods_say_so() -> None:
    def reason(phase: str) -> str | None:
        found = pod_row_conditions({"status": {"phase": phase}})
        return found[0]["reason"] if found else None

    assert [reason(phase) for phase in ("Succeeded", "Failed", "Running")] == ["Succeeded", "Failed", None]


_STATES = st.sampled_from(
    [{}, RUNNING, {"waiting": {}}, {"waiting": {"reason": "W"}}, {"terminated": {"exitCode": 0}}]
)


@given(st.lists(st.tuples(_STATES, st.booleans()), max_size=4))
def test_never_more_containers_are_ready_than_run(states: list[tuple[Any, bool]]) -> None:
    statuses = [container(str(i), state, ready=ready) for i, (state, ready) in enumerate(states)]
    spec = {"containers": [{"name": str(i)} for i in range(len(states))]}
    ready, total = cells({"phase": "Running", "containerStatuses": statuses}, spec)[READY].split("/")
    assert int(ready) == sum(state == RUNNING and is_ready for state, is_ready in states)
    assert int(total) == len(states)
