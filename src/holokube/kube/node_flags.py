"""What the command line of a hollow kubelet says about its node, read from where it stands: the pod that runs it.

The flags are those of kubelets and of kubemark's hollow nodes (``--node-labels``, ``--register-with-taints``,
``--max-pods``, ``--extended-resources``, ``--provider-id``) and, for a machine that is not there to be measured,
``--node-capacity`` and ``--node-allocatable``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.base.errors import UsageError
from holokube.kube.names import is_label_value, is_qualified_name
from holokube.kube.quantity import QuantityError
from holokube.kube.quantity import parse as parse_quantity
from holokube.kube.taints import ALL_EFFECTS, Taint

DEFAULT_CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "32", "memory": "256Gi", "ephemeral-storage": "200Gi", "pods": "110",
}  # fmt: skip
"""Of a hollow node that nobody told anything else."""
KUBEMARK_CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "1", "memory": "3840Mi", "ephemeral-storage": "0", "pods": "110",
}  # fmt: skip
"""Of the hollow node of Kubernetes' own kubemark, whose machine is a fixed fake."""

_REFERENCE = re.compile(r"\$(\$|\([^)]*\))")
_LABEL_PATH = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class NodeFlags:
    """A node as its kubelet's flags describe it; what they leave open is the program's to choose."""

    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    """What differs from the capacity that the node would have otherwise."""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """What differs from the capacity."""
    provider_id: str = ""
    profile: str = ""
    """A file in which the program finds the rest, as far as it is not one of the built-in profiles."""
    is_kubemark: bool = False
    """Whether the program is Kubernetes' own kubemark."""

    def capacity_over(self, otherwise: Mapping[str, str]) -> dict[str, str]:
        """The whole capacity, where ``otherwise`` is what the node has without these flags."""
        return {**otherwise, **self.capacity}

    def allocatable_over(self, otherwise: Mapping[str, str]) -> dict[str, str]:
        """The whole of what pods may have, where ``otherwise`` is the capacity without these flags."""
        return {**self.capacity_over(otherwise), **self.allocatable}


def parse_pairs(text: str, option: str) -> dict[str, str]:
    """``a=b,c=d``; the Go programs take a key alone for one with an empty value."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if part.strip():
            pairs[key.strip()] = value.strip()
        elif text.strip():
            raise UsageError(f"{option} {text!r} has an empty part", hint=f"Write {option}=key=value,other=value.")
    return pairs


def parse_labels(text: str, option: str = "--node-labels") -> dict[str, str]:
    """Labels, checked as the API server will."""
    labels = parse_pairs(text, option)
    for key, value in labels.items():
        problems = [*is_qualified_name(key), *is_label_value(value)]
        if problems:
            raise UsageError(f"{option}: {key}={value} is no label: {problems[0]}", hint=f"Write {option}=key=value.")
    return labels


def parse_amounts(text: str, option: str) -> dict[str, str]:
    """``cpu=4,memory=16Gi``: amounts as they were written."""
    amounts = parse_pairs(text, option)
    for name, amount in amounts.items():
        hint = f"Write {option}=cpu=4,memory=16Gi."
        if problems := is_qualified_name(name):
            raise UsageError(f"{option}: {name!r} names no resource: {problems[0]}", hint=hint)
        try:
            quantity = parse_quantity(amount)
        except QuantityError as error:
            raise UsageError(f"{option}: {name}={amount}: {error}", hint=hint) from error
        if quantity.sign() < 0:
            raise UsageError(f"{option}: {name}={amount} is below zero", hint=hint)
    return amounts


def parse_taints(text: str, option: str = "--register-with-taints") -> tuple[Taint, ...]:
    """``key=value:Effect,other:Effect``."""
    hint = f"Write {option}=key=value:NoSchedule."
    taints: list[Taint] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pair, _, effect = part.rpartition(":")
        key, _, value = pair.partition("=")
        if effect not in ALL_EFFECTS:
            raise UsageError(
                f"{option}: {part!r} has no effect that there is ({', '.join(sorted(ALL_EFFECTS))})", hint=hint
            )
        if problems := [*is_qualified_name(key), *is_label_value(value)]:
            raise UsageError(f"{option}: {part!r} is no taint: {problems[0]}", hint=hint)
        taint = Taint(key, value, effect)
        if any(taint.is_same(other) for other in taints):
            raise UsageError(f"{option}: {key} with {effect} is given twice", hint=hint)
        taints.append(taint)
    return tuple(taints)


def read_flags(arguments: Iterable[str]) -> NodeFlags:
    """What a command line says, in the forms ``--flag=value`` and ``--flag value``; other flags are left aside."""
    given = _given(arguments)

    def read(name: str, parse: Callable[[str, str], Any]) -> Any:
        return parse(given.get(name, ""), f"--{name}")

    capacity = read("node-capacity", parse_amounts)
    extended = read("extended-resources", parse_amounts)
    max_pods = {"pods": given["max-pods"]} if given.get("max-pods") else {}
    parse_amounts(f"pods={max_pods['pods']}" if max_pods else "", "--max-pods")
    return NodeFlags(
        name=given.get("node-name") or given.get("name", ""),
        labels=read("node-labels", parse_labels),
        taints=read("register-with-taints", parse_taints),
        capacity={**capacity, **extended, **max_pods},
        allocatable=read("node-allocatable", parse_amounts),
        provider_id=given.get("provider-id", ""),
        profile=given.get("profile", ""),
        is_kubemark="morph" in given,
    )


def _given(arguments: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    waiting = ""
    for argument in arguments:
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            given[name] = value
            waiting = "" if equals else name
        elif waiting:
            given[waiting], waiting = argument, ""
    return given


def flags_of_pod(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> NodeFlags | None:
    """The node that a hollow-node pod will be, from its metadata and spec; None if no container is its kubelet."""
    for container in spec.get("containers") or ():
        arguments = _command_line(container, meta)
        flags = _given(arguments)
        if "node-name" in flags or ("name" in flags and flags.get("morph") == "kubelet"):
            return read_flags(arguments)
    return None


def _command_line(container: Mapping[str, Any], meta: Mapping[str, Any]) -> list[str]:
    known: dict[str, str] = {}
    for entry in container.get("env") or ():
        value = _value_of(entry, known, meta)
        if value is not None:
            known[entry["name"]] = value
    words: Sequence[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expand(word, known) for word in words]


def _value_of(entry: Mapping[str, Any], known: Mapping[str, str], meta: Mapping[str, Any]) -> str | None:
    """The value of an environment variable, as far as the pod alone tells it."""
    path = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
    if not entry.get("valueFrom"):
        return expand(str(entry.get("value") or ""), known)
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return str(meta.get(path.removeprefix("metadata.")) or "")
    matched = _LABEL_PATH.fullmatch(path)
    return None if matched is None else str((meta.get(matched[1]) or {}).get(matched[2], ""))


def expand(text: str, known: Mapping[str, str]) -> str:
    """Puts variables in for ``$(NAME)`` as kubelets do: ``$$`` is a dollar, an unknown name stays as it is."""

    def replaced(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else known.get(match[1][1:-1], match[0])

    return _REFERENCE.sub(replaced, text)
