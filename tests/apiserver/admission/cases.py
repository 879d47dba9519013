"""All tables of what built-in plugins do."""

from __future__ import annotations

from . import cases_of_limits as limits
from . import cases_of_pods as pods
from .cases_of_security import SECURITY
from .steps import Case

CASES: list[Case] = [
    *pods.NAMESPACES,
    *pods.PRIORITIES,
    *pods.TOLERATIONS,
    *pods.NODES,
    *pods.ACCOUNTS,
    *limits.LIMITS,
    *limits.QUOTAS,
    *limits.CLASSES,
    *SECURITY,
]
# These change what every write of the whole server gets.
ALONE: list[Case] = [*pods.DEFAULT_PRIORITIES, *limits.DEFAULT_CLASSES]
