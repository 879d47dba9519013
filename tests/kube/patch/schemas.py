"""Schemas for the tests, written briefly, after the types that people patch most."""

from __future__ import annotations

from typing import Any

from holokube.kube.schema import Schema, Shape

STR = Schema(Shape.STRING)
INT = Schema(Shape.INTEGER)
BOOL = Schema(Shape.BOOLEAN)
TIME = Schema(Shape.STRING, format="date-time")
INT_OR_STRING = Schema(Shape.INT_OR_STRING)
QUANTITY = Schema(Shape.QUANTITY)


def default(schema: Schema, value: Any) -> Schema:
    """A copy of a scalar type with a default."""
    return Schema(schema.shape, format=schema.format, default=value, has_default=True)


def obj(
    type_name: str = "",
    /,
    *,
    is_atomic: bool = False,
    always: tuple[str, ...] = (),
    patch_strategy: str = "",
    **fields: Schema,
) -> Schema:
    return Schema(
        Shape.OBJECT,
        name=f"io.k8s.test.{type_name}" if type_name else "",
        resolve_fields=lambda: fields,
        required=always,
        map_type="atomic" if is_atomic else "granular",
        patch_strategies=tuple(filter(None, patch_strategy.split(","))),
    )


def struct(
    type_name: str, /, *, always: tuple[str, ...] = (), patch_strategy: str = "", **fields: Schema
) -> Schema:
    """A type that its parent holds by value: it is always there, if only empty."""
    schema = obj(type_name, always=always, patch_strategy=patch_strategy, **fields)
    schema.default, schema.has_default = {}, True
    return schema


def mapping(values: Schema, *, atomic: bool = False) -> Schema:
    return Schema(Shape.MAP, resolve_items=lambda: values, map_type="atomic" if atomic else "granular")


def atomic_list(items: Schema) -> Schema:
    return Schema(Shape.LIST, resolve_items=lambda: items, list_type="atomic")


def set_list(items: Schema) -> Schema:
    return Schema(Shape.LIST, resolve_items=lambda: items, list_type="set", patch_strategies=("merge",))


def keyed_list(items: Schema, *keys: str, merge_key: str = "", strategy: str = "merge") -> Schema:
    return Schema(
        Shape.LIST,
        resolve_items=lambda: items,
        list_type="map",
        list_keys=keys,
        patch_strategies=tuple(strategy.split(",")),
        patch_merge_key=merge_key or keys[0],
    )


