"""Karpenter's settings, under upstream's names: a flag, or the environment variable of the same name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import yaml

from holokube.base.errors import UsageError
from holokube.kube.timeformat import TimeFormatError, parse_duration
from holokube.kube.types import JsonObject

RESPECT: Final = "Respect"
IGNORE: Final = "Ignore"
STRICT: Final = "Strict"
BEST_EFFORT: Final = "BestEffort"

_LOG_LEVELS: Final = ("", "debug", "info", "error")
_NOT_HERE: Final = frozenset({
    "NodeRepair", "NodeOverlay", "StaticCapacity", "CapacityBuffer", "TerminateFirstDrift", "TerminateFirstRepair",
    "PodDeletionCostManagement",
})  # fmt: skip
"""Gates of features that are alpha upstream and do not exist here."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """What can be switched on and off."""

    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """From ``Name=true,Name=false``."""
        gates: dict[str, bool] = {}
        for part in filter(None, (one.strip() for one in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals or value not in ("true", "false"):
                raise ValueError(f"{part!r} is not of the form Gate=true or Gate=false")
            if name in _GATES:
                gates[_GATES[name]] = value == "true"
            elif name not in _NOT_HERE:
                raise ValueError(f"there is no feature gate {name!r}; there are {', '.join(_GATES)}")
            elif value == "true":
                raise ValueError(f"the feature {name}, which is alpha upstream, does not exist here")
        return cls(**gates)


_GATES: Final = {"ReservedCapacity": "reserved_capacity", "SpotToSpotConsolidation": "spot_to_spot_consolidation"}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; names are those of the flags."""

    batch_max_duration_s: float = 10.0
    batch_idle_duration_s: float = 1.0
    preference_policy: str = RESPECT
    min_values_policy: str = STRICT
    cpu_requests_milli: int = 1000
    memory_limit_bytes: int = -1
    kube_client_qps: int = 200
    kube_client_burst: int = 300
    metrics_port: int = 8080
    health_probe_port: int = 8081
    enable_profiling: bool = False
    disable_leader_election: bool = False
    leader_election_name: str = "karpenter-leader-election"
    leader_election_namespace: str = ""
    disable_controller_warmup: bool = True
    disable_cluster_state_observability: bool = False
    ignore_dra_requests: bool = True
    legacy_node_repair: bool = False
    log_level: str = "info"
    log_output_paths: str = "stdout"
    log_error_output_paths: str = "stderr"
    karpenter_service: str = ""
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    default_spread_constraints: tuple[JsonObject, ...] = ()
    """From ``--scheduler-config``; for pods that have none of their own."""
    instance_types_file_path: str = ""

    @property
    def nomination_s(self) -> float:
        """How long a node that was given pods is left alone."""
        return max(2 * self.batch_max_duration_s, 10.0)

    @property
    def respects_preferences(self) -> bool:
        return self.preference_policy == RESPECT


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except TimeFormatError as error:
        raise ValueError(str(error)) from error


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(filter(None, words))}")
        return text

    return read


def _spread_constraints(text: str) -> tuple[JsonObject, ...]:
    """The default constraints in a scheduler configuration, YAML or JSON."""
    if not text.strip():
        return ()
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"is neither YAML nor JSON: {error}") from error
    if not isinstance(config, dict) or not set(config) <= {"podTopologySpread"}:
        raise ValueError("may have podTopologySpread, and nothing else")
    spread = config.get("podTopologySpread") or {}
    if not isinstance(spread, dict) or not set(spread) <= {"defaultConstraints"}:
        raise ValueError("podTopologySpread may have defaultConstraints, and nothing else")
    return tuple(map(_spread_constraint, spread.get("defaultConstraints") or ()))


