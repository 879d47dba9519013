from __future__ import annotations

from holokube.scheduler.nominations import Nominations
from tests.scheduler.objects import waiting


def test_rivals_are_others_that_matter_at_least_as_much() -> None:
    nominations = Nominations()
    for name, priority in (("low", 1), ("same", 5), ("high", 9)):
        nominations.put(waiting(name, priority=priority), "n")
    me = waiting("same", priority=5)
    assert [p["metadata"]["name"] for p in nominations.rivals(me)["n"]] == ["high"]
    other = waiting("other", priority=5)
    assert {p["metadata"]["name"] for p in nominations.rivals(other)["n"]} == {"same", "high"}
    assert [p["metadata"]["name"] for p in nominations.below("n", 5)] == ["low"]


def test_a_promise_the_server_has_not_heard_of_survives_an_update() -> None:
    nominations = Nominations()
    old = waiting("p")
    nominations.put(old, "n")
    newer = waiting("p", labels={"a": "b"})
    nominations.take_over(old, newer)
    assert nominations.node_for("uid-p") == "n" and nominations.nodes["n"]["uid-p"] is newer
    told = waiting("p", nominated="n")
    nominations.take_over(newer, told)
    assert nominations.node_for("uid-p") == "n"
    nominations.take_over(told, waiting("p"))
    assert not nominations, "what the server took back is gone"


def test_every_change_moves_the_version_and_nothing_else_does() -> None:
    nominations, pod = Nominations(), waiting("p")
    seen = [nominations.version]
    for change in (lambda: nominations.put(pod, "n"), lambda: nominations.put(pod, "m"),
                   lambda: nominations.put(pod, "")):  # fmt: skip
        change()
        seen.append(nominations.version)
    assert seen == sorted(set(seen))
    nominations.put(pod, "")
    nominations.remove("uid-other")
    assert nominations.version == seen[-1]