OWNER_REFERENCE = obj(
    "OwnerReference", is_atomic=True, apiVersion=STR, kind=STR, name=STR, uid=STR, controller=BOOL
)
METADATA = struct(
    "ObjectMeta",
    name=STR, generateName=STR, namespace=STR, uid=STR, resourceVersion=STR, generation=INT,
    creationTimestamp=TIME, deletionTimestamp=TIME, selfLink=STR,
    labels=mapping(STR), annotations=mapping(STR), finalizers=set_list(STR),
    ownerReferences=keyed_list(OWNER_REFERENCE, "uid"),
    managedFields=atomic_list(Schema(Shape.ANY)),
)  # fmt: skip
PORT = obj(
    "ContainerPort",
    always=("containerPort",),
    name=STR, containerPort=default(INT, 0), protocol=default(STR, "TCP"), hostPort=INT,
)  # fmt: skip
SECRET_KEY = obj("SecretKeySelector", is_atomic=True, name=STR, key=STR)
ENV = obj("EnvVar", name=STR, value=STR, valueFrom=obj("EnvVarSource", secretKeyRef=SECRET_KEY))
RESOURCES = struct("ResourceRequirements", requests=mapping(QUANTITY), limits=mapping(QUANTITY))
CONTAINER = obj(
    "Container",
    name=STR, image=STR, args=atomic_list(STR), command=atomic_list(STR), tty=BOOL,
    ports=keyed_list(PORT, "containerPort", "protocol"),
    env=keyed_list(ENV, "name"),
    resources=RESOURCES,
    volumeMounts=keyed_list(obj("VolumeMount", name=STR, mountPath=STR, readOnly=BOOL), "mountPath"),
)  # fmt: skip
VOLUME = obj(
    "Volume",
    name=STR,
    emptyDir=obj("EmptyDir", medium=STR),
    hostPath=obj("HostPath", path=STR, type=STR),
    configMap=obj("ConfigMapSource", name=STR, defaultMode=INT),
)
TOLERATION = obj("Toleration", key=STR, operator=STR, effect=STR)
SPREAD = obj("Spread", topologyKey=STR, whenUnsatisfiable=STR, maxSkew=INT)
POD_SPEC = struct(
    "PodSpec",
    always=("containers",),
    containers=keyed_list(CONTAINER, "name"),
    volumes=keyed_list(VOLUME, "name", strategy="merge,retainKeys"),
    tolerations=atomic_list(TOLERATION),
    nodeSelector=mapping(STR, atomic=True),
    imagePullSecrets=keyed_list(obj("LocalRef", is_atomic=True, name=STR), "name"),
    topologySpreadConstraints=keyed_list(SPREAD, "topologyKey", "whenUnsatisfiable"),
    nodeName=STR, restartPolicy=STR, terminationGracePeriodSeconds=INT, hostNetwork=BOOL,
)  # fmt: skip
CONDITION = obj(
    "Condition", type=STR, status=STR, reason=STR, message=STR, lastProbeTime=TIME, lastTransitionTime=TIME
)
POD_STATUS = struct(
    "PodStatus",
    phase=STR, podIP=STR, startTime=TIME,
    conditions=keyed_list(CONDITION, "type"),
    podIPs=keyed_list(obj("PodIP", ip=STR), "ip"),
)  # fmt: skip
POD = obj("Pod", apiVersion=STR, kind=STR, metadata=METADATA, spec=POD_SPEC, status=POD_STATUS)
STRATEGY = struct(
    "DeploymentStrategy",
    patch_strategy="retainKeys",
    type=STR,
    rollingUpdate=obj("RollingUpdate", maxSurge=INT_OR_STRING, maxUnavailable=INT_OR_STRING),
)
SELECTOR = obj("LabelSelector", is_atomic=True, matchLabels=mapping(STR))
DEPLOYMENT = obj(
    "Deployment",
    apiVersion=STR,
    kind=STR,
    metadata=METADATA,
    spec=struct(
        "DeploymentSpec",
        replicas=INT,
        paused=BOOL,
        selector=SELECTOR,
        strategy=STRATEGY,
        template=struct("PodTemplateSpec", metadata=METADATA, spec=POD_SPEC),
    ),
    status=struct(
        "DeploymentStatus", replicas=INT, readyReplicas=INT, conditions=keyed_list(CONDITION, "type")
    ),
)
SERVICE_PORT = obj(
    "ServicePort", name=STR, port=default(INT, 0), protocol=default(STR, "TCP"), targetPort=INT_OR_STRING
)
SERVICE = obj(
    "Service",
    apiVersion=STR,
    kind=STR,
    metadata=METADATA,
    spec=struct(
        "ServiceSpec",
        ports=keyed_list(SERVICE_PORT, "port", "protocol"),
        selector=mapping(STR, atomic=True),
        clusterIP=STR,
    ),
)
WIDGET = Schema(
    Shape.OBJECT,
    resolve_fields=lambda: {
        "apiVersion": STR,
        "kind": STR,
        "metadata": METADATA,
        "spec": obj(size=INT, parts=atomic_list(STR), free=Schema(Shape.ANY, preserves_unknown=True)),
    },
)
"""A custom resource: inline types, so that nothing is there before somebody sets it."""


def pod(**parts: Any) -> dict[str, Any]:
    """A small pod; ``metadata``, ``spec`` and ``status`` are merged into it at the top."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", **parts.pop("metadata", {})},
        "spec": {"containers": [{"name": "app", "image": "nginx"}], **parts.pop("spec", {})},
        **parts,
    }


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }
