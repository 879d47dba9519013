from __future__ import annotations

from importlib import resources

import orjson
import pytest

from holokube.apiserver import descriptions
from holokube.apiserver.descriptions import describe_field, describe_type
from holokube.apiserver.types import TypeCatalog

FOLDER = resources.files("holokube.apiserver")
PACKAGES = sorted(
    file.name.removesuffix(".json")
    for file in FOLDER.joinpath("schemas").iterdir()
    if file.name.startswith("io.k8s.")
)
CATALOG = TypeCatalog()
CORE = "io.k8s.api.core.v1"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_type_and_field_is_described_in_one_line(package: str) -> None:
    for kind, schema in CATALOG.package(package).items():
        texts = {"": describe_type(f"{package}.{kind}")}
        for field, part in schema.get("properties", {}).items():
            texts[field] = describe_field(f"{package}.{kind}", field, part)
        for field, text in texts.items():
            assert len(text) > 3, f"{kind}.{field}"
            assert text.endswith((".", "...")), f"{kind}.{field}: {text}"
            assert "\n" not in text
            assert len(text) < 140, f"{kind}.{field}: {text}"


@pytest.mark.parametrize("package", PACKAGES)
def test_descriptions_are_about_types_and_fields_that_exist(package: str) -> None:
    path = FOLDER.joinpath("descriptions", f"{package}.json")
    assert path.is_file(), f"there are no descriptions of {package}"
    known = CATALOG.package(package)
    for kind, fields in orjson.loads(path.read_bytes()).items():
        if kind not in known:
            # Types of discovery, which no resource refers to.
            assert package == "io.k8s.apimachinery.pkg.apis.meta.v1"
            continue
        properties = known[kind].get("properties", {})
        assert set(fields) - {""} <= set(properties), kind


def test_a_hand_written_description_wins() -> None:
    assert describe_type(f"{CORE}.Pod") == "Containers that run together on one node."
    assert describe_field(f"{CORE}.Taint", "effect", {}) == "NoSchedule, PreferNoSchedule or NoExecute."


def test_lists_and_conditions_follow_a_rule() -> None:
    assert describe_type(f"{CORE}.PodList").startswith("Objects of kind Pod")
    assert "fact" in describe_type(f"{CORE}.NamespaceCondition")
    assert describe_field(f"{CORE}.NamespaceCondition", "status", {}) == "True, False or Unknown."
    assert describe_field(f"{CORE}.PodList", "items", {}) == "The objects."


@pytest.mark.parametrize(
    ("field", "source", "expected"),
    [
        ("podCIDRs", {"type": "array"}, "List of pod CIDRs."),
        ("drainTimeoutSeconds", {"type": "integer"}, "Drain timeout, in seconds."),
        ("maxSurge", {"type": "integer"}, "Max surge, a whole number."),
        ("extraLabels", {"type": "object", "additionalProperties": {}}, "Extra labels, by key."),
        ("fastPath", {"type": "boolean"}, "Whether fast path is on."),
        ("hostIP", {"type": "string"}, "Host IP."),
        ("x-kubernetes-thing", {"type": "string"}, "X kubernetes thing."),
    ],
)
def test_a_field_nobody_described_is_described_by_its_name(
    field: str, source: dict[str, object], expected: str
) -> None:
    assert describe_field("io.example.Thing", field, source) == expected


def test_a_type_nobody_described_is_described_by_its_name() -> None:
    assert describe_type("io.example.FancyHTTPThing") == "Fancy HTTP thing."


def test_descriptions_are_read_once() -> None:
    assert descriptions._package(CORE) is descriptions._package(CORE)
