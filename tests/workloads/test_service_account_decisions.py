from __future__ import annotations

from holokube.workloads.service_account_decisions import account, is_active, root_ca_map


def test_only_namespaces_that_take_objects_get_any() -> None:
    assert is_active({"status": {"phase": "Active"}})
    assert not is_active({"status": {"phase": "Terminating"}}) and not is_active(None)
    assert account("shop")["metadata"] == {"name": "default", "namespace": "shop"}


def test_the_certificate_is_put_right_and_what_others_add_stays() -> None:
    made = root_ca_map("shop", "PEM", None)
    assert made is not None and made["data"] == {"ca.crt": "PEM"}
    assert root_ca_map("shop", "PEM", made) is None
    meddled = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}, "data": {"ca.crt": "PEM", "more": "x"}}
    mended = root_ca_map("shop", "PEM", meddled)
    assert mended is not None
    assert (mended["data"], mended["metadata"]["labels"]) == ({"ca.crt": "PEM"}, {"a": "b"})


def test_a_lost_description_comes_back() -> None:
    made = root_ca_map("shop", "PEM", None)
    assert made is not None
    stripped = {**made, "metadata": {"name": made["metadata"]["name"], "annotations": {"mine": "x"}}}
    mended = root_ca_map("shop", "PEM", stripped)
    assert mended is not None
    assert set(mended["metadata"]["annotations"]) == {"mine", "kubernetes.io/description"}
