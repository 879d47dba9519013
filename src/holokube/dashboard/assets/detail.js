// What is selected, a node or a group of them: facts, pods, and what may be done to it.

import { act, podsOf } from "./feed.js";
import { bytes, cores, count, hue, money, share, span } from "./format.js";
import { STATES, drawSample } from "./tile.js";

const KINDS = [
  ["silent", "falls silent"], ["not-ready", "is not ready"], ["reboot", "reboots"], ["slow", "is slow"],
  ["memory-pressure", "is short of memory"], ["disk-pressure", "is short of disk"], ["pid-pressure", "is short of process ids"],
  ["network-unavailable", "has no network"],
];
const ARMED_MS = 5000;
const stateWords = Object.fromEntries(STATES);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export class Detail {
  constructor(root, model, { toast, theme, onClose }) {
    this.root = root; this.model = model; this.toast = toast; this.theme = theme; this.onClose = onClose;
    this.key = null; this.kind = "silent"; this.podsAt = -Infinity; this.isAsking = false; this.isStale = false;
    root.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); this.close(); } });
  }

  openNode(name) { this.#open({ node: name }); }
  openGroup(by, value, label) { this.#open({ by, value, label }); }

  close() {
    if (this.root.hidden) return;
    this.root.hidden = true;
    this.key = null;
    this.onClose();
  }

  #open(key) {
    this.key = key;
    this.root.hidden = false;
    this.podsAt = -Infinity;
    this.#build();
    this.refresh(true);
  }

  get #nodes() {
    if (!this.key) return [];
    if (this.key.node) { const node = this.model.nodes.get(this.key.node); return node ? [node] : []; }
    const { by, value } = this.key;
    return [...this.model.nodes.values()].filter((node) => node[by] === value);
  }

  #target() {
    if (this.key.node) return { nodes: [this.key.node] };
    const { by, value } = this.key;
    return by === "zone" || by === "group" ? { [by]: value } : { nodes: this.#nodes.map((node) => node.name) };
  }

  #build() {
    const tools = element("div", "tools"), close = element("button", "quiet", "×");
    close.type = "button"; close.title = "Close (Escape)"; close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => this.close());
    tools.append(element("h2", "", this.key.node ?? this.key.label), close);
    this.body = element("div", "body");
    this.state = element("div", "state"); this.facts = element("dl", "facts");
    this.meters = element("div"); this.pods = element("ul", "pods");
    this.body.append(this.state, this.facts, this.meters);
    if (this.model.status.can?.faults) this.body.append(this.#deeds());
    if (this.key.node) this.body.append(this.pods);
    this.root.replaceChildren(tools, this.body);
  }

  #deeds() {
    const deeds = element("div", "deeds"), label = element("label", "sr", "What goes wrong"), select = element("select");
    select.id = "fault-kind";
    label.htmlFor = select.id;
    for (const [kind, words] of KINDS) { const option = element("option", "", words); option.value = kind; select.append(option); }
    select.value = this.kind;
    select.addEventListener("change", () => { this.kind = select.value; this.#disarm(); });
    this.breaker = element("button", "danger");
    this.breaker.type = "button"; this.breaker.id = "break";
    this.breaker.addEventListener("click", () => this.#breakOrArm());
    this.breaker.addEventListener("blur", () => this.#disarm());
    this.healer = element("button", "", "Heal");
    this.healer.type = "button"; this.healer.id = "heal";
    this.healer.addEventListener("click", () => this.#do("heal", [], "healed"));
    deeds.append(label, select, this.breaker, this.healer);
    this.#disarm();
    return deeds;
  }

  #disarm() {
    clearTimeout(this.armed);
    if (!this.breaker) return;
    this.breaker.removeAttribute("data-armed");
    this.breaker.textContent = this.key?.node ? "Break it" : "Break all";
  }

  // The first click asks, the second does: nobody breaks a zone by a slip of the hand.
  #breakOrArm() {
    if (!this.breaker.hasAttribute("data-armed")) {
      const number = this.#nodes.length;
      this.breaker.setAttribute("data-armed", "");
      this.breaker.textContent = this.key.node ? "Click again to break it" : `Click again: ${count(number)} ${number === 1 ? "node" : "nodes"}`;
      this.armed = setTimeout(() => this.#disarm(), ARMED_MS);
      return;
    }
    this.#disarm();
    this.#do("break", [this.kind], "broken");
  }

  async #do(verb, kinds, word) {
    this.breaker.disabled = this.healer.disabled = true;
    try {
      const answer = await act(verb, { target: this.#target(), kinds });
      const trouble = answer.problems.length ? `; ${answer.problems.join("; ")}` : "";
      this.toast(`${count(answer.done)} ${answer.done === 1 ? "node" : "nodes"} ${word}${trouble}`);
    } catch (error) {
      this.toast(error.message);
    } finally {
      this.breaker.disabled = this.healer.disabled = false;
      this.refresh(true);
    }
  }

  refresh(isChanged) {
    if (!this.key || this.root.hidden) return;
    const nodes = this.#nodes;
    if (!nodes.length) { this.#gone(); return; }
    if (this.key.node) this.#showNode(nodes[0], isChanged); else this.#showGroup(nodes);
    if (this.healer) this.healer.hidden = !nodes.some((node) => node.faults.length);
  }

  #gone() {
    this.state.replaceChildren(element("span", "", "It is gone."));
    this.facts.replaceChildren(); this.meters.replaceChildren(); this.pods.replaceChildren();
    if (this.breaker) this.breaker.disabled = true;
  }

  #showNode(node, isChanged) {
    this.#showState(node.state, node.why);
    this.#showFacts([
      ["group", node.group], ["zone", node.zone], ["type", [node.type, node.capacityType].filter(Boolean).join(", ")],
      ["price", node.price === null ? "no price" : `${money(node.price)} /h`], ["age", span(this.model.now - node.created)],
      ["faults", node.faults.join(", ")],
    ]);
    this.#showMeters(node.cpuUsed, node.cpu, node.memoryUsed, node.memory, node.pods, node.podsMax);
    // The list is asked for when the node changes, at most once a second.
    this.isStale ||= isChanged;
    if (this.isStale && performance.now() - this.podsAt > 1000) this.#askPods(node.name);
  }

  #showGroup(nodes) {
    const sum = (key) => nodes.reduce((total, node) => total + (node[key] ?? 0), 0);
    const states = new Map();
    for (const node of nodes) states.set(node.state, (states.get(node.state) ?? 0) + 1);
    this.state.replaceChildren(element("span", "", [...states].map(([state, n]) => `${count(n)} ${stateWords[state]}`).join(", ")));
    const priced = nodes.filter((node) => node.price !== null);
    this.#showFacts([["nodes", count(nodes.length)], ["price", priced.length ? `${money(sum("price"))} /h` : "no price"]]);
    this.#showMeters(sum("cpuUsed"), sum("cpu"), sum("memoryUsed"), sum("memory"), sum("pods"), sum("podsMax"));
  }

  #showState(state, why) {
    const sample = element("canvas");
    drawSample(sample, state, this.theme());
    this.state.replaceChildren(sample, element("span", "", stateWords[state] + (why ? `: ${why}` : "")));
  }

  #showFacts(facts) {
    this.facts.replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]));
  }

  #showMeters(cpuUsed, cpu, memoryUsed, memory, pods, podsMax) {
    const rows = [
      ["CPU", cpuUsed, cpu, `${share(cpuUsed, cpu)} of ${cores(cpu)}`],
      ["memory", memoryUsed, memory, `${share(memoryUsed, memory)} of ${bytes(memory)}`],
      ["pods", pods, podsMax, `${count(pods)} of ${count(podsMax)}`],
    ];
    this.meters.replaceChildren(...rows.map(([name, part, whole, text]) => {
      const row = element("div", "meter"), bar = element("progress");
      bar.max = whole || 1; bar.value = Math.min(part, whole || 1);
      bar.setAttribute("aria-label", name);
      row.append(element("span", "", name), bar, element("span", "", text));
      return row;
    }));
  }

  async #askPods(name) {
    if (this.isAsking) return;
    this.isAsking = true;
    this.isStale = false;
    this.podsAt = performance.now();
    try {
      const found = await podsOf(name);
      if (found && this.key?.node === name) this.#showPods(found);
    } catch { /* The stream says that the cluster is gone. */ } finally { this.isAsking = false; }
  }

  #showPods({ count: number, pods }) {
    const theme = this.theme();
    this.pods.replaceChildren(...pods.map((pod) => {
      const item = element("li"), swatch = element("span", "swatch");
      const workload = this.#workloadOf(pod.name);
      swatch.style.background = pod.state === "running" ? theme.workloads[hue(workload)] : "none";
      swatch.style.borderColor = theme.workloads[hue(workload)];
      item.append(swatch, element("span", "name", pod.name), element("span", "end", `${pod.state === "running" ? "" : `${pod.state}, `}${cores(pod.cpu)}, ${bytes(pod.memory)}`));
      return item;
    }));
    if (number > pods.length) this.pods.append(element("li", "", `… and ${count(number - pods.length)} more`));
    if (!number) this.pods.append(element("li", "", "No pods."));
  }

  // The longest name of a workload on this node that the pod's name begins with.
  #workloadOf(pod) {
    const node = this.model.nodes.get(this.key.node);
    const fitting = (node?.blocks ?? []).map((block) => block[0]).filter((name) => pod.startsWith(name));
    return fitting.sort((a, b) => b.length - a.length)[0] ?? pod;
  }
}
