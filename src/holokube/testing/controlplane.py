"""A real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, on loopback.

::

    with ControlPlane(find_or_build(build=True)) as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig, "get", "namespaces"])

``python -m holokube.testing.controlplane build|start|stop|status`` does the same by hand.

The scheduler and the controller manager use the administrator's certificate: members of ``system:masters``
are exempt from priority and fairness, and no RBAC role has to exist before they can start.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import click
import yaml

from holokube.base.clock import Clock, WallClock
from holokube.base.errors import HolokubeError
from holokube.kube.pki import Authority, KeyPair, new_bearer_token, new_signing_key
from holokube.testing.binaries import (
    KUBERNETES_VERSION,
    Binaries,
    ProgramsMissingError,
    cache_root,
    find_kubectl,
    find_or_build,
)
from holokube.testing.processes import ProcessError, Processes, running_supervisor, stop_detached

__all__ = [
    "KUBERNETES_VERSION",
    "Binaries",
    "ControlPlane",
    "ControlPlaneError",
    "ProgramsMissingError",
    "find_kubectl",
    "find_or_build",
    "programs_for",
]

COMPONENTS = ("scheduler", "controller-manager")
_ADMINISTRATORS = "system:masters"
_SERVICE_CIDR = "10.96.0.0/16"
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_IPS = ("127.0.0.1", "10.96.0.1")
# Relative to the working folder, in which every process runs: a socket's path may have some 100 bytes only,
# a test's folder has more. It also needs no free port, and is closed to other users of the machine.
_ETCD_SOCKET = "etcd.sock"
_POLL_EVERY_S = 0.05
_START_ATTEMPTS = 3
_LOG_TAIL_LINES = 15


class ControlPlaneError(HolokubeError):
    """The control plane did not start, or one of its processes has ended."""


def programs_for(components: Sequence[str]) -> tuple[str, ...]:
    """The programs that a control plane with these components runs, in the order of their start."""
    unknown = sorted(set(components) - set(COMPONENTS))
    if unknown:
        raise ValueError(f"unknown component {unknown[0]!r}; there are {' and '.join(COMPONENTS)}")
    # Reversed, this is also the order in which they are stopped.
    optional = [f"kube-{name}" for name in ("controller-manager", "scheduler") if name in components]
    return ("etcd", "kube-apiserver", *optional)


class ControlPlane:
    """One control plane in one working folder.

    Without ``workdir`` it lives in a temporary folder, which is removed when all went well, and kept with its
    logs when not. Data never survive a stop: etcd does not even fsync. ``authorization_mode`` is passed on as
    it is (``AlwaysAllow``, ``RBAC``, ``Node,RBAC``); ``*_args`` are further flags for each program.
    """

    def __init__(
        self,
        binaries: Binaries,
        workdir: Path | None = None,
        components: Sequence[str] = COMPONENTS,
        *,
        authorization_mode: str = "AlwaysAllow",
        etcd_args: Sequence[str] = (),
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        scheduler_args: Sequence[str] = (),
        ready_within_s: float = 90.0,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or WallClock()
        self._binaries = binaries
        self._programs = programs_for(components)
        self._authorization_mode = authorization_mode
        self._extra_args = {
            "etcd": etcd_args,
            "kube-apiserver": apiserver_args,
            "kube-controller-manager": controller_manager_args,
            "kube-scheduler": scheduler_args,
        }
        self._ready_within_s = ready_within_s
        self._workdir = workdir.absolute() if workdir else None
        self._temporary: Path | None = None
        self._processes: Processes | None = None
        self._ports: dict[str, int] = {}
        self._authority = Authority.create("holokube-test-ca", self._clock.now())
        self._tls: ssl.SSLContext | None = None
        self.token = new_bearer_token()

    @property
    def workdir(self) -> Path:
        """The working folder: certificates, kubeconfig, logs."""
        folder = self._workdir or self._temporary
        if folder is None:
            raise ControlPlaneError(
                "a control plane without workdir has no folder while it is not running",
                hint="Call start() first, or pass workdir.",
            )
        return folder

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._port('kube-apiserver')}"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for an administrator, self-contained, readable by its owner only."""
        return self.workdir / "kubeconfig"

    @property
    def ca_file(self) -> Path:
        """The certificate authority to trust."""
        return self.workdir / "pki" / "ca.crt"

    @property
    def client_cert_file(self) -> Path:
        """The administrator's certificate."""
        return self.workdir / "pki" / "admin.crt"

    @property
    def client_key_file(self) -> Path:
        """The administrator's key."""
        return self.workdir / "pki" / "admin.key"

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each running program."""
        return dict(self._processes.pids) if self._processes else {}

    def log_file(self, program: str) -> Path:
        """Where a program's output goes."""
        return self.workdir / "log" / f"{program}.log"

    def start(self) -> None:
        """Start everything; returns when all programs are ready and pods can be created in ``default``."""
        if self._processes is not None:
            raise ControlPlaneError(f"the control plane in {self.workdir} is running already")
        for attempts_left in reversed(range(_START_ATTEMPTS)):
            try:
                self._start_once()
            except ControlPlaneError as error:
                self._stop_processes()
                # Between choosing a free port and listening on it, somebody else can have taken it.
                if attempts_left == 0 or "address already in use" not in str(error):
                    self._keep_folder()
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return

    def stop(self) -> None:
        """Stop everything, the scheduler first and etcd last; stopping twice is fine."""
        self._stop_processes()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def check(self) -> None:
        """Raise ControlPlaneError if a program has ended since the start."""
        self._pause(0.0)

    def detach(self) -> None:
        """Let the control plane outlive this process; ``stop_detached(workdir / "lock")`` ends it."""
        assert self._processes is not None, "start() first"
        self._processes.detach()
        self._processes = None

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._temporary is not None:
            error.add_note(f"The logs of the control plane are kept in {self._temporary / 'log'}")
            self._keep_folder()
        self.stop()

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the API server as administrator; returns the HTTP status and the decoded answer."""
        return self._ask("kube-apiserver", method, path, body)

    def create_namespace(self, name: str) -> None:
        """Create a namespace in which pods can be created at once."""
        status, answer = self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if status != 201:
            raise ControlPlaneError(f"namespace {name} was not created ({status}): {answer['message']}")
        self._await_service_account(name)

    def issue_client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate for another user, for tests of authorization."""
        return self._authority.issue_client(user, groups)

    def write_kubeconfig(self, path: Path, user: str, groups: Sequence[str] = ()) -> None:
        """Write a kubeconfig for another user."""
        pair = self.issue_client(user, groups)
        cluster = {"server": self.url, "certificate-authority-data": _base64(self._authority.cert_pem)}
        identity = {
            "client-certificate-data": _base64(pair.cert_pem),
            "client-key-data": _base64(pair.key_pem),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "holokube-test",
            "clusters": [{"name": "holokube-test", "cluster": cluster}],
            "users": [{"name": user, "user": identity}],
            "contexts": [{"name": "holokube-test", "context": {"cluster": "holokube-test", "user": user}}],
        }
        _write_private(path, yaml.safe_dump(config, sort_keys=False).encode())

    def _start_once(self) -> None:
        if self._workdir is None and self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="holokube-controlplane-"))
        self.workdir.mkdir(parents=True, exist_ok=True)
        # From here on the folder is ours: the supervisor holds its lock.
        self._processes = Processes(self.workdir / "lock", self.workdir)
        self._ports = dict(zip(self._programs[1:], _free_ports(len(self._programs) - 1), strict=True))
        self._write_files()
        # The apiserver waits for its etcd by itself, so both start at the same time.
        self._spawn("etcd", self._etcd_flags())
        self._spawn("kube-apiserver", self._apiserver_flags())
        self._await_answer("kube-apiserver", "/readyz")
        if "kube-controller-manager" in self._programs:
            self._spawn("kube-controller-manager", self._controller_manager_flags())
        if "kube-scheduler" in self._programs:
            self._spawn("kube-scheduler", self._client_flags("kube-scheduler"))
        for program in self._programs[2:]:
            self._await_answer(program, "/healthz")
        self._await_service_account("default")

    def _keep_folder(self) -> None:
        self._workdir, self._temporary = self._workdir or self._temporary, None

    def _write_files(self) -> None:
        for name in ("etcd", "log", "pki"):
            shutil.rmtree(self.workdir / name, ignore_errors=True)
            (self.workdir / name).mkdir(mode=0o700)
        (self.workdir / _ETCD_SOCKET).unlink(missing_ok=True)
        server = self._authority.issue_server(_SERVER_NAMES, _SERVER_IPS)
        admin = self._authority.issue_client("admin", [_ADMINISTRATORS])
        accounts = new_signing_key()
        files = {
            "ca.crt": self._authority.cert_pem,
            "server.crt": server.cert_pem,
            "server.key": server.key_pem,
            "admin.crt": admin.cert_pem,
            "admin.key": admin.key_pem,
            "service-account.key": accounts.private_pem,
            "service-account.pub": accounts.public_pem,
            "tokens.csv": f'{self.token},token-admin,token-admin,"{_ADMINISTRATORS}"\n'.encode(),
        }
        for name, content in files.items():
            _write_private(self.workdir / "pki" / name, content)
        self._tls = ssl.create_default_context(cafile=self.ca_file)
        self._tls.load_cert_chain(self.client_cert_file, self.client_key_file)
        self.write_kubeconfig(self.kubeconfig, "admin", [_ADMINISTRATORS])

    def _etcd_flags(self) -> list[str]:
        return [
            "--name=holokube",
            "--data-dir=etcd",
            f"--listen-client-urls=unix://{_ETCD_SOCKET}",
            # Nobody connects to the advertised address, but etcd insists on one that has a port. The peer
            # port is the kernel's choice, for there are no peers.
            "--advertise-client-urls=http://127.0.0.1:0",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 * 2**30}",
            "--log-level=warn",
        ]

    def _apiserver_flags(self) -> list[str]:
        return [
            f"--etcd-servers=unix://{_ETCD_SOCKET}",
            *self._serving_flags("kube-apiserver"),
            "--advertise-address=127.0.0.1",
            # The reconciler refuses a loopback address as an endpoint, and says so for ever.
            "--endpoint-reconciler-type=none",
            "--client-ca-file=pki/ca.crt",
            "--token-auth-file=pki/tokens.csv",
            f"--authorization-mode={self._authorization_mode}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--service-account-key-file=pki/service-account.pub",
            "--service-account-signing-key-file=pki/service-account.key",
            f"--service-cluster-ip-range={_SERVICE_CIDR}",
            "--allow-privileged=true",
        ]

    def _controller_manager_flags(self) -> list[str]:
        return [
            *self._client_flags("kube-controller-manager"),
            "--root-ca-file=pki/ca.crt",
            "--service-account-private-key-file=pki/service-account.key",
        ]

    def _client_flags(self, program: str) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            *self._serving_flags(program),
            "--leader-elect=false",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
            # At the default of 20 per second, taking the not-ready taint off 5,000 nodes lasts four minutes.
            "--kube-api-qps=5000",
            "--kube-api-burst=10000",
        ]

    def _serving_flags(self, program: str) -> list[str]:
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port(program)}",
            "--tls-cert-file=pki/server.crt",
            "--tls-private-key-file=pki/server.key",
        ]

    def _port(self, program: str) -> int:
        if program not in self._ports:
            raise ControlPlaneError(f"{program} has no address before start()")
        return self._ports[program]

    def _spawn(self, program: str, flags: Sequence[str]) -> None:
        assert self._processes is not None
        argv = [str(self._binaries[program]), *flags, *self._extra_args[program]]
        try:
            self._processes.start(program, argv, self.log_file(program))
        except ProcessError as error:
            raise self._with_log(error) from error

    def _await_answer(self, program: str, path: str) -> None:
        self._await(program, path, lambda: self._ask(program, "GET", path)[0] == 200)

    def _await_service_account(self, namespace: str) -> None:
        """Wait for the account without which admission refuses every pod of the namespace, or create it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        by_controller = "kube-controller-manager" in self._programs

        def there() -> bool:
            if by_controller:
                return self.request("GET", f"{path}/default")[0] == 200
            # 404 as long as the apiserver has not made its own namespaces, 409 if a former call did it.
            return self.request("POST", path, {"metadata": {"name": "default"}})[0] in (201, 409)

        self._await("kube-apiserver", f"the service account {namespace}/default", there)

    def _await(self, program: str, what: str, is_there: Callable[[], bool]) -> None:
        deadline_s = self._clock.monotonic() + self._ready_within_s
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if is_there():
                    return
            self._pause(_POLL_EVERY_S)
            if self._clock.monotonic() > deadline_s:
                raise self._with_log(
                    ProcessError(f"no {what} within {self._ready_within_s:.0f} s", name=program)
                )

    def _pause(self, seconds: float) -> None:
        assert self._processes is not None, "start() first"
        try:
            self._processes.wait(seconds)
        except ProcessError as error:
            raise self._with_log(error) from error

    def _ask(self, program: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port(program), timeout=10, context=self._tls
        )
        with contextlib.closing(connection):
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, json.loads(text) if is_json else text.decode()

    def _with_log(self, error: ProcessError) -> ControlPlaneError:
        log = self.log_file(error.name)
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        tail = "\n".join(f"  {line[:500]}" for line in lines) or "  (empty)"
        return ControlPlaneError(
            f"{error}; the end of its log:\n{tail}", hint=f"The logs are kept in {log.parent}."
        )

    def _stop_processes(self) -> None:
        if self._processes is None:
            return
        processes, self._processes = self._processes, None
        processes.stop()
        shutil.rmtree(self.workdir / "etcd", ignore_errors=True)
        (self.workdir / _ETCD_SOCKET).unlink(missing_ok=True)


def _free_ports(count: int) -> Iterator[int]:
    # All are held until all are chosen, or the kernel might offer the same one twice.
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
    yield from ports


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


_workdir_option = click.option(
    "--workdir", type=click.Path(path_type=Path, file_okay=False), help="Folder for certificates and logs."
)


@click.group(name="python -m holokube.testing.controlplane")
def cli() -> None:
    """A real control plane on this machine, for development."""


@cli.command()
def build() -> None:
    """Find the programs, or build them; prints where they are."""
    binaries = find_or_build(build=True)
    for path in (*binaries.paths.values(), find_kubectl()):
        click.echo(path)


@cli.command()
@_workdir_option
@click.option("--component", "components", multiple=True, type=click.Choice(COMPONENTS), default=COMPONENTS)
@click.option("--apiserver-only", is_flag=True, help="Neither scheduler nor controller manager.")
@click.option("--authorization-mode", default="AlwaysAllow", show_default=True)
def start(
    workdir: Path | None, components: tuple[str, ...], apiserver_only: bool, authorization_mode: str
) -> None:
    """Start a control plane and leave it running; prints its kubeconfig as KUBECONFIG=..."""
    components = () if apiserver_only else components
    binaries = find_or_build(build=True, programs=programs_for(components))
    plane = ControlPlane(
        binaries, workdir or _default_workdir(), components, authorization_mode=authorization_mode
    )
    plane.start()
    (plane.workdir / "pids.json").write_text(json.dumps(plane.pids))
    plane.detach()
    click.echo(f"KUBECONFIG={plane.kubeconfig}")


@cli.command()
@_workdir_option
def stop(workdir: Path | None) -> None:
    """Stop the control plane that `start` left running, and remove its data."""
    folder = workdir or _default_workdir()
    if not stop_detached(folder / "lock"):
        click.echo(f"no control plane runs in {folder}", err=True)
        return
    shutil.rmtree(folder / "etcd", ignore_errors=True)
    click.echo(f"stopped; its logs are in {folder / 'log'}", err=True)


@cli.command()
@_workdir_option
def status(workdir: Path | None) -> None:
    """Say what runs; exit code 1 if nothing does."""
    folder = workdir or _default_workdir()
    if running_supervisor(folder / "lock") is None:
        click.echo(f"no control plane runs in {folder}", err=True)
        raise SystemExit(1)
    for program, pid in json.loads((folder / "pids.json").read_text()).items():
        alive = True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            alive = False
        click.echo(f"{program}\t{pid if alive else 'has ended, see ' + str(folder / 'log')}")
    click.echo(f"KUBECONFIG={folder / 'kubeconfig'}")


def _default_workdir() -> Path:
    return cache_root() / "running"


def main() -> int:
    """Run the command line; an error is a message and a hint, not a traceback."""
    try:
        cli()
    except HolokubeError as error:
        click.echo(f"error: {error}", err=True)
        if error.hint:
            click.echo(error.hint, err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
