"""The errors that holokube raises on purpose.

The whole tree, the API's own errors (``holokube.kube.errors``) included::

    HolokubeError                     what went wrong, and a hint what to do
    ├── UsageError                    the command line or a file given to it is wrong      (exit code 2)
    │   ├── CatalogError              a catalogue of instance types cannot be read (holokube.pricing.errors)
    │   └── ScenarioError             a scenario cannot be used: all its mistakes (holokube.lab.scenario.errors)
    ├── ConfigError                   a kubeconfig or a setting cannot be used             (exit code 1)
    ├── StalledError                  virtual time: nothing can ever happen again
    ├── StoreError                    the store refuses
    │   ├── KeyExists                 create: the key is taken
    │   ├── KeyMissing                update, delete: no such key
    │   ├── RevisionMismatch          update, delete: another write came first
    │   ├── RevisionTooOld            list, watch: the revision has left the history window
    │   ├── RevisionInFuture          list, watch: the revision does not exist yet
    │   ├── CorruptData               a data directory or snapshot cannot be read
    │   ├── DataDirInUse              another process holds the data directory
    │   └── StoreReadOnly             a write could not be made durable, or the store is closed
    ├── WatchOverflow                 a watcher read too slowly and was cut off
    ├── WatchClosed                   a reader waits on a watch that was closed
    ├── TransportError                no answer from the API server (refused, reset, TLS, time-out)
    ├── PackingError                  the packing engine is asked something impossible (holokube.packing.errors)
    │   └── StaleClassError           a pod class was split by a new selector: classify the pod again
    ├── AutoscalerError               the Cluster Autoscaler cannot go on (holokube.cluster_autoscaler.cloud.errors)
    │   └── CloudError                a provider refuses, or could not do, what it was asked for
    │       ├── OutOfResourcesError   the cloud has no machine of that kind left
    │       └── NotImplementedByProvider  callers have a defined fallback
    ├── SnapshotError                 the autoscaler's snapshot lacks what it is asked for
    ├── SizingProblem                 a pod cannot be sized by its node (holokube.kube.sizing)
    ├── TerminalError                 a reconciler gives up on a key: no retry will help (holokube.runtime.result)
    ├── ProgramsMissingError          etcd, kube-apiserver and so on cannot be found or built (holokube.testing)
    ├── ControlPlaneError             a real control plane for tests does not start
    ├── ProcessError                  one of its processes cannot be started or has died
    ├── KubectlError                  a kubectl command failed
    └── ApiError                      the API server answered with a Status; see holokube.kube.errors
"""

from __future__ import annotations


class HolokubeError(Exception):
    """Base of every error raised on purpose.

    ``hint`` is one sentence saying what to do instead; the command line prints it under the message.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    @property
    def mistakes(self) -> tuple[str, ...]:
        """What is wrong, each by itself; one for most errors."""
        return (self.message,)


class UsageError(HolokubeError):
    """The command line, or a file named on it, is wrong."""


class ConfigError(HolokubeError):
    """A kubeconfig, certificate or setting cannot be used."""


class StalledError(HolokubeError):
    """Virtual time cannot go on: nothing is ready, no timer is set, and no input can arrive."""


class StoreError(HolokubeError):
    """The store refuses an operation."""


class KeyExists(StoreError):
    """Create found the key taken."""


class KeyMissing(StoreError):
    """Update or delete found no such key."""


class RevisionMismatch(StoreError):
    """Another write came first."""


class RevisionTooOld(StoreError):
    """The revision asked for has left the history window."""


class RevisionInFuture(StoreError):
    """The revision asked for does not exist yet."""


class CorruptData(StoreError):
    """A data directory or snapshot file cannot be read."""


class DataDirInUse(StoreError):
    """Another process holds the data directory."""


class StoreReadOnly(StoreError):
    """The store takes no more writes: one could not be made durable, or the store is closed."""


class WatchOverflow(HolokubeError):
    """A watcher read too slowly and was cut off."""


class WatchClosed(HolokubeError):
    """The watch was closed; no event will come any more."""


class TransportError(HolokubeError):
    """The API server gave no answer at all."""
