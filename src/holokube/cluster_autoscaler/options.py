"""The settings of the Cluster Autoscaler, with upstream's names and defaults.

A field is the flag's name in snake case; durations are seconds and say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.provider import GroupOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerOptions:
    """Everything that decisions depend on besides the cluster itself."""

    # What is looked at, and when
    scan_interval_s: float = 10.0
    frequent_loops_enabled: bool = True
    scale_up_from_zero: bool = True
    expendable_pods_priority_cutoff: int = -10
    new_pod_scale_up_delay_s: float = 0.0
    bypassed_scheduler_names: tuple[str, ...] = ()
    allowed_scheduler_names: tuple[str, ...] = ()
    """If any, only pods of these schedulers are looked at."""
    ignore_taint: tuple[str, ...] = ()
    startup_taint: tuple[str, ...] = ()
    startup_taint_prefix: tuple[str, ...] = ()
    status_taint: tuple[str, ...] = ()
    scale_from_unschedulable: bool = False
    force_ds: bool = False
    node_info_cache_expire_time_s: float = 87600 * 3600.0

    # Scale-up
    expander: tuple[str, ...] = ("least-waste",)
    grpc_expander_url: str = ""
    grpc_expander_cert: str = ""
    max_nodes_total: int = 0
    cores_total: tuple[int, int] = (0, 320_000)
    memory_total_gib: tuple[int, int] = (0, 6_400_000)
    gpu_total: tuple[tuple[str, int, int], ...] = ()
    max_nodes_per_scaleup: int = 1000
    max_nodegroup_binpacking_duration_s: float = 10.0
    max_binpacking_time_s: float = 300.0
    balance_similar_node_groups: bool = False
    balancing_ignore_label: tuple[str, ...] = ()
    balancing_label: tuple[str, ...] = ()
    memory_difference_ratio: float = 0.015
    max_allocatable_difference_ratio: float = 0.05
    max_free_difference_ratio: float = 0.05
    parallel_scale_up: bool = False
    salvo_scale_up: bool = False
    salvo_scale_up_time_budget_s: float = 60.0
    fastpath_binpacking_enabled: bool = False
    enforce_node_group_min_size: bool = False

    # Failed scale-ups and the health of the cluster
    max_node_provision_time_s: float = 900.0
    max_node_startup_time_s: float = 900.0
    initial_node_group_backoff_duration_s: float = 300.0
    max_node_group_backoff_duration_s: float = 1800.0
    node_group_backoff_reset_timeout_s: float = 10_800.0
    ok_total_unready_count: int = 3
    max_total_unready_percentage: float = 45.0
    force_delete_unregistered_nodes: bool = False
    force_delete_failed_nodes: bool = False

    # Scale-down
    scale_down_enabled: bool = True
    scale_down_unready_enabled: bool = True
    scale_down_delay_after_add_s: float = 600.0
    scale_down_delay_after_delete_s: float = 0.0
    scale_down_delay_after_failure_s: float = 180.0
    scale_down_delay_type_local: bool = False
    scale_down_unneeded_time_s: float = 600.0
    scale_down_unready_time_s: float = 1200.0
    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_simulation_timeout_s: float = 30.0
    unremovable_node_recheck_timeout_s: float = 300.0
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1
    max_bulk_soft_taint_count: int = 10
    max_bulk_soft_taint_time_s: float = 3.0
    node_delete_delay_after_taint_s: float = 5.0
    max_graceful_termination_sec: int = 600
    max_pod_eviction_time_s: float = 120.0
    node_deletion_delay_timeout_s: float = 120.0
    node_deletion_batcher_interval_s: float = 0.0
    node_deletion_candidate_ttl_s: float = 0.0
    node_removal_latency_tracking_enabled: bool = False
    ignore_daemonsets_utilization: bool = False
    ignore_mirror_pods_utilization: bool = False
    cordon_node_before_terminating: bool = True
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    blocking_system_pod_distruption_timeout_s: float = 3600.0
    daemonset_eviction_for_empty_nodes: bool = False
    daemonset_eviction_for_occupied_nodes: bool = True
    drain_priority_config: tuple[tuple[int, int], ...] = ()
    """(priority, seconds) by priority ascending; empty evicts all at once."""

    # What others see
    namespace: str = "kube-system"
    cluster_name: str = ""
    write_status_configmap: bool = True
    status_config_map_name: str = "cluster-autoscaler-status"
    record_duplicated_events: bool = False
    emit_per_nodegroup_metrics: bool = False
    max_inactivity_s: float = 600.0
    max_failing_time_s: float = 900.0
    max_startup_time_s: float = 1200.0

    # Ours
    size_daemons: bool = True
    """DaemonSet pods that ask for node-specific sizing weigh what they will be given on each node."""

    extra: dict[str, str] = field(default_factory=dict)
    """Flags that upstream parses and no longer uses, as they were given."""

    def group_defaults(self) -> GroupOptions:
        """What a group without settings of its own goes by."""
        return GroupOptions(
            scale_down_utilization_threshold=self.scale_down_utilization_threshold,
            scale_down_gpu_utilization_threshold=self.scale_down_gpu_utilization_threshold,
            scale_down_unneeded_time_s=self.scale_down_unneeded_time_s,
            scale_down_unready_time_s=self.scale_down_unready_time_s,
            max_node_provision_time_s=self.max_node_provision_time_s,
            max_node_startup_time_s=self.max_node_startup_time_s,
            ignore_daemon_sets_utilization=self.ignore_daemonsets_utilization,
        )
