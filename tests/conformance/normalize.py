"""Turns an answer into something two servers must agree on: volatile values become placeholders.

A uid or resourceVersion is replaced by the order in which the case first met it, so that "this write kept the
resourceVersion" stays visible while the numbers themselves do not matter.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}\b")
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_CLUSTER_IP = re.compile(r"^10\.96\.\d+\.\d+$")
_RECENT = timedelta(days=3)
_AGE = re.compile(r"^(\d+s|<invalid>)$")

_MESSAGE_REASONS = {"NotFound", "AlreadyExists", "MethodNotAllowed", "Unauthorized"}
"""Their message is one fixed sentence that users know by heart; others are compared by their causes."""


class Normalizer:
    """The placeholders of one case on one server."""

    def __init__(self, names: dict[str, str]) -> None:
        # Longest first, because one name may be part of another.
        self._names = sorted(names.items(), key=lambda item: -len(item[0]))
        self._versions: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._now = datetime.now(UTC)

    def learn(self, text: str, placeholder: str) -> None:
        self._names.insert(0, (text, placeholder))

    def text(self, value: str) -> str:
        for name, placeholder in self._names:
            if name in value:
                value = value.replace(name, placeholder)
        if _TIME.match(value):
            return self._time(value)
        value = _TOKEN_VOLUME.sub("kube-api-access-<5>", value)
        return _UID.sub(self._uid, value)

    def _uid(self, match: re.Match[str]) -> str:
        return self._uids.setdefault(match.group(), f"<uid{len(self._uids) + 1}>")

    def _time(self, value: str) -> str:
        moment = datetime.fromisoformat(value)
        if abs(moment - self._now) > _RECENT:
            return value
        return "<microtime>" if "." in value else "<time>"

    def answer(self, body: Any, *, managed: bool, counts: bool = True) -> Any:
        """A whole answer; without `counts` its versions are not remembered."""
        before = dict(self._versions)
        normal = self.value(body, managed=managed)
        if isinstance(normal, dict) and normal.get("kind") == "Table":
            for row in normal.get("rows") or []:
                row["cells"] = [
                    "<age>" if isinstance(cell, str) and _AGE.match(cell) else cell for cell in row["cells"]
                ]
        if not counts:
            self._versions = before
        return normal

    def value(self, value: Any, *, managed: bool = False) -> Any:
        if isinstance(value, dict):
            return self._object(value, managed)
        if isinstance(value, list):
            return [self.value(item, managed=managed) for item in value]
        if isinstance(value, str):
            return self.text(value)
        return value

    def _object(self, value: dict[str, Any], managed: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        is_list = "items" in value or value.get("kind") == "Table"
        for key, item in value.items():
            if key == "managedFields" and not managed:
                continue
            if key == "description" and isinstance(item, str):
                continue
            if key == "managedFields" and isinstance(item, list):
                # Upstream sorts by time first, so the order depends on where a second ends.
                result[key] = sorted((self.value(entry, managed=True) for entry in item), key=_entry_order)
            elif key == "metadata" and isinstance(item, dict):
                result[key] = self._metadata(item, managed, is_list)
            elif key == "nodePort" and isinstance(item, int) and 30000 <= item < 32768:
                result[key] = "<port>"
            elif key in ("clusterIP", "clusterIPs"):
                result[key] = self._cluster_ip(item)
            else:
                result[self.text(key)] = self.value(item, managed=managed)
        return result

    def _cluster_ip(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._cluster_ip(item) for item in value]
        return "<ip>" if isinstance(value, str) and _CLUSTER_IP.match(value) else value

    def _metadata(self, value: dict[str, Any], managed: bool, is_list: bool) -> dict[str, Any]:
        prefix, name = value.get("generateName"), value.get("name")
        if (
            prefix
            and isinstance(name, str)
            and name.startswith(prefix)
            and _GENERATED.fullmatch(name[len(prefix) :])
        ):
            self.learn(name, self.text(prefix) + "<5>")
        result = self._object({k: v for k, v in value.items() if k != "resourceVersion"}, managed)
        if "resourceVersion" in value:
            result["resourceVersion"] = "<rv>" if is_list else self.version(value["resourceVersion"])
        if value.get("continue"):
            result["continue"] = "<token>"
        return result

    def version(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.isdigit():
            return value
        return self._versions.setdefault(value, f"<rv{len(self._versions) + 1}>")

    def status(self, body: dict[str, Any]) -> dict[str, Any]:
        """The parts of an error that clients act on."""
        details = body.get("details") or {}
        result: dict[str, Any] = {"reason": body.get("reason", "")}
        for key in ("name", "group", "kind"):
            if details.get(key):
                result[key] = self.text(details[key])
        if "retryAfterSeconds" in details:
            result["retryAfterSeconds"] = details["retryAfterSeconds"]
        causes = causes_of(body)
        if causes:
            result["causes"] = sorted([reason, self.text(field)] for reason, field in causes)
        if result["reason"] in _MESSAGE_REASONS:
            result["message"] = self.text(body.get("message", ""))
        return result


def _entry_order(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion"))


def causes_of(status: dict[str, Any]) -> list[tuple[str, str]]:
    """(reason, field) of a Status, each once: upstream repeats a cause that two validations find."""
    causes = (status.get("details") or {}).get("causes") or []
    return sorted({(cause.get("reason", ""), cause.get("field", "")) for cause in causes})


_PATH_PART = re.compile(
    r"""\.?(?:\["(?P<quoted>[^"]*)"\]|\[(?P<index>-?\d+)\]"""
    r"""|\[(?P<key>[\w.]+)=(?P<wanted>[^\]]*)\]|(?P<plain>[^.\[\]]+))"""
)
MISSING = "<missing>"


def dig(value: Any, path: str) -> Any:
    """The value at a path such as `spec.containers[0].name` or `metadata.annotations["a/b"]`.

    `items.*.metadata.name` takes one field of every item, `items[metadata.name=x]` the item that has it,
    `keys()` the sorted keys of an object.
    """
    position = 0
    while position < len(path):
        match = _PATH_PART.match(path, position)
        if match is None:
            raise ValueError(f"bad path {path!r} at column {position}")
        position = match.end()
        quoted, index, key, wanted, plain = match.groups()
        if key is not None:
            items = value if isinstance(value, list) else []
            value = next((item for item in items if dig(item, key) == wanted), MISSING)
        elif index is not None:
            if not isinstance(value, list) or not -len(value) <= int(index) < len(value):
                return MISSING
            value = value[int(index)]
        elif plain == "*":
            rest = path[position:].removeprefix(".")
            items = value if isinstance(value, list) else []
            return [dig(item, rest) for item in items] if rest else items
        elif plain == "keys()":
            return sorted(value) if isinstance(value, dict) else MISSING
        else:
            name = quoted if quoted is not None else plain
            if not isinstance(value, dict) or name not in value:
                return MISSING
            value = value[name]
    return value
