"""The flags of the Cluster Autoscaler: one line each, with upstream's names and defaults.

Everything that reads flags goes by this table: the command line with its help, recorded scenarios, and the
documentation.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """How the text of a flag is read."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DURATION = "duration"
    TEXT = "string"
    TEXTS = "strings"
    """May be given several times."""
    LIST = "list"
    """May be given several times, and each time with commas."""
    ORDER = "names"
    """With commas, once; the order counts."""
    RANGE = "min:max"
    GPUS = "type:min:max"
    BANDS = "priority:seconds,..."


class Fate(Enum):
    """What becomes of a flag."""

    OPTION = "option"
    """A field of ``AutoscalerOptions``."""
    PROCESS = "process"
    """Concerns the program around the loop: a field of ``ProcessOptions``."""
    IGNORED = "ignored"
    """Accepted, so that a command line of upstream can be taken over; does nothing."""
    REFUSED = "refused"
    """Belongs to something that is not offered: an error unless it is left at its default."""


class Flag(NamedTuple):
    """One flag."""

    name: str
    kind: Kind
    default: str
    help: str
    section: str
    fate: Fate = Fate.OPTION
    field: str = ""
    """The field it fills, if that is not its own name in snake case."""
    why: str = ""
    """Why it is ignored or refused."""

    @property
    def target(self) -> str:
        """The field it fills."""
        name = self.field or self.name.replace("-", "_")
        return f"{name}_s" if self.kind is Kind.DURATION and not self.field else name


CLUSTER, LOOP, UP, DOWN, DRAIN = "Cluster and cloud", "The loop", "Scale-up", "Scale-down", "Drain and deletion"
TROUBLE, REPORT, LEADER, OTHER = "Failures", "Status and metrics", "Leader election", "For compatibility"

_B, _I, _F, _D, _T = Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.DURATION, Kind.TEXT
_P, _X, _R = Fate.PROCESS, Fate.IGNORED, Fate.REFUSED

_NO_PROVISIONING = "ProvisioningRequests are not offered"
_NO_BUFFERS = "capacity buffers are not offered"
_OTHER_CLOUD = "it belongs to another cloud"
_DEAD = "upstream parses it and uses it nowhere"
_LOGS = "use -v and --log-format"
_SEVERAL = "May be given several times."

