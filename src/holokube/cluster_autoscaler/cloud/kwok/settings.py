"""What the annotations of a template say about its group.

The first four are upstream's: ``name``, ``min-count`` (0), ``max-count`` (200) and ``desired-count`` (the minimum).
``price-per-hour`` serves ``--expander=price``; the annotations of ``OPTIONS`` are settings of the group that come
before the autoscaler's flags of the same name; those of faults are told in ``faults``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holokube.cluster_autoscaler.cloud.kwok import faults as fault_keys
from holokube.cluster_autoscaler.cloud.kwok.faults import Faults, parse_delay, parse_windows
from holokube.cluster_autoscaler.cloud.kwok.marks import PREFIX, annotations_of
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems, did_you_mean
from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.kube.timeformat import parse_duration

MIN_COUNT = "min-count"
MAX_COUNT = "max-count"
DESIRED_COUNT = "desired-count"
PRICE = "price-per-hour"
DEFAULT_MAX = 200


def count_of(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError("it must be a whole number of 0 or more")
    return int(text)


def _share_of(text: str) -> float:
    value = _number_of(text)
    if not 0 <= value <= 1:
        raise ValueError("it must lie between 0 and 1")
    return value


def _price_of(text: str) -> float:
    value = _number_of(text)
    if value < 0:
        raise ValueError("it must not be negative")
    return value


def _number_of(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("it must be a number") from None
    if not math.isfinite(value):
        raise ValueError("it must be a number")
    return value


def _seconds_of(text: str) -> float:
    value = parse_duration(text)
    if value < 0:
        raise ValueError("it must not be negative")
    return value


def _flag_of(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text == "true"


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"it must be {' or '.join(words)}")
        return text

    return read


# Annotation -> (field of GroupOptions, how it is read)
OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "scale-down-utilization-threshold": ("scale_down_utilization_threshold", _share_of),
    "scale-down-gpu-utilization-threshold": ("scale_down_gpu_utilization_threshold", _share_of),
    "scale-down-unneeded-time": ("scale_down_unneeded_time_s", _seconds_of),
    "scale-down-unready-time": ("scale_down_unready_time_s", _seconds_of),
    "max-node-provision-time": ("max_node_provision_time_s", _seconds_of),
    "max-node-startup-time": ("max_node_startup_time_s", _seconds_of),
    "zero-or-max-node-scaling": ("zero_or_max_node_scaling", _flag_of),
    "allow-non-atomic-scale-up-to-max": ("allow_non_atomic_scale_up_to_max", _flag_of),
    "ignore-daemonsets-utilization": ("ignore_daemon_sets_utilization", _flag_of),
}

# Annotation -> (field of Faults, how it is read)
_FAULTS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    fault_keys.BOOT_DELAY: ("boot_delay_s", parse_delay),
    fault_keys.BOOT_FAILURE: ("boot_failure_probability", _share_of),
    fault_keys.BOOT_FAILURE_MODE: ("boot_failure_mode", _one_of(*fault_keys.BOOT_FAILURE_MODES)),
    fault_keys.STOCK: ("stock", count_of),
    fault_keys.STOCK_OUT: ("stock_out", parse_windows),
    fault_keys.STOCK_OUT_MODE: ("stock_out_mode", _one_of(*fault_keys.STOCK_OUT_MODES)),
    fault_keys.INCREASE_LIMIT: ("increase_limit", count_of),
}

KNOWN = ("name", MIN_COUNT, MAX_COUNT, DESIRED_COUNT, PRICE, *OPTIONS, *_FAULTS)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of a group."""

    min_size: int = 0
    max_size: int = DEFAULT_MAX
    desired_size: int = 0
    """How many machines the group begins with."""
    price_usd_per_hour: float | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def options(self, defaults: GroupOptions) -> GroupOptions | None:
        """The defaults with the group's own settings in them; None if it has none."""
        return replace(defaults, **self.overrides) if self.overrides else None


def read_settings(node: Mapping[str, Any], who: str, problems: Problems) -> GroupSettings:
    """The settings on a template; ``who`` names it in messages."""
    found = {key.removeprefix(PREFIX): text for key, text in annotations_of(node).items() if key.startswith(PREFIX)}
    for key in found:
        if key not in KNOWN:
            problems.warn(f"{who}: annotation {PREFIX}{key} means nothing{did_you_mean(key, KNOWN)}")

    def read(key: str, reader: Callable[[str], Any], default: Any = None) -> Any:
        text = found.get(key, "")
        # Upstream takes an empty value for none.
        if not text:
            return default
        try:
            return reader(text)
        except ValueError as error:
            problems.error(f"{who}: annotation {PREFIX}{key} is {text!r}: {error}")
            return default

    low, high = read(MIN_COUNT, count_of, 0), read(MAX_COUNT, count_of, DEFAULT_MAX)
    desired = read(DESIRED_COUNT, count_of)
    if high < low:
        problems.error(f"{who}: {PREFIX}{MAX_COUNT} {high} is below {PREFIX}{MIN_COUNT} {low}")
    elif desired is not None and not low <= desired <= high:
        problems.error(f"{who}: {PREFIX}{DESIRED_COUNT} {desired} is not between the minimum {low} and maximum {high}")
    overrides = {name: read(key, reader) for key, (name, reader) in OPTIONS.items() if found.get(key)}
    chosen = {name: read(key, reader) for key, (name, reader) in _FAULTS.items() if found.get(key)}
    return GroupSettings(
        min_size=low,
        max_size=high,
        desired_size=low if desired is None else desired,
        price_usd_per_hour=read(PRICE, _price_of),
        overrides={name: value for name, value in overrides.items() if value is not None},
        faults=Faults(**{name: value for name, value in chosen.items() if value is not None}),
    )
