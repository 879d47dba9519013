"""The answer to one review: what it changes, what it warns of, and that it never stands in the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holokube.kube.sizing import ENABLED_LABEL, ORIGINAL_ANNOTATION, STATUS_ANNOTATION, sized_pod
from holokube.sizing.review import MalformedReview, judge, parse_review
from tests.kube.sizing.pods import container, daemon, sized_node
from tests.sizing.reviews import body_of, operations, patched, review

JsonObject = dict[str, Any]


def request_for(obj: JsonObject | None, **more: Any) -> JsonObject:
    request: JsonObject = review(obj, **more)["request"]
    return request


def agent(**annotations: str) -> JsonObject:
    return daemon(
        container("a", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2"}), container("b", {"cpu": "3", "memory": "1Gi"}),
        **(annotations or {"request_cpu_fraction": "0.1", "request_memory_fraction": "0.1"}),
    )  # fmt: skip


def test_the_patch_makes_the_pod_what_the_plain_function_says() -> None:
    verdict = judge(request_for(agent()), sized_node())
    assert verdict.outcome == "sized" and verdict.response["allowed"] is True and verdict.response["uid"] == "u-7"
    assert patched(agent(), verdict.response) == sized_pod(agent(), sized_node())


def test_sizing_a_sized_pod_sends_no_patch() -> None:
    once = sized_pod(agent(), sized_node())
    verdict = judge(request_for(once), sized_node())
    assert verdict.outcome == "unchanged" and "patch" not in verdict.response


def test_only_what_changes_is_in_the_patch() -> None:
    paths = [op["path"] for op in operations(judge(request_for(agent()), sized_node()).response)]
    assert "/spec/containers/0/resources/limits/cpu" not in paths
    assert not any("image" in path for path in paths)


def test_fields_that_are_missing_are_added_and_others_replaced() -> None:
    """A patch that replaces what is not there would make the API server refuse the pod."""
    given = daemon(container("c", None, {"cpu": "1"}), request_cpu_fraction="0.2", limit_cpu_fraction="0.2")
    done = operations(judge(request_for(given), sized_node()).response)
    by_path = {op["path"]: op["op"] for op in done}
    assert by_path["/spec/containers/0/resources/requests"] == "add"
    assert by_path["/spec/containers/0/resources/limits/cpu"] == "replace"
    assert by_path["/metadata/annotations/" + STATUS_ANNOTATION.replace("/", "~1")] == "add"
    patched(given, judge(request_for(given), sized_node()).response)


def test_annotations_that_changed_are_replaced() -> None:
    once = sized_pod(agent(), sized_node("10"))
    done = operations(judge(request_for(once), sized_node("20")).response)
    by_path = {op["path"]: op["op"] for op in done}
    assert by_path["/metadata/annotations/" + STATUS_ANNOTATION.replace("/", "~1")] == "replace"
    assert "/metadata/annotations/" + ORIGINAL_ANNOTATION.replace("/", "~1") not in by_path
    assert by_path["/spec/containers/0/resources/requests/cpu"] == "replace"


def test_sidecars_and_pod_level_resources_are_patched_where_they_are() -> None:
    given = daemon(
        container("main", {"cpu": "1"}),
        sidecars=(container("init"), container("side", {"cpu": "1"}, restartPolicy="Always")),
        request_cpu_fraction="0.1",
    )
    given["spec"]["resources"] = {"requests": {"cpu": "2"}}
    verdict = judge(request_for(given), sized_node(cpu="8"))
    paths = {op["path"] for op in operations(verdict.response)}
    assert "/spec/initContainers/1/resources/requests/cpu" in paths and "/spec/resources/requests/cpu" in paths
    assert patched(given, verdict.response) == sized_pod(given, sized_node(cpu="8"))


@pytest.mark.parametrize(("given", "node", "named"), [
    (agent(request_cpu_fraction="lots"), sized_node(), "request-cpu-fraction"),
    (agent(request_cpu_fraction="0.1", minimum_cpu="2", maximum_cpu="1"), sized_node(), "minimum-cpu"),
    (agent(limit_cpu_fraction="0.1"), sized_node(), "limit-cpu-fraction"),
    (agent(request_cpu_fraction="0.1", exclude_containers="ghost"), sized_node(), "exclude-containers"),
    (agent(limit_memory_fraction="0.1"), sized_node(), "limit-memory-fraction"),
    (agent(request_cpu_fraction="0.1", maximum_cpu_request="0"), sized_node(), "request-cpu-fraction"),
    (agent(request_cpu_fraction="0.1"), None, 'node "n"'),
    (agent(request_cpu_fraction="0.1"), {"metadata": {"name": "n"}}, "request-cpu-fraction"),
])  # fmt: skip
def test_trouble_admits_the_pod_unchanged_with_a_warning(
    given: JsonObject, node: JsonObject | None, named: str
) -> None:
    verdict = judge(request_for(given), node)
    assert verdict.response["allowed"] is True and "patch" not in verdict.response
    assert verdict.outcome == "failed" and verdict.problem is not None
    (warning,) = verdict.response["warnings"]
    assert named in warning and "pod not sized" in warning and verdict.problem.hint in warning


def test_a_pod_that_names_no_node_is_admitted_with_a_warning() -> None:
    given = agent()
    del given["spec"]["affinity"]
    verdict = judge(request_for(given), None)
    assert verdict.outcome == "failed" and "DaemonSet" in verdict.response["warnings"][0]


def test_on_error_deny_refuses_instead() -> None:
    verdict = judge(request_for(agent(request_cpu_fraction="lots")), sized_node(), "deny")
    assert verdict.outcome == "denied" and verdict.response["allowed"] is False
    status = verdict.response["status"]
    assert status["code"] == 403 and "request-cpu-fraction" in status["message"] and '"0.1"' in status["message"]


def test_on_error_deny_lets_everything_else_through() -> None:
    assert judge(request_for(agent()), sized_node(), "deny").outcome == "sized"
    without = agent()
    del without["metadata"]["labels"][ENABLED_LABEL]
    assert judge(request_for(without), None, "deny").response == {"uid": "u-7", "allowed": True}


def test_notes_are_warnings_that_stop_nothing() -> None:
    verdict = judge(request_for(agent(request_cpu_fraction="0.1", maximun_cpu="7")), sized_node(), "deny")
    assert verdict.outcome == "sized" and "maximun-cpu" in verdict.response["warnings"][0]


@pytest.mark.parametrize("request_", [
    request_for(agent(), operation="UPDATE"), request_for(agent(), subResource="status"), request_for(None),
    request_for({"kind": "Node", "metadata": {"labels": {ENABLED_LABEL: "true"}}}),
])  # fmt: skip
def test_what_is_not_a_new_pod_is_let_through(request_: JsonObject) -> None:
    assert judge(request_, sized_node()).response == {"uid": "u-7", "allowed": True}


def daemon_set(**annotations: str) -> JsonObject:
    pod = agent(**annotations)
    return {"kind": "DaemonSet", "spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}}}


def test_a_daemon_set_is_warned_about_when_people_apply_it() -> None:
    verdict = judge(request_for(daemon_set(request_cpu_fraction="10%")), None, "deny")
    assert verdict.response["allowed"] is True and "patch" not in verdict.response
    assert "pods will not be sized" in verdict.response["warnings"][0]
    assert "request-cpu-fraction" in verdict.response["warnings"][0]


def test_a_good_daemon_set_is_let_through_in_silence() -> None:
    assert judge(request_for(daemon_set()), None).response == {"uid": "u-7", "allowed": True}


@pytest.mark.parametrize(("body", "said"), [
    (b"", "no JSON"), (b"{", "no JSON"), (b"[]", "no AdmissionReview"), (b"{}", "no AdmissionReview"),
    (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "v1beta1"),
    (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "no request"),
    (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": ""}}', "uid"),
    (json.dumps({**review(None), "request": {"uid": "x", "object": 7}}).encode(), "object"),
])  # fmt: skip
def test_a_malformed_review_says_what_is_wrong(body: bytes, said: str) -> None:
    with pytest.raises(MalformedReview, match=said):
        parse_review(body)


def test_the_answer_is_a_review_of_the_same_version() -> None:
    answer = json.loads(judge(parse_review(body_of(agent())), sized_node()).body)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == "u-7"
