from __future__ import annotations

from holokube.kube import addresses, names
from tests.kube.recordings import recorded


def test_every_check_says_what_upstream_says() -> None:
    recording = recorded("names")
    messages = recording["messages"]
    checks = {
        name.removeprefix("is_"): check
        for module in (names, addresses)
        for name, check in vars(module).items()
        if name.startswith("is_")
    }
    seen = set()
    for case in recording["cases"]:
        seen |= case["errors"].keys()
        for kind, numbers in case["errors"].items():
            said = checks[kind](case["text"])
            assert (kind, case["text"], said) == (kind, case["text"], [messages[i] for i in numbers])
    assert len(seen) == 21
    for case in recording["cases"]:
        for kind in seen - case["errors"].keys():
            assert (kind, case["text"], checks[kind](case["text"])) == (kind, case["text"], [])


def test_good_names_raise_no_complaint() -> None:
    assert names.is_dns1123_label("my-name") == []
    assert names.is_dns1123_subdomain("example.com") == []
    assert names.is_dns1035_label("abc-123") == []
    assert names.is_qualified_name("example.com/MyName") == []
    assert names.is_label_value("") == []
    assert names.is_port_name("http") == []
    assert names.is_port_number(443) == []


def test_a_dotted_label_gets_its_own_message() -> None:
    assert names.is_dns1123_label("a.b") == ["must not contain dots"]


def test_a_trailing_newline_is_no_part_of_a_name() -> None:
    assert names.is_dns1123_label("a\n")
    assert names.is_label_value("a\n")


def test_length_is_counted_in_bytes() -> None:
    assert "must be no more than 63 bytes" in names.is_label_value("é" * 32)
    assert "must be no more than 63 bytes" not in names.is_label_value("é" * 31)


def test_numbers_out_of_range_are_named_with_their_range() -> None:
    assert names.is_port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert names.is_user_or_group_id(2**31) == ["must be between 0 and 2147483647, inclusive"]
    assert names.is_in_range(5, 1, 5) == []


def test_all_annotations_together_have_256_kib() -> None:
    fitting = {"a/b": "x" * (names.TOTAL_ANNOTATION_SIZE_LIMIT_BYTES - 3)}
    assert names.annotations_size_errors(fitting) == []
    assert names.annotations_size_errors({**fitting, "k": ""}) == [
        "Too long: may not be more than 262144 bytes"
    ]


def test_annotation_keys_may_be_upper_case_in_the_prefix() -> None:
    assert names.is_qualified_name("Example.com/x")
    assert names.is_annotation_key("Example.com/x") == []


def test_the_dash_at_the_end_of_a_generate_name_is_forgiven() -> None:
    assert names.is_dns1123_subdomain("web-")
    assert names.is_dns1123_subdomain(names.mask_trailing_dash("web-")) == []
    assert names.mask_trailing_dash("-") == "-"


def test_returned_lists_are_the_callers_own() -> None:
    names.is_qualified_name("-").append("changed")
    assert "changed" not in names.is_qualified_name("-")
