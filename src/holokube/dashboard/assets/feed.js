// The stream of snapshots and deltas, and the picture of the cluster that grows from it.

const DECISIONS_MAX = 150; // of those that did something, and of those that did not
const POINTS_MAX = 800;

export class Model {
  constructor() {
    this.nodes = new Map();
    this.totals = null;
    this.pending = [];
    this.decisions = [];
    this.history = [];
    this.now = 0;
    this.status = {};
    this.columns = [];
    this.podStates = [];
  }

  // Returns what has changed: names of nodes, and whether nodes have come or gone.
  apply(kind, data) {
    const change = { all: kind === "snapshot", names: [], moved: kind === "snapshot", decisions: false, pending: false };
    if (kind === "snapshot") {
      this.columns = data.columns;
      this.podStates = data.podStates;
      this.nodes.clear();
      this.decisions = [];
    }
    this.now = data.now;
    this.totals = data.totals;
    this.status = { title: data.title, virtual: data.virtual, paused: data.paused, speed: data.speed, can: data.can };
    for (const row of data.rows ?? []) this.#takeRow(row, change);
    for (const name of data.gone ?? []) {
      if (this.nodes.delete(name)) change.moved = true;
    }
    if (data.pending) { this.pending = data.pending; change.pending = true; }
    if (data.decisions) { this.#takeDecisions(data.decisions); change.decisions = true; }
    if (data.history) this.history = data.history;
    else if (data.point) this.#takePoint(data.point);
    return change;
  }

  #takeRow(row, change) {
    const node = {};
    this.columns.forEach((column, i) => { node[column] = row[i]; });
    const before = this.nodes.get(node.name);
    // Where a tile stands and how wide it is depends on these only.
    if (!before || before.group !== node.group || before.zone !== node.zone || before.type !== node.type
        || before.cpu !== node.cpu || before.created !== node.created) change.moved = true;
    // node-9 before node-10; made once, for a collator is slow by the thousand.
    node.order = before ? before.order : node.name.replace(/\d+/g, (digits) => digits.padStart(9, "0"));
    node.isStateNew = !change.all && (!before || before.state !== node.state);
    if (before && before.state !== node.state) change.restated = true;
    this.nodes.set(node.name, node);
    change.names.push(node.name);
  }

  #takeDecisions(lines) {
    const known = new Map(this.decisions.map((line, i) => [line.id, i]));
    for (const line of lines) {
      if (known.has(line.id)) this.decisions[known.get(line.id)] = line;
      else this.decisions.push(line);
    }
    for (const act of [true, false]) {
      let over = this.decisions.filter((line) => line.act === act).length - DECISIONS_MAX;
      if (over > 0) this.decisions = this.decisions.filter((line) => line.act !== act || over-- <= 0);
    }
  }

  #takePoint(point) {
    const points = this.history, before = points.at(-2);
    // The server replaces its last point while it is younger than a step; so does this copy.
    if (before && points.at(-1)[0] - before[0] < Math.max(1, this.step())) points[points.length - 1] = point;
    else points.push(point);
    if (points.length > POINTS_MAX) points.splice(0, points.length - POINTS_MAX);
  }

  step() {
    const points = this.history;
    return points.length > 2 ? (points.at(-2)[0] - points[0][0]) / (points.length - 2) * 0.99 : 1;
  }
}

const ASLEEP_AFTER_MS = 5000;

// Keeps one stream open while somebody can see the page. The browser comes back by itself after a loss; each stream
// begins with a snapshot. A browser has six connections to one address, and a stream takes one for good: with six pages
// in its tabs the seventh would not load and no button would do anything, so tabs that are not looked at let go.
export function follow(onEvent, onLink) {
  let source = null, timer = 0;
  const close = () => { source?.close(); source = null; };
  const open = () => {
    close();
    source = new EventSource("/events");
    for (const kind of ["snapshot", "delta", "empty"]) {
      source.addEventListener(kind, (event) => {
        if (kind !== "delta") onLink("on");
        onEvent(kind, JSON.parse(event.data));
      });
    }
    source.onerror = () => {
      onLink("lost");
      // A browser gives up after an answer that is no stream, 503 say; a person would press reload.
      if (source.readyState === EventSource.CLOSED) wait(() => (document.hidden ? sleep() : open()), 2000);
    };
  };
  const sleep = () => { close(); onLink("asleep"); };
  const wait = (what, ms) => { clearTimeout(timer); timer = setTimeout(what, ms); };
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) wait(sleep, ASLEEP_AFTER_MS);
    else if (!source || source.readyState === EventSource.CLOSED) open();
  };
  document.addEventListener("visibilitychange", look);
  open();
  look();
}

const token = document.querySelector("meta[name=holokube-token]").content;

export async function act(verb, body) {
  let answer;
  try {
    answer = await fetch(`/actions/${verb}`, {
      method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "X-Holokube-Token": token },
    });
  } catch { throw new Error("Nobody answers. What ran here has stopped, or cannot be reached."); }
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

export async function podsOf(name) {
  const answer = await fetch(`/nodes/${encodeURIComponent(name)}/pods`);
  return answer.ok ? answer.json() : null;
}
