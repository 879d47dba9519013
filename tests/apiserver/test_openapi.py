from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.apiserver.openapi import OpenApi
from holokube.apiserver.openapi.operations import definition_name, group_word, tag
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import ResourceType, ResourceVersionInfo, Subresource
from holokube.apiserver.types import compile_schema
from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.store.store import Store

GVK = "x-kubernetes-group-version-kind"
REF = "#/components/schemas/"
WIDGETS = "apis/lab.example.com/v1"
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(VirtualClock(), Rng(1), Store())


@pytest.fixture(scope="module")
def openapi(registry: Registry) -> OpenApi:
    return OpenApi(registry)


@pytest.fixture(scope="module")
def documents(openapi: OpenApi) -> dict[str, Any]:
    return {path: load(openapi, path) for path in openapi.index()["paths"]}


def load(openapi: OpenApi, path: str) -> Any:
    document = openapi.document(path)
    assert document is not None
    return json.loads(document.raw)


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    """Path, method and operation, with the parameters of the path among the operation's own."""
    for path, entry in document["paths"].items():
        shared = entry.get("parameters", [])
        for method, operation in entry.items():
            if method != "parameters":
                yield path, method, {**operation, "parameters": [*shared, *operation.get("parameters", [])]}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def add_widgets(registry: Registry, schema: Any = None, *, scale: bool = True) -> None:
    source = schema or {
        "type": "object",
        "description": "Turns.",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "default": 3},
                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "inner": {"type": "object", "x-kubernetes-embedded-resource": True},
                    "maybe": {"type": "string", "nullable": True},
                },
            }
        },
    }
    changes = ("get", "patch", "update")
    subresources = {"status": Subresource("status", "Widget", changes, "lab.example.com", "v1")}
    if scale:
        subresources["scale"] = Subresource("scale", "Scale", changes, "autoscaling", "v1")
    compiled = compile_schema(source, registry.table.catalog.schema)
    info = ResourceVersionInfo("v1", compiled, subresources, ALL_VERBS)
    registry.table.add(
        ResourceType(
            "lab.example.com", "widgets", "widget", "Widget", "WidgetList", True, {"v1": info}, "v1",
            custom=True, bucket="widgets.lab.example.com",
        )
    )  # fmt: skip


def test_operations_are_those_of_the_real_server(documents: dict[str, Any]) -> None:
    recorded = Path(__file__).with_name("recorded_operations.txt").read_text().splitlines()
    ours = [
        f"{method} {path} {operation['operationId']}"
        for document in documents.values()
        for path, method, operation in operations(document)
    ]
    assert sorted(ours) == recorded


def test_every_reference_leads_somewhere(documents: dict[str, Any]) -> None:
    for path, document in documents.items():
        schemas = document["components"]["schemas"]
        missing = {ref for ref in references(document) if ref.removeprefix(REF) not in schemas}
        assert missing == set(), path


def test_nothing_stands_beside_a_reference(documents: dict[str, Any]) -> None:
    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert not isinstance(value.get("$ref"), str) or len(value) == 1, value
            for part in value.values():
                check(part)
        elif isinstance(value, list):
            for part in value:
                check(part)

    for document in documents.values():
        check(document)


def test_every_type_in_a_document_is_used(documents: dict[str, Any]) -> None:
    for path, document in documents.items():
        used = {ref.removeprefix(REF) for ref in references(document)}
        assert set(document["components"]["schemas"]) == used, path


def test_kinds_carry_their_group_and_version(documents: dict[str, Any]) -> None:
    schemas = documents["apis/apps/v1"]["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.Deployment"][GVK] == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]
    assert [row["group"] for row in schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][GVK]] == [
        "",
        "apps",
    ]


def test_writes_take_field_validation(documents: dict[str, Any]) -> None:
    """That parameter is how kubectl finds out that the server validates fields itself."""
    count = 0
    for document in documents.values():
        for path, _, operation in operations(document):
            names = {parameter["name"] for parameter in operation["parameters"]}
            if operation.get("x-kubernetes-action") in ("post", "put", "patch"):
                count += 1
                assert {"fieldValidation", "fieldManager", "dryRun", "pretty"} <= names, path
            assert ("force" in names) == (operation.get("x-kubernetes-action") == "patch")
    assert count > 200


