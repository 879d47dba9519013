"""Where templates come from, and what is said when they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from holokube.base.errors import ConfigError
from holokube.client.resources import CONFIG_MAPS, NAMESPACES, NODES
from holokube.cluster_autoscaler.cloud.kwok import sources
from holokube.cluster_autoscaler.cloud.kwok.config import KwokConfig, parse_config
from holokube.cluster_autoscaler.cloud.kwok.grouping import Grouping
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.kwok.provider import KwokProvider, build
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.testing import Cluster
from tests.builders import config_map
from tests.cluster_autoscaler.cloud.kwok.worlds import template

TAINT = {"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}
CONFIG: JsonObject = {
    "apiVersion": "v1alpha1",
    "readNodesFrom": "configmap",
    "nodegroups": {"fromNodeLabelKey": "kwok-nodegroup"},
    "configmap": {"name": "kwok-provider-templates"},
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def start(cluster: Cluster, **environ: str) -> KwokProvider:
    informers = InformerSet(cluster.clock, cluster.client, cluster.rng)
    return cluster.run(build(cluster.clock, cluster.client, informers, cluster.rng, environ=environ))


def ids(provider: KwokProvider) -> list[str]:
    return [group.id for group in provider.node_groups()]


def taints(cluster: Cluster, provider: KwokProvider) -> list[JsonObject]:
    info = cluster.run(provider.node_groups()[0].template_node_info())
    found: list[JsonObject] = info.node["spec"].get("taints") or []
    return found


def static_pods(cluster: Cluster, provider: KwokProvider) -> int:
    return len(cluster.run(provider.node_groups()[0].template_node_info()).pods)


def put(cluster: Cluster, name: str, namespace: str = "kube-system", **data: str) -> None:
    cluster.run(cluster.client.create(CONFIG_MAPS, {**config_map(name, namespace), "data": data}))


def put_upstream(
    cluster: Cluster, config: Mapping[str, Any], *nodes: JsonObject, namespace: str = "kube-system"
) -> None:
    put(cluster, "kwok-provider-config", namespace, config=yaml.safe_dump(dict(config)))
    listed = {"apiVersion": "v1", "kind": "List", "items": list(nodes)}
    put(cluster, "kwok-provider-templates", namespace, templates=yaml.safe_dump(listed))


def labelled(name: str, group: str) -> JsonObject:
    return template(name, labels={"kwok-nodegroup": group})


# A file

NODES_OF_FILE = [template("n1", "a"), template("n2", "b")]


@pytest.mark.parametrize(
    "text",
    [
        yaml.safe_dump_all(NODES_OF_FILE),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": NODES_OF_FILE}),
        orjson.dumps({"apiVersion": "v1", "kind": "List", "items": NODES_OF_FILE}).decode(),
        yaml.safe_dump({"apiVersion": "v1", "kind": "NodeList", "items": NODES_OF_FILE}),
        "---\n" + yaml.safe_dump_all(NODES_OF_FILE) + "---\n",
    ],
    ids=["documents", "list", "json", "node list", "empty documents"],
)
def test_a_file_of_any_form_makes_groups(cluster: Cluster, tmp_path: Path, text: str) -> None:
    path = tmp_path / "nodes"
    path.write_text(text)
    assert ids(start(cluster, KWOK_TEMPLATES_PATH=str(path))) == ["a", "b"]


def test_a_file_may_hold_one_bare_node(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(template("n1", "a")))
    provider = start(cluster, KWOK_TEMPLATES_PATH=str(path))
    assert ids(provider) == ["a"] and taints(cluster, provider) == []


def test_a_missing_file_is_told(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"KWOK_TEMPLATES_PATH: cannot read .*none: No such file"):
        start(cluster, KWOK_TEMPLATES_PATH=str(tmp_path / "none"))


def test_one_bad_document_spoils_the_start_and_is_found(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    bad = template("n2", "b", min_count="many")
    path.write_text(yaml.safe_dump_all([template("n1", "a"), bad, "words"]))
    with pytest.raises(ConfigError) as caught:
        start(cluster, KWOK_TEMPLATES_PATH=str(path))
    start_of_second = path.read_text().splitlines().index("---") + 2
    assert f"node n2 ({path}, line {start_of_second}): annotation" in caught.value.message
    assert "min-count is 'many'" in caught.value.message
    assert "is no Kubernetes object" in caught.value.message
    assert cluster.run(cluster.client.list(NODES)).items == []


def test_a_document_that_cannot_be_read_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump(template("n1", "a")) + "---\n{[")
    with pytest.raises(ConfigError, match="neither JSON nor YAML"):
        start(cluster, KWOK_TEMPLATES_PATH=str(path))


def test_other_objects_in_a_file_are_left_out_and_told(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([config_map(), template("n1", "a")]))
    provider = start(cluster, KWOK_TEMPLATES_PATH=str(path))
    assert ids(provider) == ["a"]
    assert provider.warnings == (f"{path}, line 1: v1 ConfigMap is no Node and is left out",)


def test_a_file_without_nodes_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump(config_map()))
    with pytest.raises(ConfigError, match="there is no Node to make a group from"):
        start(cluster, KWOK_TEMPLATES_PATH=str(path))


def test_either_rule_of_naming_can_be_asked_for(cluster: Cluster) -> None:
    node = template("n1", labels={"cloud.google.com/gke-nodepool": "p", "team": "blue"})
    informers = InformerSet(cluster.clock, cluster.client, cluster.rng)

    def named(grouping: Grouping | None) -> list[str]:
        made = build(
            cluster.clock, cluster.client, informers, cluster.rng, environ={}, templates=[node], grouping=grouping
        )
        return ids(cluster.run(made))

    assert named(None) == ["p-kwok"]
    assert named(Grouping(label_key="cloud.google.com/gke-nodepool")) == ["p"]
    assert named(Grouping(label_key="team")) == ["blue"]


# Upstream's ConfigMaps


def test_upstreams_config_maps_make_upstreams_groups(cluster: Cluster) -> None:
    put_upstream(cluster, CONFIG, labelled("n1", "a"), labelled("n2", "b"), labelled("n3", "a"), template("n4"))
    provider = start(cluster)
    assert ids(provider) == ["a", "b"]
    assert taints(cluster, provider) == [TAINT]
    (text,) = provider.warnings
    assert "node n4" in text and "has no label kwok-nodegroup" in text


def test_the_environment_names_config_map_and_namespace(cluster: Cluster) -> None:
    cluster.run(cluster.client.create(NAMESPACES, {"metadata": {"name": "ca"}}))
    config = {**CONFIG, "nodes": {"skipTaint": True}, "configmap": {"name": "t"}}
    put(cluster, "c", "ca", config=yaml.safe_dump(config))
    put(cluster, "t", "ca", templates=yaml.safe_dump_all([labelled("n1", "a"), labelled("n2", "b")]))
    provider = start(cluster, KWOK_PROVIDER_CONFIGMAP="c", POD_NAMESPACE="ca")
    assert ids(provider) == ["a", "b"] and taints(cluster, provider) == []


def test_the_pods_own_namespace_is_the_second_choice(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "namespace").write_text("default\n")
    monkeypatch.setattr(sources, "SERVICE_ACCOUNT_NAMESPACE", tmp_path / "namespace")
    put_upstream(cluster, CONFIG, labelled("n1", "a"), namespace="default")
    assert ids(start(cluster)) == ["a"]


def test_a_file_replaces_the_templates_of_a_named_config_map(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump(labelled("n1", "from-file")))
    put_upstream(cluster, CONFIG, labelled("n1", "from-map"))
    provider = start(cluster, KWOK_TEMPLATES_PATH=str(path), KWOK_PROVIDER_CONFIGMAP="kwok-provider-config")
    assert ids(provider) == ["from-file"] and taints(cluster, provider) == [TAINT]
    alone = start(cluster, KWOK_TEMPLATES_PATH=str(path))
    assert ids(alone) != ["from-file"] and taints(cluster, alone) == []


def test_a_single_bare_node_in_the_config_map_is_taken(cluster: Cluster) -> None:
    put(cluster, "kwok-provider-config", config=yaml.safe_dump(CONFIG))
    put(cluster, "kwok-provider-templates", templates=yaml.safe_dump(labelled("n1", "a")))
    assert ids(start(cluster)) == ["a"]


def test_config_maps_that_are_missing_or_empty_are_told(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="there is no ConfigMap kube-system/mine"):
        start(cluster, KWOK_PROVIDER_CONFIGMAP="mine")
    put(cluster, "kwok-provider-config", config=yaml.safe_dump(CONFIG))
    with pytest.raises(ConfigError, match="there is no ConfigMap kube-system/kwok-provider-templates"):
        start(cluster)
    put(cluster, "kwok-provider-templates", nodes="x")
    with pytest.raises(ConfigError, match="has no key templates") as caught:
        start(cluster)
    assert caught.value.hint == "Its keys: nodes."


def test_the_key_of_the_templates_counts_where_upstreams_is_missing(cluster: Cluster) -> None:
    config = {**CONFIG, "configmap": {"name": "t", "key": "nodes"}}
    put(cluster, "kwok-provider-config", config=yaml.safe_dump(config))
    put(cluster, "t", nodes=yaml.safe_dump(labelled("n1", "a")))
    assert ids(start(cluster)) == ["a"]


def test_upstreams_key_comes_before_the_configured_one(cluster: Cluster) -> None:
    config = {**CONFIG, "configmap": {"name": "t", "key": "nodes"}}
    put(cluster, "kwok-provider-config", config=yaml.safe_dump(config))
    put(cluster, "t", nodes=yaml.safe_dump(labelled("n1", "a")), templates=yaml.safe_dump(labelled("n1", "b")))
    provider = start(cluster)
    assert ids(provider) == ["b"] and "configmap.key nodes is ignored" in provider.warnings[0]


# The cluster


def test_without_a_source_the_clusters_nodes_are_the_templates(cluster: Cluster) -> None:
    cluster.run(cluster.client.create(NODES, template("n1", labels={"eks.amazonaws.com/nodegroup": "p"})))
    provider = start(cluster)
    assert ids(provider) == ["p-kwok"]
    assert taints(cluster, provider)[-1] == TAINT


def test_a_config_map_can_ask_for_the_clusters_nodes(cluster: Cluster) -> None:
    cluster.run(cluster.client.create(NODES, labelled("n1", "p")))
    put(cluster, "kwok-provider-config", config=yaml.safe_dump({**CONFIG, "readNodesFrom": "cluster"}))
    assert ids(start(cluster)) == ["p"]


def test_an_empty_cluster_is_no_source(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="from the cluster's nodes: there is no Node"):
        start(cluster)


def test_a_wrong_label_key_is_an_error_and_no_silence(cluster: Cluster) -> None:
    config = {**CONFIG, "nodegroups": {"fromNodeLabelKey": "kwok-nodegroups"}}
    put_upstream(cluster, config, labelled("n1", "a"))
    with pytest.raises(ConfigError, match=r"node n1 .* has no label kwok-nodegroups.*did you mean kwok-nodegroup\?"):
        start(cluster)


# The configuration itself


def parse(config: Any) -> tuple[KwokConfig, list[str]]:
    problems = Problems()
    found = parse_config(config if isinstance(config, str) else yaml.safe_dump(config), "the config", problems)
    return found, problems.warnings


def test_every_field_of_the_configuration_is_read() -> None:
    gpu = {"gpuLabelKey": "accelerator", "availableGPUTypes": {"nvidia-tesla-k80": {}, "nvidia-tesla-p100": {}}}
    found, warnings = parse({**CONFIG, "nodes": {"skipTaint": True, "gpuConfig": gpu}, "kwok": {}})
    assert warnings == []
    assert found == KwokConfig(
        read_nodes_from="configmap",
        grouping=Grouping(label_key="kwok-nodegroup"),
        skip_taint=True,
        gpu_label="accelerator",
        gpu_types=frozenset({"nvidia-tesla-k80", "nvidia-tesla-p100"}),
        config_map_name="kwok-provider-templates",
    )


def test_keys_are_read_in_any_case_as_go_does() -> None:
    found, warnings = parse({"ReadNodesFrom": "cluster", "nodeGroups": {"fromnodeannotationkey": "x"}})
    assert found.grouping == Grouping(annotation_key="x") and warnings == []


def test_unknown_fields_and_those_that_do_nothing_are_told() -> None:
    _, warnings = parse({**CONFIG, "nods": {}, "kwok": {"install": False}, "apiVersion": "v2"})
    assert "the config: unknown field nods (did you mean nodes?)" in warnings
    assert any("kwok.install does nothing" in text for text in warnings)
    assert any("apiVersion is 'v2'" in text for text in warnings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"readNodesFrom": "file"}, "readNodesFrom is 'file': it must be configmap or cluster"),
        ({"readNodesFrom": None}, "readNodesFrom is ''"),
        ({"nodegroups": {}}, "needs one of fromNodeLabelKey and fromNodeAnnotationKey, but none is"),
        ({"nodegroups": {"fromNodeLabelKey": "a", "fromNodeAnnotationKey": "b"}}, "but both are given"),
        ({"nodegroups": "x"}, "nodegroups must be an object, not 'x'"),
        ({"nodegroups": {"fromNodeLabelKey": 3}}, "nodegroups.fromNodeLabelKey must be a string, not 3"),
        ({"configmap": {}}, "configmap.name is missing"),
        ({"configmap": None}, "configmap.name is missing"),
        ({"nodes": {"skipTaint": "true"}}, "nodes.skipTaint must be true or false, not 'true'"),
        ({"nodes": {"gpuConfig": {"gpuLabelKey": "x"}}}, "needs both gpuLabelKey and availableGPUTypes"),
        ({"nodes": {"gpuConfig": {"gpuLabelKey": "x", "availableGPUTypes": ["y"]}}}, "must be an object"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_an_error(change: JsonObject, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**CONFIG, **change})
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["", "just words", "{[", "[1]"])
def test_a_text_that_is_no_configuration_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="the config"):
        parse(text)


def test_only_upstreams_own_configuration_sets_room_aside_for_a_kube_proxy(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump(template("a")))
    assert static_pods(cluster, start(cluster, KWOK_TEMPLATES_PATH=str(tmp_path / "nodes.yaml"))) == 0
    put_upstream(cluster, CONFIG, labelled("n", "g"))
    assert static_pods(cluster, start(cluster)) == 1
