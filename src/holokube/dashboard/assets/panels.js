// Pending pods and decisions.

import { clockTime, cores, bytes, count, instant, span } from "./format.js";

const SHOWN = 120;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function nothing(list, text) { list.replaceChildren(element("li", "nothing", text)); }

export function showPending(list, counter, model) {
  counter.textContent = count(model.totals?.pending ?? 0);
  if (!model.pending.length) return nothing(list, "No pod waits for a node.");
  list.replaceChildren(...model.pending.map((group) => {
    const item = element("li"), row = element("div", "row");
    row.append(element("span", "name", group.workload));
    if (group.count > 1) row.append(element("span", "times", `× ${count(group.count)}`));
    const age = element("span", "end", span(model.now - group.since));
    age.title = `the oldest since ${instant(group.since)} UTC; each asks for ${cores(group.cpu)} cores, ${bytes(group.memory)}`;
    row.append(age);
    const why = element("p", "why", group.reason);
    why.title = group.reason;
    item.append(row, why);
    return item;
  }));
}

export class Decisions {
  constructor(list, filter, model) {
    this.list = list; this.filter = filter; this.model = model; this.shownId = 0;
    filter.addEventListener("change", () => this.show());
  }

  show() {
    const lines = this.model.decisions.filter((line) => line.act || !this.filter.checked).slice(-SHOWN).reverse();
    if (!lines.length) return nothing(this.list, this.model.decisions.length ? "Nothing was done yet." : "No decision yet. Apply a workload, or break a node.");
    const newest = Math.max(...lines.map((line) => line.id));
    const isFirst = this.shownId === 0;
    // Reading on while new lines come in: the list stays where it is.
    const fromBottom = this.list.scrollHeight - this.list.scrollTop;
    const isAtTop = this.list.scrollTop < 8;
    this.list.replaceChildren(...lines.map((line) => this.#item(line, !isFirst && line.id > this.shownId)));
    if (!isAtTop) this.list.scrollTop = this.list.scrollHeight - fromBottom;
    this.shownId = newest;
  }

  #item(line, isFresh) {
    const item = element("li"), row = element("div", "row");
    item.toggleAttribute("data-act", line.act);
    if (isFresh) item.classList.add("fresh");
    row.append(element("span", "kind", line.kind));
    const who = line.count === 1 ? line.subjects[0] : `${count(line.count)} ${many(line.kind)}`;
    const what = line.count === 1 ? line.decision : line.decision.replace(/^stays\b/, "stay");
    row.append(element("span", "name", `${who} ${what}`));
    const at = element("span", "end", clockTime(line.at));
    at.title = `${instant(line.at)} UTC`;
    row.append(at);
    item.append(row);
    const why = [...line.reasons];
    if (line.count > 1) why.push(`${line.subjects.join(", ")}${line.count > line.subjects.length ? ", …" : ""}`);
    if (why.length) { const text = element("p", "why", why.join("; ")); text.title = text.textContent; item.append(text); }
    return item;
  }
}

function many(kind) {
  return { node: "nodes", pod: "pods", group: "groups", machine: "machines", claim: "claims", pool: "pools", fault: "nodes", "scale-up": "groups" }[kind] ?? "times";
}
