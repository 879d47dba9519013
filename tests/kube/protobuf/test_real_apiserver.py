"""The real kube-apiserver reads what is written here, and what it writes is read here."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import pytest

from holokube.kube.protobuf import MEDIA_TYPE, decode_envelope, encode_envelope
from holokube.kube.types import JsonObject
from holokube.testing.controlplane import ControlPlane
from tests.kube.protobuf.objects import full_node, full_pod

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"


def ask(plane: ControlPlane, method: str, path: str, *, accept: str, body: bytes | None = None) -> bytes:
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    context.load_cert_chain(plane.client_cert_file, plane.client_key_file)
    headers = {"Accept": accept} | ({"Content-Type": MEDIA_TYPE} if body is not None else {})
    request = urllib.request.Request(f"{plane.url}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            assert answer.headers["Content-Type"] == accept
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None


@pytest.mark.parametrize(
    ("path", "obj"), [(NODES, full_node("protobuf-node")), (PODS, full_pod("protobuf-pod"))], ids=["node", "pod"]
)
def test_objects_go_to_the_real_server_and_back(real_apiserver: ControlPlane, path: str, obj: JsonObject) -> None:
    # Nothing makes service accounts here, and no pod is admitted without one; it may be there from another test.
    account = {"metadata": {"name": "default"}}
    real_apiserver.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    # With a finalizer it could not be cleaned away.
    obj = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "finalizers"}}
    name = obj["metadata"]["name"]
    ask(real_apiserver, "POST", path, accept="application/json", body=encode_envelope(obj))
    try:
        as_json = json.loads(ask(real_apiserver, "GET", f"{path}/{name}", accept="application/json"))
        as_protobuf = decode_envelope(ask(real_apiserver, "GET", f"{path}/{name}", accept=MEDIA_TYPE))
        # What was sent in protobuf is what JSON shows.
        assert_within(without_defaulted(obj), as_json)
        # What the server writes in protobuf is what it writes in JSON, but for structs that Go's JSON shows empty.
        assert pruned(as_protobuf) == pruned(as_json)
        # And the server reads its own object, with every field that it has added, when we write it.
        again = json.loads(
            ask(real_apiserver, "PUT", f"{path}/{name}", accept="application/json", body=encode_envelope(as_json))
        )
        assert again == as_json
    finally:
        real_apiserver.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})
        assert real_apiserver.request("GET", f"{path}/{name}")[0] == 404


def without_defaulted(obj: JsonObject) -> JsonObject:
    """Without what the server sets itself on creation."""
    return {key: value for key, value in obj.items() if key != "status" or obj["kind"] == "Node"}


def assert_within(part: Any, whole: Any, where: str = "") -> None:
    if isinstance(part, dict):
        for key, value in part.items():
            if value is False and key not in whole:
                continue
            assert key in whole, f"{where}.{key} is lost"
            assert_within(value, whole[key], f"{where}.{key}")
    elif isinstance(part, list):
        # Admission adds tolerations, taints and volumes of its own.
        for index, value in enumerate(part):
            assert_within(value, whole[index], f"{where}[{index}]")
    else:
        assert part == whole, where


def pruned(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: pruned(found) for key, found in value.items()}
        return {key: found for key, found in kept.items() if found not in ({}, None)}
    return [pruned(item) for item in value] if isinstance(value, list) else value