def _spread_constraint(given: Any) -> JsonObject:
    known = {"maxSkew", "topologyKey", "whenUnsatisfiable"}
    if not isinstance(given, dict) or set(given) != known:
        raise ValueError(f"each of defaultConstraints has exactly {', '.join(sorted(known))}")
    if not isinstance(given["maxSkew"], int) or given["maxSkew"] < 1:
        raise ValueError(f"maxSkew must be a number above 0, not {given['maxSkew']!r}")
    when = given["whenUnsatisfiable"]
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        raise ValueError(f"whenUnsatisfiable: {when!r} is neither DoNotSchedule nor ScheduleAnyway")
    return dict(given)


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting as users write it."""

    name: str
    target: str
    read: Callable[[str], Any]
    default: str
    text: str

    @property
    def variable(self) -> str:
        """The environment variable that stands in for the flag."""
        return self.name.upper().replace("-", "_")


FLAGS: Final[tuple[Flag, ...]] = (
    Flag("batch-max-duration", "batch_max_duration_s", _duration, "10s", "The longest time to collect a batch."),
    Flag("batch-idle-duration", "batch_idle_duration_s", _duration, "1s", "A batch ends after this pause in new pods."),
    Flag("preference-policy", "preference_policy", _one_of(IGNORE, RESPECT), RESPECT,
         "Whether preferences of pods count: Respect or Ignore."),
    Flag("min-values-policy", "min_values_policy", _one_of(STRICT, BEST_EFFORT), STRICT,
         "Whether minValues may be missed: Strict or BestEffort."),
    Flag("cpu-requests", "cpu_requests_milli", int, "1000", "Millicores of the container; one process uses one core."),
    Flag("memory-limit", "memory_limit_bytes", int, "-1", "Memory limit of the container; accepted, without effect."),
    Flag("kube-client-qps", "kube_client_qps", int, "200", "Requests per second to the API server."),
    Flag("kube-client-burst", "kube_client_burst", int, "300", "Burst of requests to the API server."),
    Flag("metrics-port", "metrics_port", int, "8080", "The port of /metrics."),
    Flag("health-probe-port", "health_probe_port", int, "8081", "The port of /healthz and /readyz."),
    Flag("enable-profiling", "enable_profiling", _bool, "false", "Accepted, without effect."),
    Flag("disable-leader-election", "disable_leader_election", _bool, "false", "Run without a lease."),
    Flag("leader-election-name", "leader_election_name", str, "karpenter-leader-election", "Name of the lease."),
    Flag("leader-election-namespace", "leader_election_namespace", str, "", "Namespace of the lease."),
    Flag("disable-controller-warmup", "disable_controller_warmup", _bool, "true",
         "Fill caches only once elected."),
    Flag("disable-cluster-state-observability", "disable_cluster_state_observability", _bool, "false",
         "No metrics of nodes, pools and pods."),
    Flag("ignore-dra-requests", "ignore_dra_requests", _bool, "true", "Pods with resource claims are left out."),
    Flag("legacy-node-repair", "legacy_node_repair", _bool, "false",
         "Accepted, without effect: there is no node repair."),
    Flag("log-level", "log_level", _one_of(*_LOG_LEVELS), "info", "debug, info or error."),
    Flag("log-output-paths", "log_output_paths", str, "stdout", "Accepted, without effect: logs go to stderr."),
    Flag("log-error-output-paths", "log_error_output_paths", str, "stderr", "Accepted, without effect."),
    Flag("karpenter-service", "karpenter_service", str, "", "Accepted, without effect: there is no webhook."),
    Flag("feature-gates", "feature_gates", FeatureGates.parse, "ReservedCapacity=true,SpotToSpotConsolidation=false",
         "Gates, as Name=true,Name=false."),
    Flag("scheduler-config", "default_spread_constraints", _spread_constraints, "",
         "podTopologySpread.defaultConstraints of the scheduler, as YAML or JSON."),
    Flag("instance-types-file-path", "instance_types_file_path", str, "", "A catalogue instead of the built-in one."),
)  # fmt: skip
BY_NAME: Final = {flag.name: flag for flag in FLAGS}

assert {flag.target for flag in FLAGS} == {one.name for one in fields(Settings)}


def settings_from(flags: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from flags by name; those not given come from the environment, if it has them."""
    for name in flags:
        find_flag(name)
    values: dict[str, Any] = {}
    for flag in FLAGS:
        if flag.name in flags:
            values[flag.target] = _read(flag, flags[flag.name], f"--{flag.name}")
        elif environ is not None and environ.get(flag.variable):
            values[flag.target] = _read(flag, environ[flag.variable], flag.variable)
    made = Settings(**values)
    # Upstream takes an impossible size for none given.
    return made if made.cpu_requests_milli > 0 else replace(made, cpu_requests_milli=1000)


def parse_flags(arguments: Iterable[str], environ: Mapping[str, str] | None = None) -> Settings:
    """Flags as they are written: ``--name=value``, ``--name value``, or ``--name`` for a switch."""
    given: dict[str, str] = {}
    waiting = iter(arguments)
    for argument in waiting:
        if not argument.startswith("--") or argument == "--":
            raise UsageError(f"{argument!r} is no flag", hint="Write flags like --batch-max-duration=10s.")
        name, equals, value = argument[2:].partition("=")
        flag = find_flag(name)
        if not equals:
            value = "true" if flag.read is _bool else next(waiting, "")
        given[flag.name] = value
    return settings_from(given, environ)


def find_flag(name: str) -> Flag:
    """The flag of that name."""
    flag = BY_NAME.get(name)
    if flag is None:
        near = difflib.get_close_matches(name, BY_NAME, n=1)
        hint = f"Did you mean --{near[0]}?" if near else "See holokube karpenter --help for all flags."
        raise UsageError(f"there is no flag --{name}", hint=hint)
    return flag


def _read(flag: Flag, text: str, where: str) -> Any:
    try:
        return flag.read(text)
    except ValueError as error:
        raise UsageError(f"{where}={text}: {error}", hint=f"Leave it out for {flag.default or 'nothing'}.") from error
