"""The webhook configuration: what is in it, and when it has to be written."""

from __future__ import annotations

import base64
import copy

from holokube.kube.sizing import ENABLED_LABEL
from holokube.sizing.registration import DAEMON_SET_WEBHOOK, POD_WEBHOOK, Registration, published_bundle

BY_SERVICE = Registration("sizing", service_name="webhook", service_namespace="holokube")
BY_URL = Registration("sizing", url="https://10.0.0.7:9443/mutate")


def test_pods_that_opt_in_are_sent_and_nothing_waits_for_us() -> None:
    pods, daemon_sets = BY_SERVICE.webhooks(b"PEM")
    assert pods["name"] == POD_WEBHOOK
    assert pods["objectSelector"] == {"matchLabels": {ENABLED_LABEL: "true"}}
    assert (pods["failurePolicy"], pods["timeoutSeconds"], pods["sideEffects"]) == ("Ignore", 5, "None")
    assert pods["rules"][0]["operations"] == ["CREATE"] and pods["rules"][0]["resources"] == ["pods"]
    assert pods["reinvocationPolicy"] == "IfNeeded"
    assert daemon_sets["name"] == DAEMON_SET_WEBHOOK and daemon_sets["failurePolicy"] == "Ignore"


def test_the_bundle_is_written_for_a_service_and_for_a_url() -> None:
    encoded = base64.b64encode(b"PEM").decode()
    assert BY_SERVICE.client_config(b"PEM") == {
        "service": {"name": "webhook", "namespace": "holokube", "port": 443, "path": "/mutate"}, "caBundle": encoded,
    }  # fmt: skip
    assert BY_URL.client_config(b"PEM") == {"url": "https://10.0.0.7:9443/mutate", "caBundle": encoded}


def test_a_missing_configuration_is_made() -> None:
    made = BY_URL.wanted(None, b"PEM")
    assert made is not None and made["metadata"] == {"name": "sizing"} and published_bundle(made) == b"PEM"


def test_what_is_right_is_not_written_again() -> None:
    made = BY_URL.wanted(None, b"PEM")
    assert made is not None
    made["webhooks"][0]["namespaceSelector"] = {}
    assert BY_URL.wanted(made, b"PEM") is None


def test_what_somebody_changed_is_put_right() -> None:
    made = BY_URL.wanted(None, b"PEM")
    assert made is not None
    for field, value in (("failurePolicy", "Fail"), ("timeoutSeconds", 30), ("objectSelector", {}), ("rules", [])):
        changed = copy.deepcopy(made)
        changed["webhooks"][0][field] = value
        assert BY_URL.wanted(changed, b"PEM") == made
    assert BY_URL.wanted({**made, "webhooks": made["webhooks"][:1]}, b"PEM") == made


def test_a_new_bundle_is_written_and_the_version_kept_for_the_update() -> None:
    made = BY_URL.wanted(None, b"PEM")
    assert made is not None
    existing = {**made, "metadata": {"name": "sizing", "resourceVersion": "7"}}
    written = BY_URL.wanted(existing, b"OTHER")
    assert written is not None and written["metadata"]["resourceVersion"] == "7"
    assert published_bundle(written) == b"OTHER"


def test_without_a_bundle_of_ours_the_one_that_is_there_stays() -> None:
    made = BY_URL.wanted(None, b"PEM")
    assert BY_URL.wanted(made, b"") is None
