"""RuntimeClasses (node.k8s.io)."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import (
    check_container_resource_name,
    check_immutable,
    check_quantity,
    round_to_milli,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.scheduling_validation import validate_tolerations
from holokube.apiserver.metadata import validate_labels
from holokube.kube import names
from holokube.kube.types import JsonObject


class RuntimeClass(GoKind):
    go_type = "node.v1.RuntimeClass"
    allow_create_on_update = True
    allow_unconditional_update = False

    def set_defaults(self, obj: JsonObject) -> None:
        round_to_milli((obj.get("overhead") or {}).get("podFixed"))

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        handler = new["handler"]
        if not handler:
            errors.required("handler")
        else:
            errors.all_invalid("handler", handler, names.is_dns1123_label(handler))
        for name, value in ((new.get("overhead") or {}).get("podFixed") or {}).items():
            path = f"overhead.limits[{name}]"
            check_container_resource_name(name, path, errors)
            check_quantity(name, value, path, errors)
        scheduling = new.get("scheduling") or {}
        validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors)
        tolerations = scheduling.get("tolerations") or []
        validate_tolerations(tolerations, "scheduling.tolerations", errors)
        seen: set[tuple[str, ...]] = set()
        for index, toleration in enumerate(tolerations):
            key = tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
            if key in seen:
                shown = {
                    "Key": key[0], "Operator": key[1], "Value": key[2], "Effect": key[3],
                    "TolerationSeconds": toleration.get("tolerationSeconds"),
                }  # fmt: skip
                errors.duplicate(f"scheduling.tolerations[{index}]", shown)
            seen.add(key)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_immutable(new["handler"], old["handler"], "handler", errors)
