// Charts over time: one time axis and one cursor for all of them.

const CHARTS = [
  { name: "nodes", title: "Nodes", text: countText, steps: true },
  { name: "cost_usd_per_hour", title: "Cost per hour", text: usdText, steps: true },
  { name: "pods_pending", title: "Pods pending", text: countText, steps: true },
  { name: "pods_running", title: "Pods running", text: countText, steps: true },
  { name: "cpu_allocated_share", title: "CPU allocated", text: percentText, share: true },
  { name: "memory_allocated_share", title: "Memory allocated", text: percentText, share: true },
  { name: "cpu_used_share", title: "CPU used", text: percentText, share: true },
  { name: "memory_used_share", title: "Memory used", text: percentText, share: true },
];
const MARGIN = { left: 46, right: 10, top: 10, bottom: 22 };
const HEIGHT = 172;
const DRAG_LEAST_PX = 6;
const PRINT_WIDTH = 400;

// What is looked at: the time span, the cursor, and which runs are shown.
class Span {
  constructor(startS, durationS) {
    this.startS = startS;
    this.durationS = Math.max(durationS, 1);
    this.fromS = 0;
    this.toS = this.durationS;
    this.cursorS = null;
    this.markS = null;
    this.spanListeners = [];
    this.cursorListeners = [];
    this.pickListeners = [];
  }

  get whole() {
    return this.fromS === 0 && this.toS === this.durationS;
  }

  set(fromS, toS) {
    const least = Math.min(this.durationS, 60);
    let span = clamp(toS - fromS, least, this.durationS);
    const from = clamp(fromS, 0, this.durationS - span);
    if (span > this.durationS * 0.999) span = this.durationS;
    this.fromS = span === this.durationS ? 0 : from;
    this.toS = this.fromS + span;
    for (const listener of this.spanListeners) listener();
  }

  reset() {
    this.set(0, this.durationS);
  }

  zoom(factor, aroundS = null) {
    const middle = aroundS ?? (this.fromS + this.toS) / 2;
    this.set(middle - (middle - this.fromS) / factor, middle + (this.toS - middle) / factor);
  }

  move(byS) {
    this.set(this.fromS + byS, this.toS + byS);
  }

  point(atS) {
    this.cursorS = atS === null ? null : clamp(atS, this.fromS, this.toS);
    for (const listener of this.cursorListeners) listener();
  }

  pick(atS) {
    for (const listener of this.pickListeners) listener(clamp(atS, 0, this.durationS));
  }
}

class Chart {
  constructor(kind, runs, span, shown) {
    this.kind = kind;
    this.runs = runs;
    this.span = span;
    this.shown = shown;
    this.svg = draw("svg", { height: HEIGHT, "aria-hidden": "true" });
    this.readout = make("div", { class: "readout" });
    this.plot = make(
      "div",
      {
        class: "plot",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "chart",
        "aria-label": `${kind.title} over time. Arrow keys move the cursor, plus and minus zoom, zero shows the whole run.`,
      },
      this.svg,
    );
    this.element = make(
      "figure",
      { class: "chart" },
      make("figcaption", {}, make("h3", {}, kind.title), this.readout),
      this.plot,
    );
    this.outputs = runs.map((run, i) => {
      const value = make("span", { class: "num" });
      this.readout.append(make("span", { class: `reading p${i % STYLES}`, title: run.label }, swatchOf(i), value));
      return value;
    });
    this.listen();
  }

  get width() {
    return Math.max(10, this.box - MARGIN.left - MARGIN.right);
  }

  x(atS) {
    return MARGIN.left + ((atS - this.span.fromS) / (this.span.toS - this.span.fromS)) * this.width;
  }

  at(x) {
    const share = clamp((x - MARGIN.left) / this.width, 0, 1);
    return this.span.fromS + share * (this.span.toS - this.span.fromS);
  }

  // The highest value within the span, so that a zoom uses the whole height.
  highest() {
    let most = 0;
    this.runs.forEach((run, i) => {
      const values = run.columns[this.kind.name];
      if (!values || !this.shown[i]) return;
      const last = Math.min(values.length - 1, sampleAt(run.times, this.span.toS));
      for (let k = Math.max(0, sampleAt(run.times, this.span.fromS)); k <= last; k++) {
        if (values[k] > most) most = values[k];
      }
    });
    return most;
  }

