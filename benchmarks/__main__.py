"""Runs all benchmarks in order, then shows every ratio once more: ``python -m benchmarks [--quick]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small round of each")
    parser.add_argument("only", nargs="*", help="names of benchmarks, such as server; all unless told")
    args = parser.parse_args()
    scripts = sorted(HERE.glob("bench_*.py"))
    if args.only:
        known = {script.stem.removeprefix("bench_"): script for script in scripts}
        unknown = [name for name in args.only if name not in known]
        if unknown:
            parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(known)}")
        scripts = [known[name] for name in args.only]
    outcomes: list[tuple[str, float, int]] = []
    with tempfile.NamedTemporaryFile("r", suffix=".summary") as summary:
        for script in scripts:
            print(f"\n== {script.stem.removeprefix('bench_')} ==", flush=True)
            started = time.monotonic()
            command = [sys.executable, str(script), *(["--quick"] if args.quick else [])]
            environment = {**os.environ, "HOLOKUBE_BENCH_SUMMARY": summary.name}
            code = subprocess.run(command, env=environment, check=False).returncode
            outcomes.append((script.stem, time.monotonic() - started, code))
        ratios = summary.read()
    print("\n== summary ==")
    for name, seconds, code in outcomes:
        print(f"{name:<30} {seconds:>8.1f} s  {'done' if code == 0 else f'FAILED with {code}'}")
    if ratios:
        print(f"\n{ratios}", end="")
    return 1 if any(code for _, _, code in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