FLAGS: tuple[Flag, ...] = (
    Flag("cloud-provider", _T, "", "The cloud provider: kwok or kubemark.", CLUSTER, _P),
    Flag("nodes", Kind.TEXTS, "", f"A group as MIN:MAX:NAME, for kubemark. {_SEVERAL}", CLUSTER, _P),
    Flag("namespace", _T, "kube-system", "Where the status, the lease and the expander's settings are.", CLUSTER),
    Flag("user-agent", _T, "cluster-autoscaler", "User agent of requests to the API server.", CLUSTER, _P),
    Flag("cluster-name", _T, "", "The name of the cluster.", CLUSTER),

    Flag("scan-interval", _D, "10s", "How often the loop runs.", LOOP),
    Flag("frequent-loops-enabled", _B, "true",
         "Run the loop again at once after a change or a new unschedulable pod.", LOOP),
    Flag("scale-up-from-zero", _B, "true", "Scale up even if no node is ready.", LOOP),
    Flag("expendable-pods-priority-cutoff", _I, "-10",
         "Pods of a lower priority neither cause a scale-up nor keep a node.", LOOP),
    Flag("new-pod-scale-up-delay", _D, "0s", "Pods younger than this do not cause a scale-up.", LOOP),
    Flag("bypassed-scheduler-names", Kind.LIST, "",
         "Schedulers whose pods are handled before they are marked unschedulable.", LOOP),
    Flag("allowed-scheduler-names", Kind.LIST, "", "Look only at pods of these schedulers.", LOOP),
    Flag("startup-taint", Kind.TEXTS, "", f"A taint of nodes that are still starting. {_SEVERAL}", LOOP),
    Flag("startup-taint-prefix", Kind.TEXTS, "", f"What startup taints begin with. {_SEVERAL}", LOOP),
    Flag("status-taint", Kind.TEXTS, "", f"A taint that new nodes will not have. {_SEVERAL}", LOOP),
    Flag("ignore-taint", Kind.TEXTS, "", "The same as --startup-taint, which replaces it.", LOOP),
    Flag("force-ds", _B, "false", "Only groups that hold all DaemonSet pods are scaled up.", LOOP),
    Flag("scale-from-unschedulable", _B, "false", "Templates taken from cordoned nodes are not cordoned.", LOOP),
    Flag("node-info-cache-expire-time", _D, "87600h", "How long the template of an empty group is remembered.", LOOP),

    Flag("expander", Kind.ORDER, "least-waste",
         "How to choose a group: random, most-pods, least-waste, least-nodes, price, priority, grpc; or several.", UP),
    Flag("grpc-expander-url", _T, "", "Address of the expander of --expander=grpc.", UP),
    Flag("grpc-expander-cert", _T, "", "Its certificate.", UP),
    Flag("max-nodes-total", _I, "0", "Maximum number of nodes in the cluster; 0 for no limit.", UP),
    Flag("cores-total", Kind.RANGE, "0:320000", "The fewest and most cores of the cluster.", UP),
    Flag("memory-total", Kind.RANGE, "0:6400000", "The least and most memory of the cluster, in GiB.", UP,
         field="memory_total_gib"),
    Flag("gpu-total", Kind.GPUS, "", f"The fewest and most accelerators of a type. {_SEVERAL}", UP),
    Flag("max-nodes-per-scaleup", _I, "1000", "The most nodes that one estimate adds.", UP),
    Flag("max-nodegroup-binpacking-duration", _D, "10s", "The longest estimate for one group.", UP),
    Flag("max-binpacking-time", _D, "5m", "The longest estimate for all groups.", UP),
    Flag("balance-similar-node-groups", _B, "false", "Spread new nodes over groups that are alike.", UP),
    Flag("balancing-ignore-label", Kind.TEXTS, "", f"A label in which such groups may differ. {_SEVERAL}", UP),
    Flag("balancing-label", Kind.TEXTS, "", f"Groups that agree in these labels are alike. {_SEVERAL}", UP),
    Flag("memory-difference-ratio", _F, "0.015", "By how much the memory of such groups may differ.", UP),
    Flag("max-allocatable-difference-ratio", _F, "0.05", "By how much their allocatable may differ.", UP),
    Flag("max-free-difference-ratio", _F, "0.05", "By how much their free resources may differ.", UP),
    Flag("parallel-scale-up", _B, "false", "Ask several groups at the same time.", UP),
    Flag("salvo-scale-up", _B, "false", "Several scale-ups in one loop.", UP),
    Flag("salvo-scale-up-budget", _D, "1m", "How long such a loop may take.", UP, field="salvo_scale_up_time_budget_s"),
    Flag("fastpath-binpacking-enabled", _B, "false", "Calculate instead of simulating where pods are alike.", UP),
    Flag("enforce-node-group-min-size", _B, "false", "Raise groups that are below their minimum.", UP),

    Flag("max-node-provision-time", _D, "15m", "How long a machine may take to become a node.", TROUBLE),
    Flag("max-node-startup-time", _D, "15m", "How long a node may take to become ready.", TROUBLE),
    Flag("initial-node-group-backoff-duration", _D, "5m", "How long a group is left alone after a failure.", TROUBLE),
    Flag("max-node-group-backoff-duration", _D, "30m", "The longest time it is left alone.", TROUBLE),
    Flag("node-group-backoff-reset-timeout", _D, "3h", "When its failures are forgotten.", TROUBLE),
    Flag("ok-total-unready-count", _I, "3", "This many broken nodes are always tolerated.", TROUBLE),
    Flag("max-total-unready-percentage", _F, "45", "With more broken nodes than this, nothing is done.", TROUBLE),
    Flag("force-delete-unregistered-nodes", _B, "false", "Remove machines without a node even below the minimum.",
         TROUBLE),
    Flag("force-delete-failed-nodes", _B, "false", "Remove failed machines even below the minimum.", TROUBLE),

    Flag("scale-down-enabled", _B, "true", "Remove nodes at all.", DOWN),
    Flag("scale-down-unready-enabled", _B, "true", "Remove broken nodes too.", DOWN),
    Flag("scale-down-delay-after-add", _D, "10m", "How long after a scale-up nothing is removed.", DOWN),
    Flag("scale-down-delay-after-delete", _D, "0s", "How long after a removal nothing is removed.", DOWN),
    Flag("scale-down-delay-after-failure", _D, "3m", "How long after a failed removal nothing is removed.", DOWN),
    Flag("scale-down-delay-type-local", _B, "false", "These delays hold for each group by itself.", DOWN),
    Flag("scale-down-unneeded-time", _D, "10m", "How long a node must be unneeded.", DOWN),
    Flag("scale-down-unready-time", _D, "20m", "How long a broken node must be unneeded.", DOWN),
    Flag("scale-down-utilization-threshold", _F, "0.5", "Nodes used more than this stay.", DOWN),
    Flag("scale-down-gpu-utilization-threshold", _F, "0.5", "The same for nodes with accelerators.", DOWN),
    Flag("scale-down-simulation-timeout", _D, "30s", "The longest search for unneeded nodes.", DOWN),
    Flag("unremovable-node-recheck-timeout", _D, "5m", "When a node that cannot go is looked at again.", DOWN),
    Flag("ignore-daemonsets-utilization", _B, "false", "DaemonSet pods do not count as use.", DOWN),
    Flag("ignore-mirror-pods-utilization", _B, "false", "Mirror pods do not count as use.", DOWN),
    Flag("skip-nodes-with-system-pods", _B, "true", "Keep nodes with young pods of kube-system.", DOWN),
    Flag("skip-nodes-with-local-storage", _B, "true", "Keep nodes with pods that have local storage.", DOWN),
    Flag("skip-nodes-with-custom-controller-pods", _B, "true", "Keep nodes with pods of unknown controllers.", DOWN),
    Flag("min-replica-count", _I, "0", "Keep nodes with pods of controllers with fewer replicas.", DOWN),
    Flag("blocking-system-pod-distruption-timeout", _D, "1h", "How long a pod of kube-system keeps its node.", DOWN),
    Flag("node-deletion-candidate-ttl", _D, "0s", "How long the mark of an unneeded node outlives the program.", DOWN),
    Flag("node-removal-latency-tracking-enabled", _B, "false", "Measure how long removable nodes stay.", DOWN),

    Flag("max-scale-down-parallelism", _I, "10", "The most nodes that are removed at the same time.", DRAIN),
    Flag("max-drain-parallelism", _I, "1", "The most nodes that are drained at the same time.", DRAIN),
    Flag("max-bulk-soft-taint-count", _I, "10", "The most nodes marked as unneeded in one loop; 0 for none.", DRAIN),
    Flag("max-bulk-soft-taint-time", _D, "3s", "The longest time to mark them.", DRAIN),
    Flag("node-delete-delay-after-taint", _D, "5s", "How long to wait between taint and removal.", DRAIN),
    Flag("max-graceful-termination-sec", _I, "600", "The most seconds that pods are given to end.", DRAIN),
    Flag("max-pod-eviction-time", _D, "2m", "How long evictions are tried.", DRAIN),
    Flag("node-deletion-delay-timeout", _D, "2m", "How long annotations may delay a removal.", DRAIN),
    Flag("node-deletion-batcher-interval", _D, "0s", "Collect removals for so long.", DRAIN),
    Flag("cordon-node-before-terminating", _B, "true", "Cordon nodes that are removed.", DRAIN),
    Flag("daemonset-eviction-for-empty-nodes", _B, "false", "Evict DaemonSet pods from empty nodes.", DRAIN),
    Flag("daemonset-eviction-for-occupied-nodes", _B, "true", "Evict DaemonSet pods from other nodes.", DRAIN),
    Flag("drain-priority-config", Kind.BANDS, "", "Evict by priority: 10000:20,1000:100,0:60.", DRAIN),

    Flag("address", _T, ":8085", "Where metrics and health are served.", REPORT, _P),
    Flag("write-status-configmap", _B, "true", "Publish the status.", REPORT),
    Flag("status-config-map-name", _T, "cluster-autoscaler-status", "Where it is published.", REPORT),
    Flag("record-duplicated-events", _B, "false", "Do not drop events that are alike.", REPORT),
    Flag("emit-per-nodegroup-metrics", _B, "false", "Metrics of each group.", REPORT),
    Flag("debugging-snapshot-enabled", _B, "false", "Serve /snapshotz.", REPORT, _P),
    Flag("max-inactivity", _D, "10m", "Report unhealthy after this long without a loop.", REPORT),
    Flag("max-failing-time", _D, "15m", "Report unhealthy after this long without a successful loop.", REPORT),
    Flag("max-startup-time", _D, "20m", "The same until the first successful loop.", REPORT),

    Flag("leader-elect", _B, "true", "Work only while holding a lease.", LEADER, _P),
    Flag("leader-elect-lease-duration", _D, "15s", "How long a lease is good for.", LEADER, _P),
    Flag("leader-elect-renew-deadline", _D, "10s", "How long a leader tries to renew it.", LEADER, _P),
    Flag("leader-elect-retry-period", _D, "2s", "How often candidates try to acquire it.", LEADER, _P),
    Flag("leader-elect-resource-lock", _T, "leases", "The kind of the lease.", LEADER, _P),
    Flag("leader-elect-resource-name", _T, "cluster-autoscaler", "Its name.", LEADER, _P),
    Flag("leader-elect-resource-namespace", _T, "", "Its namespace; by default that of --namespace.", LEADER, _P),

    Flag("estimator", _T, "binpacking", "", OTHER, _R, why="binpacking is the only estimator"),
    Flag("kubernetes", _T, "", "", OTHER, _R, why="name the server in a kubeconfig"),
    Flag("node-group-auto-discovery", Kind.TEXTS, "", "", OTHER, _R, why="neither kwok nor kubemark discovers groups"),
    Flag("scheduler-config-file", _T, "", "", OTHER, _R, why="the scheduler's default plugins are always used"),
    Flag("enable-provisioning-requests", _B, "false", "", OTHER, _R, why=_NO_PROVISIONING),
    Flag("enable-proactive-scaleup", _B, "false", "", OTHER, _R, why="proactive scale-up is not offered"),
    Flag("async-node-groups", _B, "false", "", OTHER, _R, why="groups are not created by the autoscaler"),
    Flag("capacity-buffer-controller-enabled", _B, "false", "", OTHER, _R, why=_NO_BUFFERS),
    Flag("capacity-buffer-pod-injection-enabled", _B, "false", "", OTHER, _R, why=_NO_BUFFERS),
    Flag("capacity-quotas-enabled", _B, "false", "", OTHER, _R, why="capacity quotas are not offered"),
    Flag("enable-graceful-degradation", _B, "false", "", OTHER, _R, why="simulations are not cut short"),
    Flag("enable-csi-node-aware-scheduling", _B, "false", "", OTHER, _R, why="templates carry no CSINode"),
    Flag("dynamic-node-delete-delay-after-taint-enabled", _B, "false", "", OTHER, _R,
         why="--node-delete-delay-after-taint is kept as it is"),
    Flag("scaleup-simulation-for-skipped-node-groups-enabled", _B, "false", "", OTHER, _R,
         why="groups that are skipped are not simulated"),
    Flag("max-node-skip-eval-time-tracker-enabled", _B, "false", "", OTHER, _R, why="skipped nodes are not timed"),
    Flag("profiling", _B, "false", "", OTHER, _R, why="there is no pprof here; attach py-spy instead"),

    Flag("scale-down-non-empty-candidates-count", _I, "30", "", OTHER, _X, why=_DEAD),
    Flag("scale-down-candidates-pool-ratio", _F, "0.1", "", OTHER, _X, why=_DEAD),
    Flag("scale-down-candidates-pool-min-count", _I, "50", "", OTHER, _X, why=_DEAD),
    Flag("predicate-parallelism", _I, "4", "", OTHER, _X, why="simulations run on arrays, not in threads"),
    Flag("cluster-snapshot-parallelism", _I, "16", "", OTHER, _X, why="simulations run on arrays, not in threads"),
    Flag("enable-inter-pod-affinity-hostname-fast-path", _B, "false", "", OTHER, _X,
         why="it only makes upstream faster"),
    Flag("pending-pods-batching-timeout", _D, "4m", "", OTHER, _X, why="it needs --enable-graceful-degradation"),
    Flag("enable-dynamic-resource-allocation", _B, "true", "", OTHER, _X, why="dynamic resources are not offered"),
    Flag("capacity-buffer-pod-dry-run-enabled", _B, "true", "", OTHER, _X, why=_NO_BUFFERS),
    Flag("provisioning-request-initial-backoff-time", _D, "1m", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("provisioning-request-max-backoff-time", _D, "10m", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("provisioning-request-max-backoff-cache-size", _I, "1000", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("check-capacity-batch-processing", _B, "false", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("check-capacity-provisioning-request-max-batch-size", _I, "10", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("check-capacity-provisioning-request-batch-timebox", _D, "10s", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("check-capacity-processor-instance", _T, "", "", OTHER, _X, why=_NO_PROVISIONING),
    Flag("pod-injection-limit", _I, "5000", "", OTHER, _X, why="proactive scale-up is not offered"),
    Flag("kube-api-content-type", _T, "application/vnd.kubernetes.protobuf", "", OTHER, _X, why="requests are JSON"),
    Flag("cloud-config", _T, "", "", OTHER, _X, why="neither kwok nor kubemark reads one"),
    Flag("kube-client-qps", _F, "5", "", OTHER, _X, why="requests are not limited"),
    Flag("kube-client-burst", _I, "10", "", OTHER, _X, why="requests are not limited"),
    Flag("regional", _B, "false", "", OTHER, _X, why=_DEAD),
    Flag("clusterapi-cloud-config-authoritative", _B, "false", "", OTHER, _X, why=_OTHER_CLOUD),
    Flag("bulk-mig-instances-listing-enabled", _B, "false", "", OTHER, _X, why=_OTHER_CLOUD),
    Flag("gce-concurrent-refreshes", _I, "1", "", OTHER, _X, why=_OTHER_CLOUD),
    Flag("gce-mig-instances-min-refresh-wait-time", _D, "5s", "", OTHER, _X, why=_OTHER_CLOUD),
    Flag("aws-use-static-instance-list", _B, "false", "", OTHER, _X, why=_OTHER_CLOUD),
    Flag("scheduler-verbosity", _I, "0", "", OTHER, _X, why=_LOGS),
    Flag("v", _I, "0", "", OTHER, _X, why=_LOGS),
    Flag("logtostderr", _B, "true", "", OTHER, _X, why=_LOGS),
    Flag("alsologtostderr", _B, "false", "", OTHER, _X, why=_LOGS),
    Flag("stderrthreshold", _T, "2", "", OTHER, _X, why=_LOGS),
)

BY_NAME = {flag.name: flag for flag in FLAGS}
SECTIONS = tuple(dict.fromkeys(flag.section for flag in FLAGS))
