"""Reading a page back, and names that try to break out of it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import msgspec

from holokube.lab.results import Decision, Outcome, RunResult

NASTY = """</script><script>boom()</script>"'<img src=x onerror=boom()>&amp;{runs}"""
VOID = {"meta", "link", "input", "img", "br"}


class Outline(HTMLParser):
    """Tags in order, with a check that each is closed by its own; and the text outside of scripts and styles."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    def ids(self) -> list[str]:
        return [name for _, attributes in self.tags if (name := attributes.get("id"))]


def nasty(result: RunResult) -> RunResult:
    """The same result with such names everywhere."""
    return replace(
        result, scenario=NASTY, policy=NASTY, scenario_text=NASTY, start=NASTY,
        cost_by_workload_usd={NASTY: 1.0}, node_hours_by_type={NASTY: 1.0}, api_calls={NASTY: 1},
        nodes=tuple(replace(node, name=NASTY, group=NASTY, why_added=NASTY) for node in result.nodes),
        pods=tuple(msgspec.structs.replace(pod, name=NASTY, workload=NASTY) for pod in result.pods),
        decisions=(Decision(1.0, NASTY, NASTY, NASTY, NASTY, (NASTY,), {NASTY: NASTY}),),
        outcomes=(Outcome(NASTY, False, 1.0),),
    )
