from __future__ import annotations

import pytest

from holokube.apiserver.kinds.cron_schedules import ScheduleError, check_schedule, time_zone_problems
from holokube.apiserver.kinds.job_indexes import IndexFormatError, count_indexes, first_overlap
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import UID, changed, created, job, update

NOON = "2026-01-01T12:00:00Z"


def test_a_job_finds_its_pods_by_its_uid() -> None:
    obj = created("jobs", job())
    generated = {
        "controller-uid": UID,
        "job-name": "j",
        "batch.kubernetes.io/controller-uid": UID,
        "batch.kubernetes.io/job-name": "j",
    }
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert obj["spec"]["template"]["metadata"]["labels"] == {"app": "web", **generated}
    assert obj["metadata"]["labels"] == {"app": "web", **generated}


def test_a_job_keeps_labels_of_its_own() -> None:
    body = job()
    body["metadata"]["labels"] = {"team": "a"}
    assert created("jobs", body)["metadata"]["labels"] == {"team": "a"}


def test_a_job_with_a_manual_selector_gets_no_labels() -> None:
    obj = created("jobs", job({"manualSelector": True, "selector": {"matchLabels": {"app": "web"}}}))
    assert obj["spec"]["template"]["metadata"]["labels"] == {"app": "web"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ({"parallelism": 3}, {"parallelism": 3, "backoffLimit": 6}),
        ({"completions": 3}, {"completions": 3, "parallelism": 1, "backoffLimit": 6}),
        (
            {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1},
            {"completions": 2, "parallelism": 1, "backoffLimit": 2**31 - 1},
        ),
    ],
)
def test_the_numbers_of_a_job_depend_on_each_other(given: JsonObject, expected: JsonObject) -> None:
    spec = created("jobs", job(given))["spec"]
    found = {key: spec[key] for key in ("completions", "parallelism", "backoffLimit") if key in spec}
    assert found == expected


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"conditions": ["Complete"], "startTime": NOON, "completionTime": NOON}, "status.conditions"),
        ({"conditions": ["Complete", "SuccessCriteriaMet"], "startTime": NOON}, "status.completionTime"),
        ({"conditions": ["Failed"], "startTime": NOON}, "status.conditions"),
        ({"conditions": ["Failed", "FailureTarget"]}, "status.startTime"),
        ({"completionTime": NOON}, "status.completionTime"),
        ({"active": 1, "ready": 2}, "status.ready"),
        ({"completedIndexes": "0-1"}, "status.completedIndexes"),
        ({"failedIndexes": "0"}, "status.failedIndexes"),
        ({"failed": 1}, "status.failed"),
        ({"succeeded": 1}, "status.succeeded"),
    ],
)  # fmt: skip
def test_a_job_status_that_contradicts_itself_is_refused(status: JsonObject, field: str) -> None:
    old = created("jobs", job({"completions": 3}))
    old["status"] = {"failed": 2, "succeeded": 2}
    conditions = [{"type": kind, "status": "True"} for kind in status.get("conditions", ())]
    given = {"failed": 2, "succeeded": 2, **status, **({"conditions": conditions} if conditions else {})}
    fields = update("jobs", old, changed(old, "status", given), status=True).fields
    assert [found for _, found in fields] == [field]


def test_a_job_that_completes_properly_is_accepted() -> None:
    old = created("jobs", job())
    status = {
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:05:00Z",
        "succeeded": 1,
        "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"},
            {"type": "Complete", "status": "True"},
        ],
    }
    assert update("jobs", old, changed(old, "status", status), status=True).causes == []


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-6 1,15 jan-mar mon-fri",
        "@daily",
        "@every 1h30m",
        "? ? ? ? ?",
        "5/15 * * * *",
        " 0 0 * * 0 ",
    ],
)
def test_a_schedule_is_understood(schedule: str) -> None:
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
    ],
)
def test_a_schedule_is_refused_in_the_words_of_the_cron_library(schedule: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check_schedule(schedule)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("zone", "is_known"),
    [
        ("UTC", True),
        ("Europe/Berlin", True),
        ("Etc/GMT+5", True),
        ("", False),
        ("Local", False),
        ("../x", False),
        ("Mars/Olympus", False),
    ],
)
def test_a_time_zone_must_be_known(zone: str, is_known: bool) -> None:
    assert (time_zone_problems(zone) == []) is is_known


def test_indexes_are_counted() -> None:
    assert count_indexes("", 10) == 0
    assert count_indexes("0,2-4,9", 10) == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("3-1", "non-increasing order, previous: 3, current: 1"),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("10", 'too large index: "10"'),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("1-2-3", 'the fragment "1-2-3" violates the requirement'),
    ],
)
def test_bad_indexes_are_explained(text: str, problem: str) -> None:
    with pytest.raises(IndexFormatError, match="^" + problem.replace("(", r"\(")):
        count_indexes(text, 10)


def test_the_first_index_in_both_sets_is_found() -> None:
    assert first_overlap("0-2,7", "3-5,7-8", 10) == 7
    assert first_overlap("0-2", "3-5", 10) is None
    assert first_overlap("x,4", "4", 10) == 4
