from __future__ import annotations

import pytest

from holokube.report.families import NOBODY, by_family, family


@pytest.mark.parametrize(("workload", "expected"), [
    ("ns/Job/report-00012", "ns/Job/report-*"),
    ("ns/Pod/batch-7", "ns/Pod/batch-*"),
    ("ns/Job/report", "ns/Job/report"),
    ("ns/Deployment/web-2", "ns/Deployment/web-2"),
    ("ns/StatefulSet/db-0", "ns/StatefulSet/db-0"),
    ("Job/-1", "Job/-1"),
    ("", ""),
])
def test_only_numbered_jobs_and_pods_are_taken_together(workload: str, expected: str) -> None:
    assert family(workload) == expected


def test_amounts_are_added_up_and_what_nobody_asked_for_has_a_name() -> None:
    assert by_family({"ns/Job/a-1": 1.0, "ns/Job/a-2": 2.0, "ns/Deployment/web": 4.0, "": 8.0}) == {
        "ns/Job/a-*": 3.0, "ns/Deployment/web": 4.0, NOBODY: 8.0}