  render(box = 0) {
    this.box = box || this.plot.clientWidth || 320;
    const { fromS, toS, startS } = this.span;
    const height = HEIGHT - MARGIN.top - MARGIN.bottom;
    this.svg.setAttribute("viewBox", `0 0 ${this.box} ${HEIGHT}`);
    const ticks = this.kind.share && this.highest() <= 1 ? shareTicks(this.highest()) : valueTicks(this.highest(), 5);
    // A little more than the highest tick, so that a line along it keeps its full width.
    const top = ticks[ticks.length - 1] * 1.015;
    this.top = top;
    const grid = draw("g", { class: "grid" });
    for (const tick of ticks) {
      const y = MARGIN.top + height - (tick / top) * height;
      grid.append(
        draw("line", { x1: MARGIN.left, x2: this.box - MARGIN.right, y1: y, y2: y }),
        draw("text", { x: MARGIN.left - 7, y: y + 3.5, "text-anchor": "end" }, this.axisText(tick)),
      );
    }
    for (const tick of timeTicks(startS, fromS, toS, Math.max(2, Math.floor(this.width / 62)))) {
      const x = this.x(tick.at);
      grid.append(
        draw("line", { class: "tick", x1: x, x2: x, y1: HEIGHT - MARGIN.bottom, y2: HEIGHT - MARGIN.bottom + 4 }),
      );
      // At either end of the axis a name has no room on both sides of its tick.
      const anchor = x < MARGIN.left + 8 ? "start" : x > this.box - MARGIN.right - 12 ? "end" : "middle";
      const at = anchor === "start" ? MARGIN.left - 4 : anchor === "end" ? this.box - 2 : x;
      grid.append(draw("text", { x: at, y: HEIGHT - 5, "text-anchor": anchor }, tick.text));
    }
    this.marks = draw("g", { class: "marks" });
    this.drawMarks(height);
    const lines = draw("svg", { x: MARGIN.left, y: MARGIN.top, width: this.width, height, class: "lines" });
    this.runs.forEach((run, i) => {
      const values = run.columns[this.kind.name];
      if (!values || !this.shown[i]) return;
      const d = linePath(run.times, values, fromS, toS, this.width, height, top, this.kind.steps);
      lines.append(draw("path", { class: `line p${i % STYLES}`, d }));
    });
    this.brush = draw("rect", { class: "brush", y: MARGIN.top, height, width: 0 });
    this.cursor = draw("line", { class: "cursor", y1: MARGIN.top, y2: MARGIN.top + height, x1: -9, x2: -9 });
    this.wallMark = draw("line", { class: "wall-mark", y1: MARGIN.top, y2: MARGIN.top + height, x1: -9, x2: -9 });
    this.dots = this.runs.map((_, i) => draw("circle", { class: `dot p${i % STYLES}`, r: 3.2, cx: -9, cy: -9 }));
    this.svg.replaceChildren(grid, this.marks, lines, this.brush, this.wallMark, this.cursor, ...this.dots);
    this.point();
  }

  axisText(value) {
    if (this.kind.share) return Math.round(value * 100) + NBSP + "%";
    const money = this.kind.text === usdText ? "$" : "";
    if (value >= 10000) return money + (value / 1000).toLocaleString("en-US") + "k";
    return money + value.toLocaleString("en-US", { maximumFractionDigits: 3 });
  }

  // Faults: a line with a triangle at the top, so that it is not mistaken for the cursor.
  drawMarks(height) {
    const seen = new Set();
    for (const run of this.runs) {
      for (const [at, text] of run.marks) {
        const key = `${at} ${text}`;
        if (at < this.span.fromS || at > this.span.toS || seen.has(key)) continue;
        seen.add(key);
        const x = this.x(at);
        this.marks.append(
          draw(
            "g",
            {},
            draw("title", {}, `${clockText(this.span.startS, at)}: ${text}`),
            draw("line", { x1: x, x2: x, y1: MARGIN.top, y2: MARGIN.top + height }),
            draw("path", { d: `M${x - 4.5} ${MARGIN.top - 7}h9l-4.5 7z` }),
          ),
        );
      }
    }
  }

  // What a run had at the cursor; not a number where that is not known.
  value(i) {
    const { times, columns } = this.runs[i];
    const place = this.span.cursorS === null ? -1 : sampleAt(times, this.span.cursorS);
    const values = columns[this.kind.name];
    return values && place >= 0 && this.shown[i] ? values[place] : NaN;
  }

  // Moves the cursor and says the values there; draws nothing anew.
  point() {
    const { cursorS, markS, fromS, toS } = this.span;
    const height = HEIGHT - MARGIN.top - MARGIN.bottom;
    const x = cursorS === null ? -9 : this.x(cursorS);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const markX = markS === null || markS < fromS || markS > toS ? -9 : this.x(markS);
    this.wallMark.setAttribute("x1", markX);
    this.wallMark.setAttribute("x2", markX);
    this.runs.forEach((_, i) => {
      const value = this.value(i);
      const known = Number.isFinite(value);
      this.dots[i].setAttribute("cx", known ? x : -9);
      this.dots[i].setAttribute("cy", known ? MARGIN.top + height - (value / this.top) * height : -9);
      this.outputs[i].textContent = known ? this.kind.text(value) : "";
      this.outputs[i].parentElement.hidden = !known;
    });
  }

