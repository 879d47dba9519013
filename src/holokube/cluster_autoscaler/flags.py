"""From upstream's flags to the autoscaler's options.

Used by the command line and by scenarios that carry flags of their own, so that a flag means the same in both.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.flag_table import BY_NAME, FLAGS, Fate, Flag, Kind
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.timeformat import format_duration, parse_duration

EXPANDERS = ("random", "most-pods", "least-waste", "least-nodes", "price", "priority", "grpc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """What concerns the program around the loop."""

    cloud_provider: str = ""
    nodes: tuple[str, ...] = ()
    user_agent: str = "cluster-autoscaler"
    address: str = ":8085"
    debugging_snapshot_enabled: bool = False
    leader_elect: bool = True
    leader_elect_lease_duration_s: float = 15.0
    leader_elect_renew_deadline_s: float = 10.0
    leader_elect_retry_period_s: float = 2.0
    leader_elect_resource_lock: str = "leases"
    leader_elect_resource_name: str = "cluster-autoscaler"
    leader_elect_resource_namespace: str = ""


class ParsedFlags(NamedTuple):
    """What a command line says."""

    options: AutoscalerOptions
    process: ProcessOptions
    warnings: tuple[str, ...] = ()


def parse_flags(arguments: Iterable[str]) -> ParsedFlags:
    """Flags as they are written: ``--name=value``, ``--name value``, or ``--name`` for a switch."""
    given: dict[str, list[str]] = {}
    waiting = iter(arguments)
    for argument in waiting:
        if not argument.startswith("--") or argument == "--":
            raise UsageError(f"{argument!r} is no flag", hint="Write flags like --scan-interval=10s.")
        name, equals, value = argument[2:].partition("=")
        flag = find_flag(name)
        if not equals and flag.kind is Kind.BOOL:
            value = "true"
        elif not equals:
            try:
                value = next(waiting)
            except StopIteration:
                raise UsageError(f"--{flag.name} needs a value", hint=_hint(flag)) from None
        given.setdefault(flag.name, []).append(value)
    return from_values(given)


def from_values(given: Mapping[str, Sequence[str]]) -> ParsedFlags:
    """Flags by name, each with the texts it was given, in order; of a flag that may be given once the last counts."""
    values: dict[str, Any] = {}
    process: dict[str, Any] = {}
    extra: dict[str, str] = {}
    warnings: list[str] = []
    for name, texts in given.items():
        flag = find_flag(name)
        value = _read(flag, texts)
        match flag.fate:
            case Fate.OPTION:
                values[flag.target] = value
            case Fate.PROCESS:
                process[flag.target] = value
            case Fate.IGNORED:
                extra[flag.name] = texts[-1]
                warnings.append(f"--{flag.name} does nothing: {flag.why}")
            case Fate.REFUSED:
                if value != _read(flag, _default_texts(flag)):
                    raise UsageError(f"--{flag.name}={texts[-1]} is not possible: {flag.why}", hint="Leave it out.")
    options = _checked(AutoscalerOptions(**values, extra=extra), given, warnings)
    return ParsedFlags(options, ProcessOptions(**process), tuple(warnings))


def find_flag(name: str) -> Flag:
    """The flag of that name; underscores stand for dashes, as upstream has it."""
    flag = BY_NAME.get(name.replace("_", "-"))
    if flag is None:
        near = difflib.get_close_matches(name, BY_NAME, n=1)
        hint = f"Did you mean --{near[0]}?" if near else "See holokube cluster-autoscaler --help for all flags."
        raise UsageError(f"there is no flag --{name}", hint=hint)
    return flag


def _default_texts(flag: Flag) -> tuple[str, ...]:
    return (flag.default,) if flag.default or flag.kind in (Kind.TEXT, Kind.ORDER) else ()


def _read(flag: Flag, texts: Sequence[str]) -> Any:
    try:
        return _READERS[flag.kind](texts)
    except ValueError as error:
        raise UsageError(f"--{flag.name}={texts[-1] if texts else ''}: {error}", hint=_hint(flag)) from error


def _hint(flag: Flag) -> str:
    examples = {Kind.GPUS: "nvidia-tesla-k80:0:10", Kind.BANDS: "10000:20,1000:100,0:60"}
    return f"Write it like --{flag.name}={flag.default or examples.get(flag.kind, 'NAME')}."


def _bool(text: str) -> bool:
    # The words that Go takes.
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError("neither true nor false")


def _int(text: str) -> int:
    try:
        return int(text, 10)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _range(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError("no colon between the least and the most")
    return _low_high(_int(low), _int(high))


def _low_high(low: int, high: int) -> tuple[int, int]:
    if low < 0:
        raise ValueError(f"the least, {low}, is below zero")
    if high < low:
        raise ValueError(f"the most, {high}, is below the least, {low}")
    return low, high


def _gpu(text: str) -> tuple[str, int, int]:
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError("not a type, the fewest and the most, with colons between them")
    return parts[0], *_low_high(_int(parts[1]), _int(parts[2]))


def _bands(text: str) -> tuple[tuple[int, int], ...]:
    if not text:
        return ()
    bands = []
    for item in text.split(","):
        priority, colon, seconds = item.partition(":")
        if not colon or ":" in seconds:
            raise ValueError(f"{item!r} is not a priority and seconds with a colon between them")
        bands.append((_int(priority), _int(seconds)))
    return tuple(sorted(bands))


def _commas(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


_READERS: dict[Kind, Callable[[Sequence[str]], Any]] = {
    Kind.BOOL: lambda texts: _bool(texts[-1]),
    Kind.INT: lambda texts: _int(texts[-1]),
    Kind.FLOAT: lambda texts: _float(texts[-1]),
    Kind.DURATION: lambda texts: parse_duration(texts[-1]),
    Kind.TEXT: lambda texts: texts[-1],
    Kind.TEXTS: tuple,
    Kind.LIST: lambda texts: tuple(name for text in texts for name in _commas(text)),
    Kind.ORDER: lambda texts: _commas(texts[-1]),
    Kind.RANGE: lambda texts: _range(texts[-1]),
    Kind.GPUS: lambda texts: tuple(map(_gpu, texts)),
    Kind.BANDS: lambda texts: _bands(texts[-1]),
}


def _checked(options: AutoscalerOptions, given: Mapping[str, Sequence[str]], warnings: list[str]) -> AutoscalerOptions:
    """What flags may not say together, and what follows from several."""
    names = {name.replace("_", "-") for name in given}
    if options.drain_priority_config and options.max_graceful_termination_sec != 600:
        raise UsageError("--drain-priority-config and --max-graceful-termination-sec exclude each other",
                         hint="Give the seconds in --drain-priority-config.")
    if options.balancing_label and options.balancing_ignore_label:
        raise UsageError("--balancing-label and --balancing-ignore-label exclude each other", hint="Give one of them.")
    allowed = options.allowed_scheduler_names
    for name in options.bypassed_scheduler_names:
        if allowed and name not in allowed:
            raise UsageError(f"--bypassed-scheduler-names names {name}, --allowed-scheduler-names does not",
                             hint="What is bypassed has to be allowed.")
    for name in options.expander:
        if name not in EXPANDERS:
            raise UsageError(f"--expander: there is no expander {name!r}", hint=f"Choose from {', '.join(EXPANDERS)}.")
    if len(set(options.expander)) != len(options.expander):
        raise UsageError("--expander names the same expander twice", hint="Name each once.")
    if "grpc" in options.expander and not options.grpc_expander_url:
        raise UsageError("--expander=grpc needs --grpc-expander-url", hint="Say where the expander answers.")
    if "scale-down-enabled" in names and not options.scale_down_enabled:
        warnings.append("--scale-down-enabled is deprecated upstream and will be removed there")
    return _with_startup_time(options, warnings)


def _with_startup_time(options: AutoscalerOptions, warnings: list[str]) -> AutoscalerOptions:
    least_s = max(options.max_inactivity_s, options.max_failing_time_s)
    if options.max_startup_time_s >= least_s:
        return options
    warnings.append(f"--max-startup-time is raised to {format_duration(least_s)}: it may not be less than "
                    "--max-failing-time and --max-inactivity")
    known = {one.name: getattr(options, one.name) for one in fields(options)}
    return AutoscalerOptions(**{**known, "max_startup_time_s": least_s})


def default_options() -> AutoscalerOptions:
    """What the table's defaults make; the same as ``AutoscalerOptions()``, which a test makes sure of."""
    return from_values({
        flag.name: _default_texts(flag) for flag in FLAGS
        if flag.fate is Fate.OPTION and _default_texts(flag)
    }).options
