"""An object that its writer gives away is stored itself; all others are copied."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import KeyExists, RevisionMismatch
from holokube.store.store import Store


def made(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, **more}


def test_what_is_owned_is_stored_as_it_is_and_looks_as_a_copy_would() -> None:
    first, second = Store(), Store()
    for owned in (False, True):
        store = second if owned else first
        obj, other = made(), {"metadata": {"resourceVersion": "0", "name": "a"}, "spec": 1}
        assert (store.create("pods", "a", obj, owned=owned).obj is obj) is owned
        updated = store.update("pods", "a", other, expected=store.revision, owned=owned)
        assert (updated.obj is other) is owned
        assert ("resourceVersion" in obj["metadata"]) is owned
    pairs = zip(first.list("pods").items, second.list("pods").items, strict=True)
    assert all(left[1].raw == right[1].raw and left[1].revision == right[1].revision for left, right in pairs)


def test_what_is_refused_is_left_as_it_was() -> None:
    store = Store()
    store.create("pods", "a", made())
    for obj in (made(), made()):
        with pytest.raises(KeyExists):
            store.create("pods", "a", obj, owned=True)
        with pytest.raises(RevisionMismatch):
            store.update("pods", "a", obj, expected=1, owned=True)
        assert obj == made()
