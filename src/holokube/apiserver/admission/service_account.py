"""ServiceAccount: which account a pod runs as, and the token it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Plugin, refuse
from holokube.base.rng import Rng
from holokube.kube.types import JsonObject

DEFAULT: Final = "default"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_ENFORCE_ANNOTATION: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_VOLUME_PREFIX: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# One hour, plus what clients that never read the file again are still granted.
_TOKEN_LIFETIME_S: Final = 3607
_PROJECTED_MODE: Final = 0o644
# Where a volume source of each kind names its secret; the first kind that is set counts.
_SECRET_PATHS: Final = (
    ("azureFile", ("secretName",)),
    ("cephfs", ("secretRef", "name")),
    ("cinder", ("secretRef", "name")),
    ("flexVolume", ("secretRef", "name")),
    ("rbd", ("secretRef", "name")),
    ("secret", ("secretName",)),
    ("scaleIO", ("secretRef", "name")),
    ("iscsi", ("secretRef", "name")),
    ("storageos", ("secretRef", "name")),
    ("csi", ("nodePublishSecretRef", "name")),
)


class ServiceAccount(Plugin):
    """Lenient unless told otherwise: a missing account is no reason to refuse a pod, and no token is mounted.

    A laboratory creates pods by the thousand and nobody in it reads tokens. With ``strict`` it behaves as
    upstream does; ``assumes_default`` then still lets a pod into a namespace whose ``default`` account has
    not been made, which is for servers where no controller makes it.
    """

    resources = frozenset({PODS})
    operations = CREATE_OR_UPDATE
    only_sets_on_update = True
    subresources = frozenset({"", "ephemeralcontainers"})
    looks_at = frozenset({"serviceaccounts"})
    goes_by_spec = True
    leaves_settled_pods = True

    def __init__(self, rng: Rng, *, strict: bool = False, assumes_default: bool = False) -> None:
        self._rng = rng
        self.strict = strict
        self.assumes_default = assumes_default

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:  # noqa: ARG002 - a hook
        # A token is mounted under a name that is drawn.
        return None if self.strict else self.looks_at

    def mutate(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or attributes.operation != "CREATE" or attributes.subresource:
            return
        annotations = pod["metadata"].get("annotations")
        if annotations and MIRROR_ANNOTATION in annotations:
            self._check_mirror(attributes, pod)
            return
        spec: JsonObject = pod.setdefault("spec", {})
        name = spec.get("serviceAccountName") or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._account(attributes, name)
        if account is None:
            return
        if self.strict and _automounts(account, spec):
            self._mount_token(spec)
        pull_secrets = account.get("imagePullSecrets")
        if pull_secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": secret.get("name", "")} for secret in pull_secrets]
        if self.strict:
            self._limit_secrets(attributes, account, spec)

    def validate(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None:
            return
        spec = pod.get("spec") or {}
        if attributes.subresource == "ephemeralcontainers":
            if self.strict:
                self._limit_ephemeral(attributes, spec)
            return
        if attributes.operation != "CREATE":
            return
        annotations = pod["metadata"].get("annotations")
        if annotations and MIRROR_ANNOTATION in annotations:
            self._check_mirror(attributes, pod)
        elif self.strict:
            # A webhook may have changed the account since.
            self._limit_secrets(attributes, self._required(attributes, spec), spec)

    def _account(self, attributes: Attributes, name: str) -> JsonObject | None:
        namespace = attributes.namespace
        found = attributes.lookup.find("", "serviceaccounts", namespace, name)
        if found is not None or not self.strict:
            return found
        if name == DEFAULT and self.assumes_default:
            return {"metadata": {"name": DEFAULT, "namespace": namespace}}
        raise refuse(
            attributes,
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found',
        )

    def _required(self, attributes: Attributes, spec: JsonObject) -> JsonObject:
        name = spec.get("serviceAccountName")
        if not name:
            raise refuse(
                attributes, f"no service account specified for pod {attributes.namespace}/{attributes.name}"
            )
        return self._account(attributes, name) or {}

    @staticmethod
    def _check_mirror(attributes: Attributes, pod: JsonObject) -> None:
        spec = pod.get("spec") or {}
        if spec.get("serviceAccountName"):
            raise refuse(attributes, "a mirror pod may not reference service accounts")
        if any(_secret_names(spec)):
            raise refuse(attributes, "a mirror pod may not reference secrets")
        for volume in spec.get("volumes") or []:
            for source in (volume.get("projected") or {}).get("sources") or []:
                if "serviceAccountToken" in source:
                    raise refuse(
                        attributes, "a mirror pod may not use ServiceAccountToken volume projections"
                    )

    def _mount_token(self, spec: JsonObject) -> None:
        """Every container without a mount of its own at the well-known path gets the token there."""
        volumes = spec.get("volumes") or []
        name = next((v["name"] for v in volumes if v.get("name", "").startswith(_VOLUME_PREFIX)), "")
        there = bool(name)
        name = name or _VOLUME_PREFIX + self._rng.name_suffix()
        needed = False
        for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
            mounts = container.get("volumeMounts") or []
            if all(mount.get("mountPath") != _MOUNT_PATH for mount in mounts):
                needed = True
                container["volumeMounts"] = [
                    *mounts,
                    {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH},
                ]
        if needed and not there:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]

    @staticmethod
    def _limit_secrets(attributes: Attributes, account: JsonObject, spec: JsonObject) -> None:
        """An account may say that its pods use no other secrets than the ones it lists."""
        if not _enforces_secrets(account):
            return
        name, allowed = account["metadata"]["name"], _names(account.get("secrets"))
        tail = f"is not allowed because service account {name} does not reference that"
        for volume in spec.get("volumes") or []:
            secret = (volume.get("secret") or {}).get("secretName", "")
            if "secret" in volume and secret not in allowed:
                raise refuse(attributes, f'volume with secret.secretName="{secret}" {tail} secret')
        for what, key in (("init container", "initContainers"), ("container", "containers")):
            for container in spec.get(key) or []:
                _limit_environment(attributes, what, container, allowed, tail)
        pull = _names(account.get("imagePullSecrets"))
        for index, reference in enumerate(spec.get("imagePullSecrets") or []):
            if reference.get("name", "") not in pull:
                raise refuse(
                    attributes,
                    f'imagePullSecrets[{index}].name="{reference.get("name", "")}" {tail} imagePullSecret',
                )

    def _limit_ephemeral(self, attributes: Attributes, spec: JsonObject) -> None:
        account = self._required(attributes, spec)
        if not _enforces_secrets(account):
            return
        tail = f"is not allowed because service account {account['metadata']['name']} does not reference that"
        for container in spec.get("ephemeralContainers") or []:
            _limit_environment(
                attributes, "ephemeral container", container, _names(account.get("secrets")), tail
            )


def _automounts(account: JsonObject, spec: JsonObject) -> bool:
    for holder in (spec, account):
        wish = holder.get("automountServiceAccountToken")
        if wish is not None:
            return bool(wish)
    return True


def _enforces_secrets(account: JsonObject) -> bool:
    annotations = (account.get("metadata") or {}).get("annotations") or {}
    return annotations.get(_ENFORCE_ANNOTATION) in _TRUE


def _names(references: list[dict[str, Any]] | None) -> frozenset[str]:
    return frozenset(reference.get("name", "") for reference in references or [])


def _limit_environment(
    attributes: Attributes, what: str, container: JsonObject, allowed: frozenset[str], tail: str
) -> None:
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None and reference.get("name", "") not in allowed:
            raise refuse(
                attributes,
                f"{what} {container.get('name', '')} with envVar {variable.get('name', '')} referencing "
                f'secret.secretName="{reference.get("name", "")}" {tail} secret',
            )
    for source in container.get("envFrom") or []:
        reference = source.get("secretRef")
        if reference is not None and reference.get("name", "") not in allowed:
            raise refuse(
                attributes,
                f"{what} {container.get('name', '')} with envFrom referencing "
                f'secret.secretName="{reference.get("name", "")}" {tail} secret',
            )


def _secret_names(spec: JsonObject) -> Iterator[str]:
    """The secrets that a pod needs in order to run."""
    for reference in spec.get("imagePullSecrets") or []:
        yield reference.get("name", "")
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(key) or []:
            for source in container.get("envFrom") or []:
                yield (source.get("secretRef") or {}).get("name", "")
            for variable in container.get("env") or []:
                yield ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name", "")
    for volume in spec.get("volumes") or []:
        for projected in (volume.get("projected") or {}).get("sources") or []:
            yield (projected.get("secret") or {}).get("name", "")
        for kind, path in _SECRET_PATHS:
            if kind in volume:
                value: Any = volume[kind]
                for step in path:
                    value = (value or {}).get(step)
                yield value or ""


def _token_source() -> JsonObject:
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_LIFETIME_S, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": _PROJECTED_MODE,
    }
