from __future__ import annotations

import gc
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.runtime.event_correlator import COMBINED_PREFIX, CountingCorrelator
from holokube.runtime.event_occurrence import Occurrence
from holokube.runtime.ratelimit import TokenBucket

NAMES = count()


def core_event(
    message: str, *, reason: str = "Failed", name: str = "web-0", type: str = "Warning"
) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.{next(NAMES)}", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name, "uid": "u1", "apiVersion": "v1"},
        "reason": reason, "message": message, "source": {"component": "scheduler"}, "type": type,
        "firstTimestamp": "t0", "lastTimestamp": "t0", "count": 1,
    }  # fmt: skip


def correlator(clock: VirtualClock, **options: Any) -> CountingCorrelator:
    return CountingCorrelator(clock, new_name=lambda event: f"combined.{next(NAMES)}", **options)


def test_the_same_event_again_counts_up_the_first_one() -> None:
    book = correlator(VirtualClock())
    first = core_event("no room")
    write = book.correlate(first)
    assert write is not None
    assert (write.event, write.patch) == (first, None)
    again = book.correlate({**core_event("no room"), "firstTimestamp": "t9", "lastTimestamp": "t9"})
    assert again is not None
    assert again.patch == {"count": 2, "lastTimestamp": "t9", "message": "no room"}
    assert again.event["metadata"]["name"] == first["metadata"]["name"]
    assert (again.event["firstTimestamp"], again.event["count"]) == ("t0", 2)


def test_the_tenth_message_of_one_reason_and_all_after_it_are_combined() -> None:
    book = correlator(VirtualClock())
    for n in range(9):
        write = book.correlate(core_event(f"try {n}"))
        assert write is not None
        assert write.event["message"] == f"try {n}"
    tenth = book.correlate(core_event("try 9"))
    assert tenth is not None
    assert tenth.event["message"] == "(combined from similar events): try 9"
    assert tenth.patch is None
    eleventh = book.correlate(core_event("try 10"))
    assert eleventh is not None
    assert eleventh.event["metadata"]["name"] == tenth.event["metadata"]["name"]
    assert eleventh.patch is not None
    assert eleventh.patch["message"] == "(combined from similar events): try 10"
    assert eleventh.patch["count"] == 2
    other = book.correlate(core_event("try 11", reason="Other"))
    assert other is not None
    assert other.event["message"] == "try 11"


def test_ten_quiet_minutes_end_the_combining() -> None:
    clock = VirtualClock()
    book = correlator(clock, spam_burst=100)
    for n in range(12):
        book.correlate(core_event(f"try {n}"))
    clock.advance(600)
    write = book.correlate(core_event("still similar"))
    assert write is not None
    assert write.event["message"].startswith("(combined")
    clock.advance(601)
    write = book.correlate(core_event("new day"))
    assert write is not None
    assert write.event["message"] == "new day"


def test_an_object_may_burst_25_events_then_one_every_five_minutes() -> None:
    clock = VirtualClock()
    book = correlator(clock)
    passed = [book.correlate(core_event("same")) is not None for _ in range(40)]
    assert passed == [True] * 25 + [False] * 15
    assert book.correlate(core_event("same", name="web-1")) is not None
    assert book.correlate(core_event("same", type="Normal")) is not None
    clock.advance(300)
    write = book.correlate(core_event("same"))
    assert write is not None
    assert write.patch is not None
    assert write.patch["count"] == 41
    assert book.correlate(core_event("same")) is None


class PlainBook:
    """What becomes of an event, by rules that are written down as they are told: which message, counted how often."""

    def __init__(self, clock: VirtualClock, similar_max: int, burst: int) -> None:
        self.clock, self.similar_max, self.burst = clock, similar_max, burst
        self.messages: dict[str, list[str]] = {}
        self.last_s: dict[str, float] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.bucket: TokenBucket | None = None

    def tell(self, reason: str, message: str) -> tuple[str, int] | None:
        now_s = self.clock.monotonic()
        messages = self.messages.setdefault(reason, [])
        if now_s - self.last_s.get(reason, now_s) > 600:
            messages.clear()
        self.last_s[reason] = now_s
        if message not in messages:
            messages.append(message)
        is_combined = len(messages) >= self.similar_max
        if is_combined:
            messages.pop(0)
        key = (reason, "" if is_combined else message)
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.bucket is None:
            self.bucket = TokenBucket(self.clock, per_s=1 / 300, burst=self.burst)
        if not self.bucket.try_take():
            return None
        return (COMBINED_PREFIX + message if is_combined else message), self.counts[key]


