from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holokube.testing import binaries
from holokube.testing.binaries import (
    KUBERNETES_VERSION,
    PROGRAMS,
    ProgramsMissingError,
    cache_folder,
    find_kubectl,
    find_or_build,
    program_version,
)

REPOSITORY = Path(__file__).parents[2]
MODULE = REPOSITORY / "tools" / "controlplane"
EVERYTHING = [*PROGRAMS, "kubectl"]

# Stands in for Go: notes each call and writes a "program" to the place it is told.
FAKE_GO = """#!/bin/sh
echo "$@" >> "$GO_CALLS"
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then out=$2; fi
    shift
done
case "$1" in *"${GO_FAILS_FOR:-none}") echo "undefined: everything"; exit 1;; esac
printf '#!/bin/sh\\n' > "$out" && /bin/chmod +x "$out"
"""


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH (its bin/ is empty) and nothing in the cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "go-calls"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def install(folder: Path, name: str, script: str = "#!/bin/sh\n") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    return folder / name


def install_in_version(folder: Path, kubernetes: str, etcd: str) -> None:
    for program in PROGRAMS:
        text = f"etcd Version: {etcd}" if program == "etcd" else f"Kubernetes v{kubernetes}"
        install(folder, program, f"#!/bin/sh\necho '{text}'\n")


def go_calls(machine: Path) -> list[str]:
    log = machine / "go-calls"
    return log.read_text().splitlines() if log.exists() else []


def test_the_pinned_version_is_the_one_that_go_mod_requires() -> None:
    assert f"require k8s.io/kubernetes {KUBERNETES_VERSION}\n" in (MODULE / "go.mod").read_text()


def test_without_go_the_error_says_how_to_get_it(empty_machine: Path) -> None:
    with pytest.raises(ProgramsMissingError, match="PATH has no `go`") as caught:
        find_or_build(build=True)
    assert "Install Go 1.26" in caught.value.hint
    assert "KUBEBUILDER_ASSETS" in caught.value.hint


def test_without_permission_to_build_the_error_names_the_command(empty_machine: Path) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    with pytest.raises(ProgramsMissingError, match=r"nor in PATH \(no etcd\)") as caught:
        find_or_build(build=False)
    assert "python -m holokube.testing.controlplane build" in caught.value.hint
    assert go_calls(empty_machine) == []


def test_an_installed_package_without_its_sources_says_so(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "__file__", str(empty_machine / "a/b/c/d/binaries.py"))
    monkeypatch.chdir(empty_machine)
    with pytest.raises(ProgramsMissingError, match="installed holokube cannot build") as caught:
        find_or_build(build=True)
    assert "checkout" in caught.value.hint


