"""Finds the programs of a real control plane, or builds them.

They are looked for in ``KUBEBUILDER_ASSETS`` (any version: whoever sets it knows why), in ``PATH`` (if all of
them are there, in the pinned versions), and in the cache, into which they are built from the ``go.mod`` under
``tools/controlplane``. That folder is part of a checkout and not of the installed package.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holokube.base.errors import HolokubeError

# The version that tools/controlplane/go.mod requires; an installed package cannot read it there.
KUBERNETES_VERSION = "v1.36.3"
KUBECTL_VERSION_MIN = (1, 32)
ETCD_VERSION_MIN = (3, 5)

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PACKAGES = {
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
_MODULE_LINE = "module holokube.dev/tools/controlplane"
_BUILD_PREFIX = ".building-"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_ASSETS_HINT = f"set KUBEBUILDER_ASSETS to a folder that holds {', '.join(PROGRAMS)} and kubectl"


class ProgramsMissingError(HolokubeError):
    """The programs of a real control plane are neither there nor can they be built."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is, and in whose words it was found."""

    paths: Mapping[str, Path]
    origin: str

    def __getitem__(self, program: str) -> Path:
        return self.paths[program]


def find_or_build(*, build: bool, programs: Sequence[str] = PROGRAMS) -> Binaries:
    """Find ``programs``; if they are nowhere and ``build`` is set, build them (minutes, once).

    One process builds at a time and the others wait for it, so that parallel test workers share one build.
    """
    assets = _assets_folder()
    if assets is not None:
        missing = _missing(assets, programs)
        if not missing:
            return _in_folder(assets, programs, "KUBEBUILDER_ASSETS")
        _say(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}; looking further")
    on_path, reason = _on_path(programs)
    if on_path is not None:
        return on_path
    module = _module_folder()
    cached = _cached(module)
    if cached is not None:
        return _in_folder(cached, programs, "cache")
    if not build:
        raise ProgramsMissingError(
            f"{', '.join(programs)} {KUBERNETES_VERSION} are neither in KUBEBUILDER_ASSETS"
            f" nor in PATH ({reason}) nor in {cache_root()}",
            hint=f"Run `python -m holokube.testing.controlplane build`, or {_ASSETS_HINT}.",
        )
    return _in_folder(_build(module), programs, "cache")


def find_kubectl(*, build: bool = True) -> Path:
    """Find a kubectl: from KUBEBUILDER_ASSETS, the cache, or PATH (1.32 or newer), else build one."""
    assets = _assets_folder()
    if assets is not None and not _missing(assets, ["kubectl"]):
        return assets / "kubectl"
    module = _module_folder()
    cached = _cached(module)
    if cached is not None:
        return cached / "kubectl"
    reason = "PATH has no kubectl"
    found = shutil.which("kubectl")
    if found is not None:
        version = program_version(Path(found))
        if version is not None and version >= KUBECTL_VERSION_MIN:
            return Path(found)
        reason = f"{found} is {_dotted(version)}, older than {_dotted(KUBECTL_VERSION_MIN)}"
    if not build:
        raise ProgramsMissingError(
            f"no usable kubectl: {reason}, and {cache_root()} has none either",
            hint=f"Install kubectl {_dotted(KUBECTL_VERSION_MIN)} or newer, or run"
            " `python -m holokube.testing.controlplane build`.",
        )
    return _build(module) / "kubectl"


