"""Runs the conformance table by hand: `python -m tests.conformance.run --url ... --token ... --ca ...`.

Compares with the recording, or with a second server given by `--compare-url`. `--record` writes the answers
as the new recording; use it only with a real kube-apiserver.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from .cases import ALL_CASES
from .known_differences import KNOWN_DIFFERENCES
from .runner import CONCURRENCY, differences, load_recorded, run_cases, save_recorded
from .target import Target


def _token(text: str) -> str:
    path = Path(text)
    return path.read_text().strip() if os.sep in text and path.exists() else text


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.run", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True, help="a bearer token, or the path of a file that holds one")
    parser.add_argument(
        "--ca", default="", help="CA certificate file; without it any certificate is accepted"
    )
    parser.add_argument("--compare-url", default="")
    parser.add_argument("--compare-token", default="")
    parser.add_argument("--compare-ca", default="")
    parser.add_argument("--only", action="append", default=[], help="run only cases whose id holds this text")
    parser.add_argument("--show-known", action="store_true", help="print known differences as well")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the case ids and stop")
    parser.add_argument(
        "--patience", type=float, default=30.0, help="seconds to wait for polled answers and watch events"
    )
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY)
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    cases = [case for case in ALL_CASES if not options.only or any(text in case.id for text in options.only)]
    if options.list:
        print("\n".join(case.id for case in cases))
        return 0
    run_id = f"{os.getpid()}-{time.time_ns()}"
    target = Target(options.url, _token(options.token), options.ca, options.patience)
    started = time.monotonic()
    outcomes = asyncio.run(run_cases(target, cases, run_id=run_id, concurrency=options.concurrency))
    if options.compare_url:
        other = Target(
            options.compare_url, _token(options.compare_token or options.token), options.compare_ca
        )
        second = asyncio.run(run_cases(other, cases, run_id=run_id + "b", concurrency=options.concurrency))
        reference = {name: outcome.answers for name, outcome in second.items()}
    else:
        reference = load_recorded()
    failed = 0
    for case in cases:
        outcome = outcomes[case.id]
        lines = list(outcome.broken)
        if not options.record:
            lines += differences(reference.get(case.id, []), outcome.answers)
        if lines and (options.show_known or case.id not in KNOWN_DIFFERENCES):
            failed += 1
            print(f"--- {case.id}")
            for line in lines:
                print("    " + line)
    if options.record:
        good = [case for case in cases if not outcomes[case.id].broken]
        save_recorded(good, outcomes, {case.id for case in ALL_CASES})
    took_s = time.monotonic() - started
    print(f"{len(cases)} cases, {failed} differ, {took_s:.1f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
