// A sweep: cost against its price as points, a little chart for each setting, a table that sorts.

const SHOWN = [
  ["nodes", "Nodes", countText, true],
  ["cost_usd_per_hour", "Cost per hour", usdText, true],
  ["pods_pending", "Pods pending", countText, true],
  ["pods_running", "Pods running", countText, true],
  ["cpu_allocated_share", "CPU allocated", percentText, false],
  ["memory_allocated_share", "Memory allocated", percentText, false],
  ["cpu_used_share", "CPU used", percentText, false],
  ["memory_used_share", "Memory used", percentText, false],
];
const LITTLE = { width: 240, height: 96 };

function measureText(unit, value) {
  if (value === null || value === undefined) return "–";
  if (unit === "usd") return usdText(value);
  if (unit === "s" && value >= 10) return spanText(value);
  if (unit === "s") return value.toLocaleString("en-US", { maximumFractionDigits: 1 }) + NBSP + "s";
  if (unit === "share") return percentText(value);
  return countText(value);
}

class TradeOff {
  constructor(data) {
    this.data = data;
    this.home = $("#trade-plot");
    this.select = $("#trade-measure");
    this.select.addEventListener("change", () => this.render());
    this.runs = data.runs.map((run, i) => ({ ...run, i })).filter((run) => run.summary.cost_usd !== null);
    new ResizeObserver(
      oncePerFrame(() => {
        if (this.home.clientWidth !== this.width) this.render();
      }),
    ).observe(this.home);
    addEventListener("beforeprint", () => this.render(680));
    addEventListener("afterprint", () => this.render());
  }

  render(width = 0) {
    const name = this.select.value;
    const measure = this.data.measures[name];
    const runs = this.runs.filter((run) => run.summary[name] !== null);
    if (!measure || !runs.length) {
      this.home.replaceChildren(make("p", { class: "empty" }, "There is nothing to hold against each other."));
      return;
    }
    this.width = width || this.home.clientWidth || 600;
    const margin = { left: 74, right: 18, top: 12, bottom: 40 };
    const height = clamp(this.width * 0.42, 230, 380);
    const inner = { w: this.width - margin.left - margin.right, h: height - margin.top - margin.bottom };
    const xTicks = valueTicks(
      Math.max(...runs.map((run) => run.summary.cost_usd)),
      Math.max(2, Math.floor(inner.w / 90)),
    );
    const highest = Math.max(...runs.map((run) => run.summary[name]));
    const yTicks = measure.unit === "s" ? spanTicks(highest, 5) : valueTicks(highest, 5);
    const [right, top] = [xTicks.at(-1), yTicks.at(-1)];
    const x = (run) => margin.left + (run.summary.cost_usd / right) * inner.w;
    const y = (run) => margin.top + inner.h - (run.summary[name] / top) * inner.h;
    const grid = draw("g", { class: "grid" });
    for (const tick of yTicks) {
      const at = margin.top + inner.h - (tick / top) * inner.h;
      grid.append(
        draw("line", { x1: margin.left, x2: this.width - margin.right, y1: at, y2: at }),
        draw("text", { x: margin.left - 8, y: at + 4, "text-anchor": "end" }, measureText(measure.unit, tick)),
      );
    }
    for (const tick of xTicks) {
      const at = margin.left + (tick / right) * inner.w;
      grid.append(
        draw("line", { class: "tick", x1: at, x2: at, y1: margin.top + inner.h, y2: margin.top + inner.h + 4 }),
        draw(
          "text",
          { x: at, y: margin.top + inner.h + 17, "text-anchor": "middle" },
          "$" + tick.toLocaleString("en-US"),
        ),
      );
    }
    grid.append(
      draw("text", { x: margin.left + inner.w / 2, y: height - 6, "text-anchor": "middle" }, "cost of the run"),
    );
    const best = frontier(runs, name, measure.better);
    const line = draw("polyline", { class: "front", points: best.map((run) => `${x(run)},${y(run)}`).join(" ") });
    const points = runs.map((run) => {
      const said = `${run.label}: ${usdText(run.summary.cost_usd)}, ${measure.title} ${measureText(measure.unit, run.summary[name])}`;
      const point = draw(
        "g",
        {
          class: `point p${run.policy % STYLES}${best.includes(run) ? " best-point" : ""}`,
          tabindex: "0",
          role: "img",
          "aria-label": said,
        },
        draw("title", {}, said),
        markOf(run.policy, x(run), y(run)),
      );
      const tell = () => {
        $("#trade-status").textContent = said;
        choose(run.i);
      };
      point.addEventListener("pointerenter", tell);
      point.addEventListener("focus", tell);
      return point;
    });
    this.home.replaceChildren(draw("svg", { viewBox: `0 0 ${this.width} ${height}`, height }, grid, line, ...points));
    $("#trade-status").textContent = "Point at a run to see its settings.";
  }
}

// Policies differ in shape as well as in colour.
function markOf(policy, x, y) {
  const shapes = [
    () => draw("circle", { cx: x, cy: y, r: 5 }),
    () => draw("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9 }),
    () => draw("path", { d: `M${x} ${y - 6}l5.5 10h-11z` }),
    () => draw("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z` }),
  ];
  return shapes[policy % shapes.length]();
}

// The runs that no other beats in both.
function frontier(runs, name, better) {
  const sign = better === "higher" ? -1 : 1;
  const order = [...runs].sort(
    (a, b) => a.summary.cost_usd - b.summary.cost_usd || sign * (a.summary[name] - b.summary[name]),
  );
  const front = [];
  let least = Infinity;
  for (const run of order) {
    if (sign * run.summary[name] < least) {
      front.push(run);
      least = sign * run.summary[name];
    }
  }
  return front;
}

function choose(run) {
  for (const row of $$("table.runs tbody tr")) row.classList.toggle("chosen", Number(row.dataset.run) === run);
}

class Multiples {
  constructor(data) {
    this.data = data;
    this.select = $("#multiples-series");
    const has = (name) => data.runs.some((_, i) => data.columns[`${i}/${name}`]?.length);
    this.kinds = SHOWN.filter(([name]) => has(name));
    this.select.replaceChildren(...this.kinds.map(([name, title]) => make("option", { value: name }, title)));
    this.select.addEventListener("change", () => this.render());
    this.home = $("#cells");
  }

  render() {
    const kind = this.kinds.find(([name]) => name === this.select.value);
    if (!kind) {
      this.home.replaceChildren(make("p", { class: "empty" }, "No samples were taken in these runs."));
      return;
    }
    const [name, , textOf, steps] = kind;
    const { runs, columns, cells, names } = this.data;
    let most = 0;
    runs.forEach((_, i) => {
      for (const value of columns[`${i}/${name}`] || []) if (value > most) most = value;
    });
    const ticks = valueTicks(most, 3);
    const top = ticks.at(-1) * 1.02;
    this.cursors = [];
    const places = new Map(cells.map((place, c) => [c, place]));
    // Two settings make a table: one across, the other down.
    const across = names.length === 2 ? [...new Set(cells.map((place) => place[1]))] : null;
    this.home.classList.toggle("matrix", Boolean(across) && across.length <= 6);
    if (across && across.length <= 6) this.home.style.setProperty("--across", across.length);
    this.home.replaceChildren(...[...places].map(([c, place]) => this.cell(c, place, name, textOf, steps, ticks, top)));
  }

  cell(c, place, name, textOf, steps, ticks, top) {
    const { runs, columns, names, duration_s: duration } = this.data;
    const { width, height } = LITTLE;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", preserveAspectRatio: "none" });
    for (const tick of ticks) {
      const at = height - (tick / top) * height;
      svg.append(draw("line", { class: "rule", x1: 0, x2: width, y1: at, y2: at }));
    }
    const mine = runs.map((run, i) => ({ ...run, i })).filter((run) => run.cell === c);
    for (const run of mine) {
      const values = columns[`${run.i}/${name}`];
      if (!values) continue;
      svg.append(
        draw("path", {
          class: `line p${run.policy % STYLES}`,
          d: linePath(columns[`${run.i}/times`], values, 0, duration, width, height, top, steps),
        }),
      );
    }
    const cursor = draw("line", { class: "cursor", x1: -9, x2: -9, y1: 0, y2: height });
    svg.append(cursor);
    const reading = make("div", { class: "reading-line num" });
    this.cursors.push({ cursor, reading, mine });
    const costs = mine.map((run) => measureText("usd", run.summary.cost_usd)).join(" / ");
    const waits = mine.map((run) => measureText("s", run.summary.pending_p99_s)).join(" / ");
    const rest = `${costs} · p99 ${waits}`;
    reading.textContent = rest;
    const plot = make("div", { class: "plot" }, svg, make("span", { class: "top-tick num" }, textOf(ticks.at(-1))));
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      this.point(clamp((event.clientX - box.left) / box.width, 0, 1) * duration, name, textOf);
    });
    plot.addEventListener("pointerleave", () => this.point(null, name, textOf));
    this.cursors.at(-1).rest = rest;
    const title = place.length ? place.map((value, k) => `${names[k]}=${value}`).join(", ") : runs[0].label;
    return make("figure", { class: "little" }, make("figcaption", {}, make("h3", {}, title)), plot, reading);
  }

  point(atS, name, textOf) {
    const { columns, duration_s: duration } = this.data;
    const x = atS === null ? -9 : (atS / duration) * LITTLE.width;
    $("#moment").textContent = atS === null ? "" : elapsedText(atS);
    for (const { cursor, reading, mine, rest } of this.cursors) {
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      if (atS === null) {
        reading.textContent = rest;
        continue;
      }
      reading.textContent = mine
        .map((run) => {
          const values = columns[`${run.i}/${name}`];
          const place = sampleAt(columns[`${run.i}/times`], atS);
          return values && place >= 0 ? textOf(values[place]) : "–";
        })
        .join(" / ");
    }
  }
}

function startSorting() {
  const table = $("table.runs");
  if (!table) return;
  const body = $("tbody", table);
  $$("thead th", table).forEach((head, column) => {
    $("button", head).addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of $$("thead th", table)) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows].sort((a, b) => {
        const [one, other] = [value(a), value(b)];
        if (one === "" || other === "") return (one === "") - (other === "");
        const [n, m] = [Number(one), Number(other)];
        const order = Number.isNaN(n) || Number.isNaN(m) ? one.localeCompare(other, "en", { numeric: true }) : n - m;
        return (down ? -order : order) || a.dataset.run - b.dataset.run;
      });
      body.append(...rows);
    });
  });
}

async function start() {
  startTheme();
  startCopying();
  startSaving();
  startSorting();
  if (!document.getElementById("sweep")) return;
  if (typeof DecompressionStream === "undefined") {
    $("#cells").replaceChildren(
      make(
        "p",
        { class: "empty" },
        "This browser is too old to unpack the data. The table is complete; any browser since 2023 shows the rest.",
      ),
    );
    return;
  }
  const data = await block("sweep");
  new TradeOff(data).render();
  new Multiples(data).render();
  document.documentElement.dataset.ready = "yes";
}

start();
