from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.apiserver.options import ContinueToken, DeleteOptions, WriteOptions, parse_revision
from holokube.kube.errors import BadRequest, Invalid


@given(revision=st.integers(min_value=0, max_value=2**62), name=st.text(min_size=1), namespace=st.text())
def test_a_continue_token_survives_the_round_trip(revision: int, name: str, namespace: str) -> None:
    prefix = f"{namespace}/"
    token = ContinueToken(revision, f"{prefix}{name}")
    try:
        text = token.encode(prefix)
    except TypeError:
        return  # a lone surrogate cannot be part of a name that was stored
    assert ContinueToken.decode(text, prefix) == token


@pytest.mark.parametrize("text", ["x", "!!", "e30", "eyJ2IjoieCJ9", "bnVsbA", "W10"])
def test_a_token_of_somebody_else_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="continue"):
        ContinueToken.decode(text, "")


def test_write_options_default_to_warnings_about_unknown_fields() -> None:
    options = WriteOptions.parse({}, "CreateOptions")
    assert (options.field_validation, options.dry_run, options.field_manager) == ("Warn", False, "")


@pytest.mark.parametrize(
    ("query", "apply", "field"),
    [
        ({"dryRun": "Some"}, False, "dryRun"),
        ({"fieldValidation": "Maybe"}, False, "fieldValidation"),
        ({"fieldManager": "x" * 129}, False, "fieldManager"),
        ({"fieldManager": "a\nb"}, False, "fieldManager"),
        ({"force": "true"}, False, "force"),
        ({}, True, "fieldManager"),
    ],
)
def test_bad_write_options_name_the_field(query: dict[str, str], apply: bool, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        WriteOptions.parse(query, "PatchOptions", apply=apply)
    assert [cause.field for cause in caught.value.causes] == [field]


def test_delete_options_come_from_the_body_if_there_is_one() -> None:
    body = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": ["All"]}
    options = DeleteOptions.parse({"gracePeriodSeconds": "9"}, body)
    assert (options.grace_period_s, options.uid, options.propagation, options.dry_run) == (5, "u", "Orphan", True)
    assert DeleteOptions.parse({"gracePeriodSeconds": "9"}, None).grace_period_s == 9


@pytest.mark.parametrize(
    "body",
    ["x", {"kind": "Pod"}, {"gracePeriodSeconds": "5"}, {"gracePeriodSeconds": True}, {"preconditions": []},
     {"preconditions": {"uid": 5}}, {"dryRun": "All"}],
)  # fmt: skip
def test_malformed_delete_options_are_a_bad_request(body: Any) -> None:
    with pytest.raises(BadRequest):
        DeleteOptions.parse({}, body)


def test_the_two_ways_to_ask_for_orphans_exclude_each_other() -> None:
    with pytest.raises(Invalid):
        DeleteOptions.parse({}, {"orphanDependents": True, "propagationPolicy": "Orphan"})
    assert DeleteOptions.parse({}, {"orphanDependents": True}).propagation == "Orphan"
    assert DeleteOptions.parse({}, {"orphanDependents": False}).propagation == "Background"


@pytest.mark.parametrize("text", ["-1", "1.0", "x", "\u0661", "9" * 30])
def test_a_version_must_be_a_number(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid resource version"):
        parse_revision(text)
