"""Cases in which the embedded server answers otherwise than a real kube-apiserver, and why that is accepted.

`python -m tests.conformance.render` writes this table into docs/compatibility.md.
"""

from __future__ import annotations

_NO_500 = (
    "Upstream answers 500 to input that is merely wrong; the embedded server answers {code} with the cause."
)

_SCALE = (
    "Upstream rewrites ownership on every write to scale, so that even the same number of replicas moves the version; "
    "here a write that changes nothing keeps it."
)

KNOWN_DIFFERENCES: dict[str, str] = {
    "apply/duplicate-list-key": _NO_500.format(code=400),
    "apply/unknown-field": _NO_500.format(code=400),
    "apply/unknown-field-strict": _NO_500.format(code=400),
    "apply/wrong-type": _NO_500.format(code=400),
    "binding/target-of-other-kind": _NO_500.format(code=422),
    "binding/target-without-name": _NO_500.format(code=422),
    "binding/without-target": _NO_500.format(code=422),
    "create/resource-version-set": _NO_500.format(code=400),
    "custom/scale-without-replicas": _NO_500.format(code=404),
    "get/resource-version-not-a-number": _NO_500.format(code=400),
    "http/accept-protobuf-before-json": "An Accept header that names JSON anywhere is answered in JSON.",
    "patch/strategic-item-without-merge-key": _NO_500.format(code=400),
    "patch/strategic-unknown-directive": _NO_500.format(code=400),
    "apply/scale-subresource-takes-replicas": _SCALE,
    "scale/same-replicas-still-moves-the-version": _SCALE,
    "custom/conditions": (
        "A definition is established before its create is answered; upstream takes a moment and answers first."
    ),
    "http/made-up-method": "The HTTP parser refuses unknown methods with 400 before the API sees them.",
    "update/version-not-a-number": _NO_500.format(code=400),
    "watch/bad-version": _NO_500.format(code=400),
}
