from __future__ import annotations

import pytest

from holokube.karpenter.api import labels


@pytest.mark.parametrize(
    "key",
    [
        "karpenter.sh/capacity-type", "karpenter.sh/nodepool", "topology.kubernetes.io/zone", "example.com/team",
        "team", "karpenter.kwok.sh/instance-size", "karpenter.kwok.sh/reservation-id", "kubernetes.io/os",
        # Only whole names of a domain count.
        "notkarpenter.sh/x", "karpenter.sh.example.com/x", "karpenter.sh",
    ],
)  # fmt: skip
def test_well_known_labels_and_those_of_other_domains_are_free(key: str) -> None:
    assert labels.why_restricted(key) == ""


@pytest.mark.parametrize(
    "key",
    ["karpenter.sh/initialized", "deep.in.karpenter.sh/x", "karpenter.kwok.sh/mine", "kubernetes.io/hostname"],
)
def test_labels_of_karpenters_own_domains_and_the_hostname_are_not(key: str) -> None:
    assert labels.why_restricted(key).startswith(f"label {key} is not allowed")


def test_a_node_class_has_a_label_of_its_own() -> None:
    assert labels.node_class_label("karpenter.kwok.sh", "KWOKNodeClass") == "karpenter.kwok.sh/kwoknodeclass"