def program_version(program: Path) -> tuple[int, ...] | None:
    """Ask a program for its version; None if it does not answer with one."""
    arguments = ["version", "--client", "--output=json"] if program.name == "kubectl" else ["--version"]
    try:
        answer = subprocess.run(  # noqa: S603 - the program is one the user has installed
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # kubectl also tells its kustomize's version; its own comes first in the text.
    match = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", answer.stdout)
    return tuple(int(part) for part in match.groups()) if match else None


def cache_folder(module: Path) -> Path:
    """The folder for what ``module`` builds: another go.mod, recipe or machine is another folder."""
    recipe = repr(sorted(_PACKAGES.items())) + _linker_flags("kubectl")
    inputs = (module / "go.mod").read_bytes() + (module / "go.sum").read_bytes() + recipe.encode()
    return cache_root() / f"{_cache_prefix()}{hashlib.sha256(inputs).hexdigest()[:12]}"


def cache_root() -> Path:
    """The folder that holds every build, and the build lock."""
    # An empty or relative XDG variable counts as unset, says the specification.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "holokube" / "controlplane"


def _cache_prefix() -> str:
    machine = platform.machine().lower()
    return f"{KUBERNETES_VERSION}-{sys.platform}-{_MACHINES.get(machine, machine)}-"


def _cached(module: Path | None) -> Path | None:
    if module is not None:
        candidates = [cache_folder(module)]
    else:
        # Without go.mod its hash is unknown: a build of the same version for this machine is as good.
        candidates = sorted(cache_root().glob(f"{_cache_prefix()}*"))
    return next((folder for folder in candidates if not _missing(folder, list(_PACKAGES))), None)


def _assets_folder() -> Path | None:
    text = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not text:
        return None
    folder = Path(text).absolute()
    if not folder.is_dir():
        raise ProgramsMissingError(
            f"KUBEBUILDER_ASSETS names {text}, which is not a folder",
            hint=f"Unset it, or {_ASSETS_HINT}.",
        )
    return folder


def _on_path(programs: Sequence[str]) -> tuple[Binaries | None, str]:
    """Look in PATH; the second value says what is wrong with what is there."""
    paths: dict[str, Path] = {}
    for program in programs:
        found = shutil.which(program)
        if found is None:
            return None, f"no {program}"
        paths[program] = Path(found)
    kubernetes_wanted = tuple(int(part) for part in KUBERNETES_VERSION[1:].split("."))[:2]
    for program, path in paths.items():
        version = program_version(path)
        if program == "etcd":
            right = version is not None and version >= ETCD_VERSION_MIN
        else:
            right = version is not None and version[:2] == kubernetes_wanted
        if not right:
            return None, f"{path} is {_dotted(version)}"
    return Binaries(paths, "PATH"), ""


def _in_folder(folder: Path, programs: Sequence[str], origin: str) -> Binaries:
    return Binaries({program: folder / program for program in programs}, origin)


def _missing(folder: Path, programs: Sequence[str]) -> list[str]:
    return [program for program in programs if not os.access(folder / program, os.X_OK)]


def _module_folder() -> Path | None:
    """Find tools/controlplane: in the checkout of this very file, or in one around the current folder."""
    here = Path.cwd()
    for checkout in (Path(__file__).resolve().parents[3], here, *here.parents):
        folder = checkout / "tools" / "controlplane"
        with contextlib.suppress(OSError):
            if (folder / "go.mod").read_text().startswith(_MODULE_LINE + "\n"):
                return folder
    return None


def _build(module: Path | None) -> Path:
    if module is None:
        raise ProgramsMissingError(
            "an installed holokube cannot build a control plane: tools/controlplane/go.mod is not part of it",
            hint=f"Run from a checkout of holokube, or {_ASSETS_HINT}.",
        )
    target = cache_folder(module)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _build_lock(target.parent):
        if not _missing(target, list(_PACKAGES)):
            return target
        go = shutil.which("go")
        if go is None:
            raise ProgramsMissingError(
                f"Go is needed to build {', '.join(_PACKAGES)}, and PATH has no `go`",
                hint=f"Install Go {_go_version(module)} or newer (https://go.dev/doc/install),"
                f" or {_ASSETS_HINT}.",
            )
        # Under the lock nobody else builds: what is left here was left by a build that was killed.
        for stale in target.parent.glob(f"{_BUILD_PREFIX}*"):
            shutil.rmtree(stale, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=target.parent))
        try:
            for number, program in enumerate(_PACKAGES, start=1):
                _say(f"[{number}/{len(_PACKAGES)}] building {program} (minutes, once; kept in {target})")
                _go_build(go, module, program, scratch / program)
            scratch.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _go_build(go: str, module: Path, program: str, output: Path) -> None:
    # A go.work around the checkout would replace the pinned versions; cgo would need a C compiler.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(program)]
    result = subprocess.run(  # noqa: S603 - fixed arguments, and the user's own Go
        [*command, "-o", output, _PACKAGES[program]],
        cwd=module,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        tail = "\n".join(result.stdout.splitlines()[-20:])
        raise ProgramsMissingError(
            f"building {program} failed (go build ended with {result.returncode}):\n{tail}",
            hint=f"Go {_go_version(module)} or newer and access to a Go module proxy are needed;"
            f" or {_ASSETS_HINT}.",
        )


def _linker_flags(program: str) -> str:
    if program == "etcd":
        return "-s -w"
    major, minor, _ = KUBERNETES_VERSION[1:].split(".")
    values = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


def _go_version(module: Path) -> str:
    match = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    return match.group(1) if match else "(see go.mod)"


@contextlib.contextmanager
def _build_lock(folder: Path) -> Iterator[None]:
    with (folder / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the control plane; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _dotted(version: Sequence[int] | None) -> str:
    return "of an unknown version" if version is None else ".".join(str(part) for part in version)


def _say(text: str) -> None:
    sys.stderr.write(f"holokube: {text}\n")
    sys.stderr.flush()
