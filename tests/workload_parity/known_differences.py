"""Where our controllers differ from the real kube-controller-manager, and why that is accepted.

A key is a scenario and a pattern; the pattern is searched for in the lines of ``differences``. An entry that
matches nothing any more fails the test, so that the list stays short.
"""

from __future__ import annotations

KNOWN_DIFFERENCES: dict[tuple[str, str], str] = {}