def test_every_path_parameter_is_declared(documents: dict[str, Any]) -> None:
    for document in documents.values():
        for path, method, operation in operations(document):
            declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            in_path = {part[1:-1] for part in path.split("/") if part.startswith("{")}
            assert declared == in_path, (path, method)


def test_no_parameter_is_declared_twice(documents: dict[str, Any]) -> None:
    for document in documents.values():
        for path, method, operation in operations(document):
            names = [(p["name"], p["in"]) for p in operation["parameters"]]
            assert len(names) == len(set(names)), (path, method)


def test_operation_names_are_unique(documents: dict[str, Any]) -> None:
    names = [o["operationId"] for document in documents.values() for _, _, o in operations(document)]
    assert len(names) == len(set(names))


def test_nothing_lacks_a_description(documents: dict[str, Any]) -> None:
    for document in documents.values():
        for name, schema in document["components"]["schemas"].items():
            assert schema["description"], name
            for field, part in schema.get("properties", {}).items():
                assert part["description"].strip(), f"{name}.{field}"
        for path, method, operation in operations(document):
            assert operation["description"], (path, method)
            assert all(parameter["description"] for parameter in operation["parameters"])


def test_built_in_patches_can_be_strategic(documents: dict[str, Any]) -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = documents["apis/apps/v1"]["paths"][path]["patch"]
    assert set(patch["requestBody"]["content"]) == {
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }


def test_what_operations_of_a_path_share_stands_with_the_path(documents: dict[str, Any]) -> None:
    entry = documents["api/v1"]["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert [p["name"] for p in entry["parameters"]] == ["name", "namespace", "pretty"]
    assert "parameters" not in entry["get"]


def test_the_index_names_each_document_with_its_tag(openapi: OpenApi) -> None:
    paths = openapi.index()["paths"]
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"} <= set(paths)
    for path, entry in paths.items():
        document = openapi.document(path)
        assert document is not None
        assert entry["serverRelativeURL"] == f"/openapi/v3/{path}?hash={document.etag}"


def test_there_is_no_document_for_what_is_not_served(openapi: OpenApi) -> None:
    for path in ("", "apis/apps/v2", "apis/nowhere/v1", "api/v2", "apps/v1"):
        assert openapi.document(path) is None


def test_documents_are_kept_until_a_resource_changes_them() -> None:
    registry = Registry(VirtualClock(), Rng(1), Store())
    openapi = OpenApi(registry)
    apps, version_2 = openapi.document("apis/apps/v1"), openapi.v2()
    assert openapi.document("apis/apps/v1") is apps
    assert openapi.v2() is version_2
    assert openapi.document(WIDGETS) is None

    add_widgets(registry)
    first = openapi.document(WIDGETS)
    assert first is not None
    assert openapi.document("apis/apps/v1") is apps
    assert openapi.v2() is not version_2

    add_widgets(registry, {"type": "object", "properties": {"spec": {"type": "string"}}})
    second = openapi.document(WIDGETS)
    assert second is not None
    assert second.etag != first.etag
    assert second.raw != first.raw

    registry.table.remove("lab.example.com", "widgets")
    assert openapi.document(WIDGETS) is None
    assert WIDGETS not in openapi.index()["paths"]


def test_a_changed_subresource_changes_the_tag() -> None:
    registry = Registry(VirtualClock(), Rng(1), Store())
    openapi = OpenApi(registry)
    add_widgets(registry)
    first = openapi.index()["paths"][WIDGETS]
    add_widgets(registry, scale=False)
    assert openapi.index()["paths"][WIDGETS] != first


@pytest.fixture
def widgets() -> tuple[OpenApi, Any]:
    registry = Registry(VirtualClock(), Rng(1), Store())
    add_widgets(registry)
    openapi = OpenApi(registry)
    return openapi, load(openapi, WIDGETS)


def test_a_custom_type_has_what_every_object_has(widgets: tuple[OpenApi, Any]) -> None:
    schema = widgets[1]["components"]["schemas"]["com.example.lab.v1.Widget"]
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert schema["properties"]["metadata"]["allOf"] == [
        {"$ref": f"{REF}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    assert schema["description"] == "Turns."
    assert schema[GVK] == [{"group": "lab.example.com", "kind": "Widget", "version": "v1"}]


def test_a_custom_type_keeps_its_own_words(widgets: tuple[OpenApi, Any]) -> None:
    spec = widgets[1]["components"]["schemas"]["com.example.lab.v1.Widget"]["properties"]["spec"]
    assert "description" not in spec
    assert spec["properties"]["size"] == {"type": "integer", "default": 3}


def test_an_embedded_object_has_what_every_object_has(widgets: tuple[OpenApi, Any]) -> None:
    spec = widgets[1]["components"]["schemas"]["com.example.lab.v1.Widget"]["properties"]["spec"]
    inner = spec["properties"]["inner"]
    assert set(inner["properties"]) == {"apiVersion", "kind", "metadata"}
    assert inner["required"] == ["kind", "apiVersion"]


def test_a_default_that_looks_like_a_reference_does_no_harm() -> None:
    registry = Registry(VirtualClock(), Rng(1), Store())
    odd = {"type": "object", "default": {"$ref": f"{REF}nowhere", "default": {"$ref": "x"}}}
    fields = {"spec": odd, "$ref": {"type": "string"}, "default": {"type": "string"}}
    add_widgets(registry, {"type": "object", "properties": fields})
    openapi = OpenApi(registry)
    schema = load(openapi, WIDGETS)["components"]["schemas"]["com.example.lab.v1.Widget"]
    assert schema["properties"]["spec"] == odd
    assert schema["properties"]["$ref"] == {"type": "string"}
    assert json.loads(openapi.v2().raw)["definitions"]["com.example.lab.v1.Widget"]


def test_custom_resources_have_no_strategic_patch(widgets: tuple[OpenApi, Any]) -> None:
    path = "/apis/lab.example.com/v1/namespaces/{namespace}/widgets/{name}"
    content = widgets[1]["paths"][path]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in content
    assert "application/merge-patch+json" in content


def test_the_scale_of_a_custom_resource_is_a_scale(widgets: tuple[OpenApi, Any]) -> None:
    path = "/apis/lab.example.com/v1/namespaces/{namespace}/widgets/{name}/scale"
    answer = widgets[1]["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": f"{REF}io.k8s.api.autoscaling.v1.Scale"}


def test_version_2_says_the_same_in_its_own_words(widgets: tuple[OpenApi, Any]) -> None:
    document = json.loads(widgets[0].v2().raw)
    definitions = document["definitions"]
    missing = {
        ref for ref in references(document) if ref.removeprefix("#/definitions/") not in definitions
    }
    assert missing == set()
    pod = definitions["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    put = document["paths"]["/api/v1/nodes/{name}"]["put"]
    assert put["parameters"][0]["in"] == "body"
    assert {"fieldValidation", "dryRun"} <= {parameter["name"] for parameter in put["parameters"]}
    groups = [row["group"] for row in definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][GVK]]
    assert {"", "apps", "lab.example.com"} <= set(groups)


def test_version_2_leaves_open_what_it_cannot_say(widgets: tuple[OpenApi, Any]) -> None:
    definition = json.loads(widgets[0].v2().raw)["definitions"]["com.example.lab.v1.Widget"]
    spec = definition["properties"]["spec"]["properties"]
    assert spec["open"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert spec["maybe"] == {}
    assert spec["size"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("group", "word", "tagged"),
    [
        ("", "Core", "core_v1"),
        ("apps", "Apps", "apps_v1"),
        ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization_v1"),
        ("my-lab.example.com", "MyLabExampleCom", "myLabExampleCom_v1"),
    ],
)
def test_groups_have_a_word_for_operations(group: str, word: str, tagged: str) -> None:
    assert group_word(group) == word
    assert tag(group, "v1") == tagged


def test_types_are_named_by_package_or_by_group_backwards() -> None:
    assert definition_name("apps", "v1", "Deployment", custom=False) == "io.k8s.api.apps.v1.Deployment"
    assert definition_name("karpenter.sh", "v1", "NodePool", custom=True) == "sh.karpenter.v1.NodePool"
