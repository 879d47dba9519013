"""What a fleet counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from holokube.hollow.fleet import Fleet


class FleetCollector(Collector):
    """Reads the counters of a fleet when it is asked."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[Metric]:
        fleet = self._fleet
        yield GaugeMetricFamily("holokube_fleet_nodes", "Nodes that match the selector.", len(fleet.nodes))
        yield GaugeMetricFamily("holokube_fleet_nodes_owned", "Nodes this process speaks for.", fleet.owned_count)
        yield GaugeMetricFamily("holokube_fleet_pods", "Pods on nodes this process speaks for.", len(fleet.pods))
        yield GaugeMetricFamily("holokube_fleet_timers", "Timers set.", len(fleet.wheel))
        yield CounterMetricFamily("holokube_fleet_node_patches", "Node status patches sent.", fleet.nodes.patches)
        yield CounterMetricFamily("holokube_fleet_node_errors", "Node status patches failed.", fleet.nodes.errors)
        pods = fleet.pods.stats
        yield CounterMetricFamily("holokube_fleet_pod_patches", "Pod status patches sent.", pods.patches)
        yield CounterMetricFamily("holokube_fleet_pod_deletes", "Final deletes of pods sent.", pods.deletes)
        yield CounterMetricFamily("holokube_fleet_pod_refused", "Pod writes answered 404 or 409.", pods.refused)
        yield CounterMetricFamily("holokube_fleet_pod_errors", "Pod writes that failed otherwise.", pods.errors)
        yield CounterMetricFamily("holokube_fleet_events_lost", "Events that were not written.", fleet.events.lost)
        if fleet.leases is None:
            return
        leases = fleet.leases.stats
        yield CounterMetricFamily("holokube_fleet_lease_renewals", "Leases written.", leases.renewals)
        yield CounterMetricFamily("holokube_fleet_lease_reads", "Leases read.", leases.reads)
        yield CounterMetricFamily("holokube_fleet_lease_conflicts", "Renewals answered 409.", leases.conflicts)
        yield CounterMetricFamily("holokube_fleet_lease_errors", "Renewals that failed otherwise.", leases.errors)
        yield CounterMetricFamily("holokube_fleet_leases_taken_over", "Leases taken from others.", leases.taken_over)
        yield GaugeMetricFamily(
            "holokube_fleet_lease_age_max_seconds", "Longest time between two renewals of a lease.", leases.worst_age_s
        )
