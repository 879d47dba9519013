"""Whether the loop is alive: turns are made, and now and then one succeeds."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.timeformat import format_duration


class HealthCheck:
    """The answer of ``/health-check``. Nothing is wrong before ``start_monitoring``: who waits to lead is idle."""

    def __init__(self, clock: Clock, options: AutoscalerOptions) -> None:
        self._clock = clock
        self._options = options
        self._active_s = self._succeeded_s = clock.monotonic()
        self._is_monitoring = False
        self._has_succeeded = False

    def start_monitoring(self) -> None:
        """From now on the loop has to show that it is alive."""
        self._is_monitoring = True
        self._active_s = self._succeeded_s = self._clock.monotonic()

    def stop_monitoring(self) -> None:
        """The loop is no longer expected to run."""
        self._is_monitoring = False

    def active(self) -> None:
        """A turn begins."""
        self._active_s = self._clock.monotonic()

    def succeeded(self) -> None:
        """A turn has ended well."""
        self._active_s = self._succeeded_s = self._clock.monotonic()
        self._has_succeeded = True

    def problem(self) -> str | None:
        """What is wrong; None if nothing is."""
        if not self._is_monitoring:
            return None
        options, now_s = self._options, self._clock.monotonic()
        idle_s, failing_s = now_s - self._active_s, now_s - self._succeeded_s
        # The first turn may have to fill caches, so it is given more time.
        idle_max_s = options.max_inactivity_s if self._has_succeeded else options.max_startup_time_s
        failing_max_s = options.max_failing_time_s if self._has_succeeded else options.max_startup_time_s
        if idle_s <= idle_max_s and failing_s <= failing_max_s:
            return None
        return (f"Error: last activity more {format_duration(idle_s)} ago, "
                f"last success more than {format_duration(failing_s)} ago")
