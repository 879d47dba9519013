from __future__ import annotations

import pytest

from holokube.karpenter.scheduling.host_ports import any_conflict, host_ports_of


def _ports(**port: object) -> tuple[object, ...]:
    return host_ports_of({"containers": [{"ports": [{"hostPort": 80, **port}]}]})


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ({}, {}, True),
        ({}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "10.0.0.2"}, True),
        ({"hostIP": "::"}, {"hostIP": "10.0.0.2"}, True),
        ({"hostIP": "::ffff:10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "nonsense"}, {"hostIP": "10.0.0.1"}, False),
        ({"protocol": "UDP"}, {}, False),
        ({"protocol": "TCP"}, {}, True),
        ({"hostPort": 81}, {}, False),
    ],
)  # fmt: skip
def test_ports_clash_on_the_same_protocol_and_an_address_in_common(
    one: dict[str, object], other: dict[str, object], clash: bool
) -> None:
    assert any_conflict(_ports(**one), _ports(**other)) is clash  # type: ignore[arg-type]  # made above
    assert any_conflict(_ports(**other), _ports(**one)) is clash  # type: ignore[arg-type]  # made above


def test_only_ports_of_the_node_count_and_not_those_of_init_containers() -> None:
    spec = {"containers": [{"ports": [{"containerPort": 80}]}], "initContainers": [{"ports": [{"hostPort": 80}]}]}
    assert host_ports_of(spec) == ()
