"""The MutatingWebhookConfiguration by which API servers know the webhook."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from holokube.kube.sizing import ENABLED_LABEL
from holokube.kube.types import JsonObject
from holokube.sizing.webhook import PATH

POD_WEBHOOK: Final = "pods.node-sizing.holokube.dev"
DAEMON_SET_WEBHOOK: Final = "daemonsets.node-sizing.holokube.dev"
TIMEOUT_S: Final = 5
_LABELS: Final = "object.spec.template.metadata.labels"
_OPTS_IN: Final = (
    f"has(object.spec.template.metadata) && has({_LABELS}) && '{ENABLED_LABEL}' in {_LABELS} "
    f"&& {_LABELS}['{ENABLED_LABEL}'] == 'true'"
)


@dataclass(frozen=True, slots=True)
class Registration:
    """How the webhook is to be known."""

    name: str
    url: str = ""
    """Where it is reached from the API server; instead of a Service."""
    service_name: str = ""
    service_namespace: str = ""
    service_port: int = 443
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"

    @property
    def server_name(self) -> str:
        """The name that a Service is called by."""
        return f"{self.service_name}.{self.service_namespace}.svc"

    def client_config(self, bundle: bytes) -> JsonObject:
        client: JsonObject = {"url": self.url} if self.url else {
            "service": {
                "name": self.service_name, "namespace": self.service_namespace, "port": self.service_port, "path": PATH,
            }
        }  # fmt: skip
        if bundle:
            client["caBundle"] = base64.b64encode(bundle).decode()
        return client

    def webhooks(self, bundle: bytes) -> list[JsonObject]:
        """All that is registered. What a server would fill in is written out, so that it can be compared."""
        common: JsonObject = {
            "clientConfig": self.client_config(bundle),
            "admissionReviewVersions": ["v1"],
            "failurePolicy": self.failure_policy,
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_S,
        }
        pods: JsonObject = {
            **common,
            "name": POD_WEBHOOK,
            "objectSelector": {"matchLabels": {ENABLED_LABEL: "true"}},
            # Another webhook may add a container after us, which then takes part.
            "reinvocationPolicy": "IfNeeded",
            "rules": [_rule("", "pods", ["CREATE"])],
        }
        daemon_sets: JsonObject = {
            **common,
            "name": DAEMON_SET_WEBHOOK,
            # It warns and never changes anything, so that nothing depends on it.
            "failurePolicy": "Ignore",
            "matchConditions": [{"name": "opts-in", "expression": _OPTS_IN}],
            "reinvocationPolicy": "Never",
            "rules": [_rule("apps", "daemonsets", ["CREATE", "UPDATE"])],
        }
        return [pods, daemon_sets]

    def wanted(self, existing: JsonObject | None, bundle: bytes) -> JsonObject | None:
        """What has to be written; None if everything is as it should be."""
        if not bundle and existing is not None:
            # Whoever brings a certificate may have written its authority there.
            bundle = published_bundle(existing)
        webhooks = self.webhooks(bundle)
        if existing is None:
            return {"metadata": {"name": self.name}, "webhooks": webhooks}
        found = existing.get("webhooks") or []
        if len(found) == len(webhooks) and all(map(_covers, found, webhooks)):
            return None
        return {**existing, "webhooks": webhooks}


def published_bundle(configuration: Mapping[str, Any] | None) -> bytes:
    """The authorities that API servers trust at present for sizing pods."""
    for webhook in (configuration or {}).get("webhooks") or ():
        if webhook.get("name") == POD_WEBHOOK:
            return base64.b64decode((webhook.get("clientConfig") or {}).get("caBundle") or "")
    return b""


def _rule(group: str, plural: str, operations: list[str]) -> JsonObject:
    return {
        "apiGroups": [group], "apiVersions": ["v1"], "resources": [plural], "operations": operations,
        "scope": "Namespaced",
    }  # fmt: skip


def _covers(found: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; what a server added beyond it does not matter."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_covers(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_covers, found, wanted))
    return bool(found == wanted)