def test_an_installed_package_finds_what_a_checkout_has_built(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in EVERYTHING:
        install(cache_folder(MODULE), program)
    monkeypatch.setattr(binaries, "__file__", str(empty_machine / "a/b/c/d/binaries.py"))
    monkeypatch.chdir(empty_machine)
    assert find_or_build(build=False).origin == "cache"


def test_the_sources_are_found_from_a_folder_inside_the_checkout(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    monkeypatch.setattr(binaries, "__file__", str(empty_machine / "a/b/c/d/binaries.py"))
    monkeypatch.chdir(REPOSITORY / "tests" / "testing")
    assert find_or_build(build=True)["etcd"].parent == cache_folder(MODULE)


def test_a_build_makes_everything_and_is_kept(empty_machine: Path) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    built = find_or_build(build=True)
    assert built["kube-apiserver"] == cache_folder(MODULE) / "kube-apiserver"
    assert sorted(path.name for path in cache_folder(MODULE).iterdir()) == sorted(EVERYTHING)
    assert len(go_calls(empty_machine)) == len(EVERYTHING)
    assert find_or_build(build=True) == built
    assert find_kubectl() == cache_folder(MODULE) / "kubectl"
    assert len(go_calls(empty_machine)) == len(EVERYTHING)


def test_a_failed_build_shows_the_compiler_and_leaves_nothing(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    monkeypatch.setenv("GO_FAILS_FOR", "kube-scheduler")
    with pytest.raises(ProgramsMissingError, match=r"(?s)kube-scheduler failed.*undefined: everything"):
        find_or_build(build=True)
    assert [path.name for path in cache_folder(MODULE).parent.iterdir()] == ["build.lock"]


def test_what_a_killed_build_left_is_removed_by_the_next(empty_machine: Path) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    stale = cache_folder(MODULE).parent / ".building-killed"
    install(stale, "etcd")
    find_or_build(build=True)
    assert not stale.exists()


def test_parallel_workers_share_one_build(empty_machine: Path) -> None:
    install(empty_machine / "bin", "go", FAKE_GO)
    script = "from holokube.testing.binaries import find_or_build; print(find_or_build(build=True)['etcd'])"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    root = cache_folder(MODULE).parent
    root.mkdir(parents=True)
    with (root / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", script],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for worker in workers:
            assert worker.stderr is not None
            assert "another process is building" in worker.stderr.readline()
        assert go_calls(empty_machine) == []
    outputs = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], outputs
    assert {output for output, _ in outputs} == {f"{cache_folder(MODULE) / 'etcd'}\n"}
    assert len(go_calls(empty_machine)) == len(EVERYTHING)
    assert sum("[1/5] building" in messages for _, messages in outputs) == 1


def test_another_go_mod_is_another_cache_folder(tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((MODULE / name).read_bytes())
    assert cache_folder(tmp_path) == cache_folder(MODULE)
    (tmp_path / "go.mod").write_text((MODULE / "go.mod").read_text().replace("v3.6.8", "v3.6.9"))
    assert cache_folder(tmp_path) != cache_folder(MODULE)


def test_the_assets_folder_comes_first_in_any_version(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_in_version(empty_machine / "assets", "1.30.1", "3.4.2")
    install_in_version(empty_machine / "bin", KUBERNETES_VERSION[1:], "3.6.8")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(empty_machine / "assets"))
    found = find_or_build(build=False)
    assert (found.origin, found["etcd"]) == ("KUBEBUILDER_ASSETS", empty_machine / "assets" / "etcd")


def test_assets_without_a_scheduler_are_enough_for_an_apiserver(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for program in ("etcd", "kube-apiserver", "kubectl"):
        install(empty_machine / "assets", program)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(empty_machine / "assets"))
    assert find_or_build(build=False, programs=["etcd", "kube-apiserver"]).origin == "KUBEBUILDER_ASSETS"
    assert find_kubectl(build=False) == empty_machine / "assets" / "kubectl"
    with pytest.raises(ProgramsMissingError):
        find_or_build(build=False)
    assert "lacks kube-controller-manager, kube-scheduler" in capfd.readouterr().err


def test_an_assets_folder_that_is_none_is_an_error(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(empty_machine / "nowhere"))
    with pytest.raises(ProgramsMissingError, match="nowhere, which is not a folder"):
        find_or_build(build=True)


@pytest.mark.parametrize(
    ("kubernetes", "etcd", "accepted"),
    [
        ("1.36.3", "3.6.8", True),
        ("1.36.0", "3.5.21", True),
        ("1.35.4", "3.6.8", False),
        ("1.36.3", "3.4.9", False),
    ],
)
def test_programs_on_path_must_have_the_right_versions(
    empty_machine: Path, kubernetes: str, etcd: str, accepted: bool
) -> None:
    install_in_version(empty_machine / "bin", kubernetes, etcd)
    if accepted:
        assert find_or_build(build=False).origin == "PATH"
    else:
        with pytest.raises(ProgramsMissingError, match=r"is (1\.35\.4|3\.4\.9)\)"):
            find_or_build(build=False)


@pytest.mark.parametrize(("version", "accepted"), [("v1.32.4-dispatcher", True), ("v1.31.9", False)])
def test_a_kubectl_on_path_must_be_new_enough(empty_machine: Path, version: str, accepted: bool) -> None:
    answer = f'{{"clientVersion": {{"major": "1", "gitVersion": "{version}"}}, "kustomizeVersion": "v5.5.0"}}'
    path = install(empty_machine / "bin", "kubectl", f"#!/bin/sh\necho '{answer}'\n")
    if accepted:
        assert find_kubectl(build=False) == path
    else:
        with pytest.raises(ProgramsMissingError, match=r"is 1\.31\.9, older than 1\.32"):
            find_kubectl(build=False)


def test_a_program_that_says_nothing_has_no_version(tmp_path: Path) -> None:
    assert program_version(install(tmp_path, "etcd")) is None
    assert program_version(tmp_path / "absent") is None
