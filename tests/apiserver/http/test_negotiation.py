from __future__ import annotations

import pytest

from holokube.apiserver.http.negotiation import Format, negotiate
from holokube.kube.errors import NotAcceptable

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Format()),
        ("*/*", Format()),
        ("application/json", Format()),
        ("application/vnd.kubernetes.protobuf,application/json", Format()),
        ("application/yaml", Format(yaml=True)),
        (f"{TABLE},application/json", Format(form="Table")),
        (f"application/json;q=0.1,{TABLE};q=0.9", Format(form="Table")),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Format(form="PartialObjectMetadataList")),
        ("application/json;as=Frob;v=v1;g=meta.k8s.io,application/json", Format()),
        ("application/json;pretty=1", Format(pretty=True)),
    ],
)
def test_the_first_format_the_server_can_produce_wins(accept: str, expected: Format) -> None:
    assert negotiate(accept) == expected


@pytest.mark.parametrize(
    "accept",
    [
        "text/html", "application/*", "application/vnd.kubernetes.protobuf", "application/json;q=0",
        "application/json;q=x",
    ],
)
def test_what_cannot_be_produced_is_not_acceptable(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept)


def test_aggregated_discovery_is_only_for_discovery() -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert negotiate(accept, discovery=True).discovery_v2
    with pytest.raises(NotAcceptable):
        negotiate(accept)
