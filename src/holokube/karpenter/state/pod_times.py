"""When a pending pod was first seen, first decided upon, and which claim is to take it; by ``namespace/name``."""

from __future__ import annotations

from collections.abc import Iterable


class PodTimes:
    """Remembers pods until they are deleted."""

    def __init__(self) -> None:
        self._seen_s: dict[str, float] = {}
        self._decided: set[str] = set()
        self._claim: dict[str, str] = {}
        self._of_claim: dict[str, dict[str, None]] = {}

    def seen(self, key: str, now_s: float) -> None:
        """The pod waits for a node; the first time counts."""
        self._seen_s.setdefault(key, now_s)

    def seen_s(self, key: str) -> float | None:
        """When it was first seen waiting."""
        return self._seen_s.get(key)

    def decided(self, key: str, now_s: float) -> float | None:
        """A decision was made; how long the pod waited for it, if it is the first."""
        if key in self._decided:
            return None
        self._decided.add(key)
        seen_s = self._seen_s.get(key)
        return None if seen_s is None else now_s - seen_s

    def expect_on_claim(self, keys: Iterable[str], claim: str) -> None:
        """These pods are what the claim was made for."""
        for key in keys:
            self._leave_claim(key)
            self._claim[key] = claim
            self._of_claim.setdefault(claim, {})[key] = None

    def expected_on_claim(self, claim: str) -> list[str]:
        """The pods a claim was made for, unless something newer was decided for them."""
        return list(self._of_claim.get(claim, ()))

    def no_place(self, key: str) -> None:
        """Nothing is planned for the pod."""
        self._leave_claim(key)

    def forget(self, key: str) -> None:
        """The pod is gone."""
        self._seen_s.pop(key, None)
        self._decided.discard(key)
        if key in self._claim:
            self._leave_claim(key)

    def _leave_claim(self, key: str) -> None:
        claim = self._claim.pop(key, None)
        if claim is None:
            return
        pods = self._of_claim[claim]
        del pods[key]
        if not pods:
            del self._of_claim[claim]
