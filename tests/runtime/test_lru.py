from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.runtime.lru import LruCache


def test_the_cache_forgets_what_was_not_used_longest() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


@given(
    capacity=st.integers(1, 5), before=st.lists(st.integers(0, 12), max_size=8),
    keys=st.lists(st.integers(0, 12), max_size=12, unique=True),
)  # fmt: skip
def test_a_cache_knows_whether_all_that_comes_is_new_and_takes_all_the_place(
    capacity: int, before: list[int], keys: list[int]
) -> None:
    caches: list[LruCache[int, str]] = [LruCache(capacity), LruCache(capacity)]
    for cache in caches:
        for key in before:
            cache.put(key, "before")
    at_once, one_by_one = caches
    found = []
    for key in keys:
        found.append(one_by_one.get(key))
        one_by_one.put(key, "flood")
    is_flood = set(found) <= {None} and len(keys) >= capacity
    assert at_once.is_flooded_by(keys) == is_flood
    if is_flood:
        at_once.flood(keys, "flood")
        for key in [90, 91, *keys]:
            assert [cache.get(key) for cache in caches] == [at_once.find(key)] * 2
            for cache in caches:
                cache.put(key + 100, "later")
