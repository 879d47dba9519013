from __future__ import annotations

import pytest

from holokube.pricing.size_labels import family_of, size_labels, size_of


@pytest.mark.parametrize(
    ("name", "family", "size"),
    [
        ("m5.2xlarge", "m5", "2xlarge"), ("m5.xlarge", "m5", "xlarge"), ("t3.nano", "t3", "nano"),
        ("u-3tb1.56xlarge", "u", "8"), ("m5.metal", "m5", "metal"), ("m5.metal-24xl", "m5", "8"),
        ("n2-standard-4", "n2", "8"), ("c-8x-amd64-linux", "c", "8"), ("Standard_D8s_v5", "S", "8"), ("", "", "8"),
    ],
)  # fmt: skip
def test_family_and_size_are_read_from_names_of_several_clouds(name: str, family: str, size: str) -> None:
    assert (family_of(name), size_of(name, "8")) == (family, size)


def test_labels_have_amounts_as_the_api_writes_them() -> None:
    assert size_labels("m5.large", {"cpu": 2000, "memory": 8192 * 2**20 * 1000}) == {
        "karpenter.kwok.sh/instance-size": "large",
        "karpenter.kwok.sh/instance-family": "m5",
        "karpenter.kwok.sh/instance-cpu": "2",
        "karpenter.kwok.sh/instance-memory": "8Gi",
    }
    assert size_labels("x", {})["karpenter.kwok.sh/instance-cpu"] == ""
