// The figures above the wall, each with a small chart of the last while.

import { bytes, clockTime, cores, count, money, share, span } from "./format.js";

const FIGURES = [
  { key: "nodes", title: "Nodes", series: 1, text: count },
  { key: "running", title: "Pods running", series: 6, text: count },
  { key: "pending", title: "Pods pending", series: 2, text: count },
  { key: "cost", title: "Cost per hour", series: 3, text: money },
  { key: "cpu", title: "CPU requested", series: 4, text: (v) => `${Math.round(v * 100)} %`, top: 1 },
  { key: "memory", title: "Memory requested", series: 5, text: (v) => `${Math.round(v * 100)} %`, top: 1 },
];

export class Figures {
  constructor(root, model) {
    this.model = model;
    this.cards = FIGURES.map((figure) => {
      const card = document.createElement("div");
      card.className = "figure";
      card.id = `figure-${figure.key}`;
      const title = document.createElement("h3"), value = document.createElement("div"), sub = document.createElement("div");
      const canvas = document.createElement("canvas");
      title.textContent = figure.title; value.className = "value"; sub.className = "sub";
      canvas.setAttribute("role", "img");
      card.append(title, value, sub, canvas);
      root.append(card);
      const made = { ...figure, card, value, sub, canvas, at: null };
      canvas.addEventListener("pointermove", (event) => { made.at = event.offsetX; this.#drawCard(made); });
      canvas.addEventListener("pointerleave", () => { made.at = null; this.#drawCard(made); this.#text(made); });
      return made;
    });
    new ResizeObserver(() => this.draw()).observe(root);
  }

  draw() {
    for (const card of this.cards) { if (card.at === null) this.#text(card); this.#drawCard(card); }
  }

  #text(card) {
    const totals = this.model.totals;
    if (!totals) return;
    const [value, small, sub] = this.#words(card.key, totals);
    card.value.textContent = value;
    if (small) { const part = document.createElement("small"); part.textContent = ` ${small}`; card.value.append(part); }
    card.sub.textContent = sub;
    card.sub.title = sub;
    card.card.toggleAttribute("data-alarm", card.key === "nodes" && totals.states["not-ready"] > 0);
    card.card.toggleAttribute("data-unknown", card.key === "cost" && totals.cost === null);
  }

  #words(key, t) {
    if (key === "nodes") {
      const odd = Object.entries(t.states).filter(([state, n]) => n && state !== "ready").map(([state, n]) => `${count(n)} ${state.replace("-", " ")}`);
      return [count(t.nodes), "", odd.join(" · ") || (t.nodes ? "all ready" : "none yet")];
    }
    if (key === "running") {
      const odd = ["starting", "ending", "failing", "lost"].filter((state) => t.pods[state]).map((state) => `${count(t.pods[state])} ${state}`);
      return [count(t.pods.running), "", odd.join(" · ")];
    }
    if (key === "pending") {
      const oldest = this.model.pending[0];
      return [count(t.pending), "", oldest && t.pending ? `oldest ${span(this.model.now - oldest.since)}` : "nothing waits"];
    }
    if (key === "cost") {
      const missing = t.unpriced ? `${count(t.unpriced)} ${t.unpriced === 1 ? "node" : "nodes"} without a price` : "";
      return [t.cost === null ? "no price" : money(t.cost), t.cost === null ? "" : "/h", missing || (t.cost === null ? "" : `${money(t.cost * 730)} a month`)];
    }
    if (key === "cpu") return [share(t.cpuUsed, t.cpu), "", `${cores(t.cpuUsed)} of ${cores(t.cpu)} cores`];
    return [share(t.memoryUsed, t.memory), "", `${bytes(t.memoryUsed)} of ${bytes(t.memory)}`];
  }

  #drawCard(card) {
    const canvas = card.canvas, scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); }
    const ctx = canvas.getContext("2d");
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, height);
    const points = this.model.history;
    if (points.length < 2 || card.card.hasAttribute("data-unknown")) return;
    const from = points[0][0], until = points.at(-1)[0];
    let top = card.top ?? 0;
    if (!card.top) for (const point of points) top = Math.max(top, point[card.series]);
    top = top * 1.12 || 1;
    // The last value gets a few pixels of its own, or one that has just changed could not be seen.
    const x = (point) => (until > from ? ((point[0] - from) / (until - from)) * (width - 4) : width - 4);
    const y = (point) => height - 1.5 - (Math.min(point[card.series], top) / top) * (height - 6);
    const style = getComputedStyle(card.card);
    const color = style.getPropertyValue(card.key === "pending" ? "--warn" : "--accent").trim();
    ctx.beginPath();
    ctx.moveTo(0, y(points[0]));
    // Values hold until they change: steps, not slopes.
    let last = points[0];
    for (const point of points) { ctx.lineTo(x(point), y(last)); ctx.lineTo(x(point), y(point)); last = point; }
    ctx.lineTo(width, y(last));
    ctx.strokeStyle = color; ctx.lineWidth = 1.5; ctx.stroke();
    ctx.lineTo(width, height); ctx.lineTo(0, height); ctx.closePath();
    ctx.globalAlpha = 0.13; ctx.fillStyle = color; ctx.fill(); ctx.globalAlpha = 1;
    canvas.setAttribute("aria-label", `${card.title} over the last ${span(until - from)}: from ${card.text(points[0][card.series])} to ${card.text(last[card.series])}`);
    if (card.at !== null) this.#drawReading(card, ctx, points, x, height, style);
  }

  #drawReading(card, ctx, points, x, height, style) {
    let found = points[0];
    for (const point of points) { if (x(point) > card.at) break; found = point; }
    ctx.strokeStyle = style.getPropertyValue("--muted").trim();
    ctx.lineWidth = 1;
    ctx.beginPath(); ctx.moveTo(card.at, 0); ctx.lineTo(card.at, height); ctx.stroke();
    card.value.textContent = card.text(found[card.series]);
    card.sub.textContent = `at ${clockTime(found[0])}, ${span(this.model.now - found[0])} ago`;
  }
}
