"""Runs the real kubectl against one cluster, deaf to the configuration of whoever runs the tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from holokube.base.errors import HolokubeError


class KubectlError(HolokubeError):
    """kubectl ended with an error."""

    def __init__(self, command: str, status: int, stderr: str) -> None:
        super().__init__(f"`{command}` ended with status {status}: {stderr.strip() or '(no message)'}")
        self.status = status
        self.stderr = stderr


class Kubectl:
    """``kubectl("get", "pods")`` returns what kubectl prints.

    ``home`` is kubectl's home folder: its discovery cache is keyed by address, so tests that reuse a port
    must not share one.
    """

    def __init__(self, program: Path, kubeconfig: Path, home: Path, *, timeout_s: float = 60.0) -> None:
        self.program = program
        self._timeout_s = timeout_s
        foreign = ("KUBE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        names = [name for name in os.environ if not name.upper().startswith(foreign)]
        self.environment = {name: os.environ[name] for name in names}
        self.environment |= {"HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and return its output; raise KubectlError if it fails."""
        result = self.run(*arguments, stdin=stdin)
        if result.returncode != 0:
            raise KubectlError(" ".join(["kubectl", *arguments]), result.returncode, result.stderr)
        return result.stdout

    def json(self, *arguments: str) -> Any:
        """Run kubectl with ``--output=json`` and decode what it prints."""
        return json.loads(self(*arguments, "--output=json"))

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl and return everything, whether it failed or not."""
        return subprocess.run(  # noqa: S603 - a test runs the kubectl it was given
            [self.program, *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=self._timeout_s,
            check=False,
        )