@given(
    st.integers(1, 4), st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from((0.0, 0.1, 150.0, 299.9, 600.0, 601.0)), st.sampled_from("AB"),
                  st.sampled_from("uvwxyz")),
        max_size=40,
    ),
)  # fmt: skip
def test_events_are_combined_counted_and_throttled_by_the_rules(
    similar_max: int, burst: int, told: list[tuple[float, str, str]]
) -> None:
    clock = VirtualClock()
    book = correlator(clock, similar_max=similar_max, spam_burst=burst)
    plain = PlainBook(clock, similar_max, burst)
    for wait_s, reason, message in told:
        clock.advance(wait_s)
        write = book.correlate(core_event(message, reason=reason))
        wanted = plain.tell(reason, message)
        assert (None if write is None else (write.event["message"], write.event["count"])) == wanted
        assert write is None or (write.patch is not None) == write.is_patch == (write.event["count"] > 1)


class PlainCaches:
    """Which event is made and which counted up, if so many are remembered of subjects, of reasons and of events."""

    def __init__(self, entries: int, similar_max: int, burst: int) -> None:
        self.entries, self.similar_max, self.burst = entries, similar_max, burst
        self.messages: dict[Any, list[str]] = {}
        self.counts: dict[Any, int] = {}
        self.tokens: dict[Any, int] = {}

    def _renew(self, cache: dict[Any, Any], key: Any, default: Any) -> Any:
        value = cache[key] = cache.pop(key, default)
        while len(cache) > self.entries:
            del cache[next(iter(cache))]
        return value

    def tell(self, subject: tuple[str, str], reason: str, message: str) -> int | None:
        messages = self._renew(self.messages, (subject, reason), [])
        if message not in messages:
            messages.append(message)
        is_combined = len(messages) >= self.similar_max
        if is_combined:
            messages.pop(0)
        key = (subject, reason) if is_combined else (subject, reason, message)
        self.counts[key] = self._renew(self.counts, key, 0) + 1
        left = self._renew(self.tokens, subject, self.burst)
        self.tokens[subject] = max(0, left - 1)
        return self.counts[key] if left >= 1 else None


@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(("a", "b", "c")), st.sampled_from(("Normal", "Warning")), st.sampled_from("RS"),
                       st.sampled_from("uvwxyz")), max_size=60),
)  # fmt: skip
def test_whatever_is_forgotten_is_forgotten_in_the_order_in_which_it_was_last_told(
    entries: int, similar_max: int, burst: int, told: list[tuple[str, str, str, str]]
) -> None:
    book = correlator(VirtualClock(), cache_entries=entries, similar_max=similar_max, spam_burst=burst)
    plain = PlainCaches(entries, similar_max, burst)
    for name, type_, reason, message in told:
        write = book.correlate(core_event(message, reason=reason, name=name, type=type_))
        wanted = plain.tell((name, type_), reason, message)
        assert (None if write is None else write.event["count"]) == wanted
        assert write is None or write.is_patch == (wanted != 1)


def test_a_renamed_event_is_counted_under_its_new_name() -> None:
    book = correlator(VirtualClock())
    write = book.correlate(core_event("a"))
    assert write is not None
    book.renamed(write.key, {"metadata": {"name": "other"}})
    again = book.correlate(core_event("a"))
    assert again is not None
    assert again.event["metadata"]["name"] == "other"


def crowd(names: str, uid: str | None = None) -> list[Occurrence]:
    """An event of each object that has such a letter for its name."""
    events = [core_event("no place", name=name) for name in names]
    for event in events:
        event["involvedObject"]["uid"] = uid or event["involvedObject"]["name"]
    return [Occurrence.of_core(event) for event in events]


def test_of_more_objects_than_can_be_remembered_each_event_is_new_however_often_all_are_told() -> None:
    book = correlator(VirtualClock(), cache_entries=4)
    for _ in range(3):
        assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
    assert book.count_flood_at(crowd("fedcba"), 0.0) is None, "the last ones are still known"
    first = book.count_at(crowd("f")[0], 0.0)
    assert first is not None and first.count == 2, "and nothing has been counted"


def test_what_a_flood_has_pushed_out_leaves_nothing_to_the_garbage_collector() -> None:
    book = correlator(VirtualClock(), cache_entries=4)
    assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
    gc.collect()
    gc.disable()
    try:
        assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("told", [crowd("abc"), crowd("abcabc"), crowd("abcdef", uid="u1")])
def test_few_objects_or_the_same_ones_again_are_no_flood(told: list[Occurrence]) -> None:
    assert correlator(VirtualClock(), cache_entries=4).count_flood_at(told, 0.0) is None


def test_of_a_flood_only_what_passes_is_made() -> None:
    book = correlator(VirtualClock(), cache_entries=4, passes=lambda told, _now_s: told.reference[2] in "ace")
    assert book.count_flood_at(crowd("abcdef"), 0.0) == 3