  listen() {
    let downX = null;
    const place = (event) => event.clientX - this.plot.getBoundingClientRect().left;
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      downX = place(event);
      this.plot.setPointerCapture(event.pointerId);
    });
    this.plot.addEventListener("pointermove", (event) => {
      const x = place(event);
      this.span.point(this.at(x));
      if (downX === null) return;
      const [low, high] = [this.x(this.at(Math.min(downX, x))), this.x(this.at(Math.max(downX, x)))];
      this.brush.setAttribute("x", low);
      this.brush.setAttribute("width", high - low);
    });
    this.plot.addEventListener("pointerup", (event) => {
      const x = place(event);
      const from = downX;
      downX = null;
      this.brush.setAttribute("width", 0);
      if (from === null) return;
      if (Math.abs(x - from) >= DRAG_LEAST_PX) this.span.set(this.at(Math.min(from, x)), this.at(Math.max(from, x)));
      else this.span.pick(this.at(x));
    });
    this.plot.addEventListener("pointercancel", () => {
      downX = null;
      this.brush.setAttribute("width", 0);
    });
    this.plot.addEventListener("pointerleave", () => {
      if (downX === null) this.span.point(null);
    });
    this.plot.addEventListener("dblclick", () => this.span.reset());
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.span.point(null));
  }

  key(event) {
    const { span } = this;
    const step = (span.toS - span.fromS) / 60;
    const cursor = span.cursorS ?? (span.fromS + span.toS) / 2;
    const sign = event.key === "ArrowLeft" ? -1 : 1;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (event.shiftKey) span.move(sign * step * 6);
      span.point(cursor + sign * step * (event.shiftKey ? 6 : 1));
      announce(this.spoken());
    } else if (event.key === "+" || event.key === "=") span.zoom(2, cursor);
    else if (event.key === "-") span.zoom(0.5, cursor);
    else if (event.key === "0" || event.key === "Escape") span.reset();
    else if (event.key === "Enter") span.pick(cursor);
    else return;
    event.preventDefault();
  }

  spoken() {
    const values = this.runs.map((run, i) => [run.label, this.value(i)]).filter(([, value]) => Number.isFinite(value));
    const told = values.map(([label, value]) => `${label} ${this.kind.text(value)}`).join(", ");
    return `${clockText(this.span.startS, this.span.cursorS)}, ${this.kind.title}: ${told}`;
  }
}

function shareTicks(highest) {
  if (highest > 0.25) return [0, 0.25, 0.5, 0.75, 1];
  return valueTicks(highest, 4);
}

function swatchOf(i) {
  return draw(
    "svg",
    { class: `swatch p${i % STYLES}`, width: 22, height: 10, "aria-hidden": "true" },
    draw("line", { x1: 1, y1: 5, x2: 21, y2: 5 }),
  );
}

async function startCharts(labels) {
  const blocks = await Promise.all(labels.map((_, i) => block(`series-${i}`)));
  const runs = blocks.map((one, i) => ({
    label: labels[i],
    columns: one.columns,
    marks: one.marks,
    times: Float64Array.from(one.columns.times, (tick) => tick * one.tick_s),
  }));
  const span = new Span(blocks[0].start_s, Math.max(...blocks.map((one) => one.duration_s)));
  const shown = labels.map(() => true);
  const home = $("#charts");
  const charts = CHARTS.filter((kind) => runs.some((run) => run.columns[kind.name]?.length)).map(
    (kind) => new Chart(kind, runs, span, shown),
  );
  if (!charts.length) {
    home.replaceChildren(make("p", { class: "empty" }, "No samples were taken in these runs."));
    $("#time .toolbar").hidden = true;
    return span;
  }
  home.replaceChildren(...charts.map((chart) => chart.element));
  const render = (box = 0) => {
    for (const chart of charts) chart.render(box);
    $("#zoom-reset").disabled = span.whole;
    $("#zoom-out").disabled = span.whole;
    tell();
  };
  const tell = () => {
    const { startS, fromS, toS, cursorS } = span;
    $("#moment").textContent =
      cursorS === null
        ? `${clockText(startS, fromS)} to ${clockText(startS, toS)}`
        : `${clockText(startS, cursorS)} (${elapsedText(cursorS)})`;
  };
  span.spanListeners.push(oncePerFrame(() => render()));
  addEventListener("beforeprint", () => render(PRINT_WIDTH));
  addEventListener("afterprint", () => render());
  span.cursorListeners.push(
    oncePerFrame(() => {
      for (const chart of charts) chart.point();
      tell();
    }),
  );
  $("#zoom-in").addEventListener("click", () => span.zoom(2));
  $("#zoom-out").addEventListener("click", () => span.zoom(0.5));
  $("#zoom-reset").addEventListener("click", () => span.reset());
  for (const key of $$("#time .key")) {
    key.addEventListener("click", () => {
      const i = Number(key.dataset.run);
      shown[i] = !shown[i];
      key.setAttribute("aria-pressed", String(shown[i]));
      render();
    });
  }
  let width = 0;
  new ResizeObserver(
    oncePerFrame(() => {
      if (home.clientWidth !== width) {
        width = home.clientWidth;
        render();
      }
    }),
  ).observe(home);
  render();
  return span;
}
