// The node wall: a tile per node, as wide as its CPU, filled by what pods ask for, coloured by workload.

const COLOURED = 7;
const TYPES_LISTED = 8;
const PLAY_S = 24;

class WallView {
  constructor(span, journal) {
    this.span = span;
    this.journal = journal;
    this.run = 0;
    this.atS = span.durationS / 2;
    this.only = null;
    this.hovered = -1;
    this.pinned = -1;
    this.canvas = $("#wall-canvas");
    this.overlay = $("#wall-overlay");
    this.playing = false;
    this.redraw = oncePerFrame(() => this.draw());
    this.listen();
  }

  async choose(run) {
    this.run = run;
    $("#wall-run").value = String(run);
    this.data = await block(`wall-${run}`);
    this.hovered = this.pinned = -1;
    this.only = null;
    this.buildLegend();
    this.arrange();
  }

  async show(run, atS) {
    if (run !== this.run) await this.choose(run);
    this.seek(atS);
  }

  get ticks() {
    return this.atS / this.data.tick_s;
  }

  listen() {
    const slider = $("#wall-time");
    slider.max = String(this.span.durationS);
    slider.step = String(Math.max(1, Math.round(this.span.durationS / 1440)));
    slider.addEventListener("input", () => {
      this.stop();
      this.seek(Number(slider.value));
    });
    $("#wall-run").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    $("#wall-group").addEventListener("change", () => this.arrange());
    $("#wall-fill").addEventListener("change", this.redraw);
    $("#wall-patterns").addEventListener("change", () => {
      this.buildLegend();
      this.redraw();
    });
    $("#wall-play").addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.span.pickListeners.push((atS) => {
      this.stop();
      this.seek(atS);
    });
    themeListeners.push(() => {
      if (this.data) {
        this.colours = null;
        this.buildLegend();
        this.redraw();
      }
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.nodeAt(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event.offsetX, event.offsetY);
      this.pinned = node === this.pinned ? -1 : node;
      this.describe();
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(
      oncePerFrame(() => {
        if (this.data && !this.printing && this.canvas.parentElement.clientWidth !== this.width) this.arrange();
      }),
    ).observe(this.canvas.parentElement);
    addEventListener("resize", () => {
      if (this.data && !this.printing && this.ratio !== Math.max(devicePixelRatio || 1, 1)) this.arrange();
    });
    // Paper is light. A canvas that is shown already comes out empty when it is drawn anew for paper: a copy does not.
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  print(begins) {
    this.printing = begins;
    if (!this.data) return;
    this.stop();
    document.documentElement.classList.toggle("on-paper", begins);
    this.colours = null;
    this.buildLegend();
    this.draw();
    $("#wall-printed")?.remove();
    if (!begins || !this.slotOf) return;
    const copy = make("canvas", { id: "wall-printed", width: this.canvas.width, height: this.canvas.height });
    copy.getContext("2d").drawImage(this.canvas, 0, 0);
    this.canvas.parentElement.append(copy);
  }

  seek(atS) {
    this.atS = clamp(atS, 0, this.span.durationS);
    this.redraw();
  }

  play() {
    if (this.atS >= this.span.durationS) this.atS = 0;
    this.playing = true;
    $("#wall-play").textContent = "❚❚ Pause";
    $("#wall-play").setAttribute("aria-pressed", "true");
    let before = null;
    const step = (now) => {
      if (!this.playing) return;
      // Whoever wants less motion gets a still picture for each 24th of the run.
      const leastMs = reducedMotion.matches ? 1000 : 0;
      if (before === null) before = now;
      if (now - before >= leastMs && now > before) {
        this.atS += ((now - before) / 1000 / PLAY_S) * this.span.durationS;
        before = now;
        if (this.atS >= this.span.durationS) {
          this.atS = this.span.durationS;
          this.stop();
        }
        this.draw();
      }
      if (this.playing) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  stop() {
    this.playing = false;
    $("#wall-play").textContent = "▶ Play";
    $("#wall-play").setAttribute("aria-pressed", "false");
  }

  arrange() {
    const stage = this.canvas.parentElement;
    const empty = this.data.node_names.length === 0;
    stage.classList.toggle("nothing", empty);
    $("#wall").classList.toggle("no-nodes", empty);
    this.width = stage.clientWidth;
    if (empty) {
      $("#wall-status").textContent = "There was no node in this run.";
      $("#wall-panel").replaceChildren();
      return;
    }
    const { slotOf, sections } = placeNodes(this.data, $("#wall-group").value);
    this.slotOf = slotOf;
    this.sections = sections;
    const room = clamp(innerHeight * 0.62, 320, 620);
    this.ratio = Math.max(devicePixelRatio || 1, 1);
    this.height = Math.ceil(layOut(sections, this.width, room));
    for (const canvas of [this.canvas, this.overlay]) {
      const ratio = this.ratio;
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.width = this.width + "px";
      canvas.style.height = this.height + "px";
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.draw();
  }

  // Colours come from the style sheet, so that light, dark and print agree with the rest of the page.
  palette() {
    if (this.colours) return this.colours;
    const probe = make("span", {});
    document.body.append(probe);
    const colour = (name) => {
      probe.className = name;
      return getComputedStyle(probe).color;
    };
    this.colours = {
      workloads: Array.from({ length: COLOURED + 1 }, (_, i) => colour(`w${i}`)),
      ink: colour("ink"),
      muted: colour("muted"),
      empty: colour("tile-empty"),
      edge: colour("tile-edge"),
      paper: colour("paper"),
      accent: colour("accent"),
    };
    probe.remove();
    this.colours.patterns = this.colours.workloads.map((one, i) => patternOf(i, one, this.colours.paper));
    this.colours.booting = patternOf(1, this.colours.empty, this.colours.muted);
    return this.colours;
  }

  // What is asked for on each node at this moment, by colour; and how many pods run and wait.
  reckon() {
    const { columns } = this.data;
    const at = this.ticks;
    const nodes = this.data.node_names.length;
    const amounts = columns[`pod_${$("#wall-fill").value}`];
    const asked = new Float64Array(nodes * (COLOURED + 1));
    const counts = new Int32Array(nodes * (COLOURED + 1));
    let running = 0;
    let waiting = 0;
    const {
      pod_created: created,
      pod_bound: bound,
      pod_ended: ended,
      pod_node: node,
      pod_workload: workload,
    } = columns;
    for (let i = 0; i < created.length; i++) {
      if (created[i] > at || (ended[i] >= 0 && ended[i] <= at)) continue;
      if (bound[i] < 0 || bound[i] > at) {
        waiting += 1;
        continue;
      }
      running += 1;
      if (node[i] < 0) continue;
      const place = node[i] * (COLOURED + 1) + Math.min(workload[i], COLOURED);
      asked[place] += amounts[i];
      counts[place] += 1;
    }
    return { asked, counts, running, waiting, ...this.nodesHere(asked) };
  }

  // The nodes of this moment, and what they add up to.
  nodesHere(asked) {
    const { columns } = this.data;
    const room = columns[`node_${$("#wall-fill").value}`];
    const section = columns[$("#wall-group").value];
    const found = { present: [], booting: [], price: 0, share: 0, types: new Map(), inSection: new Map() };
    const count = (map, key) => map.set(key, (map.get(key) || 0) + 1);
    let roomInAll = 0;
    for (let i = 0; i < this.slotOf.length; i++) {
      if (!this.here(i)) continue;
      found.present.push(i);
      if (!this.ready(i)) found.booting.push(i);
      found.price += columns.node_price[i];
      roomInAll += room[i];
      count(found.types, columns.node_type[i]);
      count(found.inSection, section[i]);
    }
    if (roomInAll) found.share = asked.reduce((a, b) => a + b, 0) / roomInAll;
    return found;
  }

  here(i) {
    const { node_created: created, node_removed: removed } = this.data.columns;
    return created[i] <= this.ticks && (removed[i] < 0 || removed[i] > this.ticks);
  }

  ready(i) {
    const ready = this.data.columns.node_ready[i];
    return ready >= 0 && ready <= this.ticks;
  }

  draw() {
    if (!this.slotOf || !this.data.node_names.length) {
      this.tellTime(0, 0, 0, 0, 0);
      return;
    }
    const colours = this.palette();
    const pen = this.canvas.getContext("2d");
    const moment = this.reckon();
    pen.clearRect(0, 0, this.width, this.height);
    this.drawPlaces(pen, colours);
    this.drawTiles(pen, colours, moment);
    this.drawHeads(pen, colours, moment.inSection);
    this.tellTime(moment.present.length, moment.booting.length, moment.price, moment.running, moment.waiting);
    this.moment = moment;
    this.describe();
  }

  // Colour by colour: changing the colour costs more than drawing a tile.
  drawTiles(pen, colours, { present, booting, asked, counts }) {
    const room = this.data.columns[`node_${$("#wall-fill").value}`];
    const fills = $("#wall-patterns").checked ? colours.patterns : colours.workloads;
    const isBooting = new Set(booting);
    const ready = present.filter((i) => !isBooting.has(i));
    const fillAll = (nodes, fill) => {
      pen.fillStyle = fill;
      for (const i of nodes) {
        const { x, y, w, h } = this.slotOf[i];
        pen.fillRect(x, y, w, h);
      }
    };
    fillAll(booting, colours.booting);
    fillAll(ready, colours.empty);
    const lefts = Float64Array.from(ready, (i) => this.slotOf[i].x);
    const separators = [];
    for (let k = 0; k <= COLOURED; k++) {
      pen.fillStyle = fills[k];
      pen.globalAlpha = this.only === null || this.only === k ? 1 : 0.15;
      ready.forEach((i, place) => {
        const part = asked[i * (COLOURED + 1) + k];
        if (!part) return;
        const { x, y, w, h } = this.slotOf[i];
        const wide = Math.min(x + w - lefts[place], (part / room[i]) * w);
        pen.fillRect(lefts[place], y, wide, h);
        addSeparators(separators, lefts[place], y, wide, h, counts[i * (COLOURED + 1) + k]);
        lefts[place] += wide;
      });
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colours.paper;
    for (const [x, y, h] of separators) pen.fillRect(x, y, 0.8, h);
    this.drawSpot(pen, colours, ready);
  }

  // Spot nodes have a corner cut off.
  drawSpot(pen, colours, nodes) {
    const { columns, strings } = this.data;
    const spot = strings.indexOf("spot");
    pen.fillStyle = colours.ink;
    pen.beginPath();
    for (const i of nodes) {
      const { x, y, w, h } = this.slotOf[i];
      if (columns.node_capacity[i] !== spot || h < 7) continue;
      const cut = Math.min(6, h * 0.4);
      pen.moveTo(x + w - cut, y);
      pen.lineTo(x + w, y);
      pen.lineTo(x + w, y + cut);
      pen.closePath();
    }
    pen.fill();
  }

  // Places that are empty now are outlined: somebody was or will be there.
  drawPlaces(pen, colours) {
    pen.strokeStyle = colours.edge;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const section of this.sections) {
      for (const { x, y, w, h } of section.slots) {
        if (w > 2 && h > 4) pen.rect(x + 0.5, y + 0.5, w - 1, h - 1);
      }
    }
    pen.stroke();
  }

  drawHeads(pen, colours, inSection) {
    const byName = new Map([...inSection].map(([place, count]) => [this.data.strings[place], count]));
    pen.textBaseline = "alphabetic";
    for (const section of this.sections) {
      const count = byName.get(section.name) || 0;
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillStyle = colours.ink;
      const name = section.name || "none named";
      pen.fillText(name, EDGE, section.y + 13);
      const after = EDGE + pen.measureText(name).width + 8;
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = colours.muted;
      pen.fillText(count === 1 ? "1 node" : `${countText(count)} nodes`, after, section.y + 13);
    }
  }

  tellTime(nodes, booting, price, running, waiting) {
    const slider = $("#wall-time");
    slider.value = String(this.atS);
    const clock = clockText(this.span.startS, this.atS);
    slider.setAttribute("aria-valuetext", clock);
    $("#wall-clock").textContent = clock;
    if (this.data.node_names.length) {
      $("#wall-status").textContent = [
        `${clock}: ${countText(nodes)} node${nodes === 1 ? "" : "s"}${booting ? ` (${booting} booting)` : ""}`,
        `${usdText(price)}/h`,
        `${countText(running)} pods running`,
        `${countText(waiting)} pending`,
      ].join(" · ");
    }
    this.span.markS = this.atS;
    for (const listener of this.span.cursorListeners) listener();
  }

  nodeAt(x, y) {
    for (let i = 0; i < this.slotOf.length; i++) {
      const slot = this.slotOf[i];
      if (x >= slot.x && x <= slot.x + slot.w + GAP && y >= slot.y && y <= slot.y + slot.h + GAP && this.here(i))
        return i;
    }
    return -1;
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.describe();
  }

  key(event) {
    if (!this.slotOf) return;
    const present = [];
    for (let i = 0; i < this.slotOf.length; i++) if (this.here(i)) present.push(i);
    const place = (i) => this.slotOf[i].y * 1e5 + this.slotOf[i].x;
    present.sort((a, b) => place(a) - place(b));
    const now = present.indexOf(this.pinned);
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const step = event.key === "ArrowRight" ? 1 : -1;
      this.pinned = present[clamp(now < 0 ? 0 : now + step, 0, present.length - 1)] ?? -1;
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.pinned = now < 0 ? (present[0] ?? -1) : this.nearest(present, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      this.pinned = -1;
    } else if (event.key === "Enter" && this.pinned >= 0) {
      this.journal.look(this.run, this.data.node_names[this.pinned]);
    } else return;
    event.preventDefault();
    this.describe();
    if (this.pinned >= 0) announce($("#wall-panel").innerText);
  }

  // The node of the next row that is nearest to the chosen one.
  nearest(present, direction) {
    const from = this.slotOf[this.pinned];
    let best = this.pinned;
    let least = Infinity;
    for (const i of present) {
      const slot = this.slotOf[i];
      const down = (slot.y - from.y) * direction;
      if (down <= 0) continue;
      const far = down * 1e4 + Math.abs(slot.x + slot.w / 2 - from.x - from.w / 2);
      if (far < least) {
        least = far;
        best = i;
      }
    }
    return best;
  }

  // Outlines the chosen node and tells about it.
  describe() {
    const pen = this.overlay.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    const node = this.hovered >= 0 ? this.hovered : this.pinned;
    for (const one of new Set([this.pinned, this.hovered])) {
      if (one < 0 || !this.slotOf) continue;
      const { x, y, w, h } = this.slotOf[one];
      pen.lineWidth = 2;
      pen.strokeStyle = this.palette().ink;
      pen.setLineDash(this.here(one) ? [] : [3, 2]);
      pen.strokeRect(x - 1, y - 1, w + 2, h + 2);
    }
    const panel = $("#wall-panel");
    if (node < 0) {
      panel.replaceChildren(
        ...(this.moment ? this.overview() : []),
        make(
          "p",
          { class: "note" },
          "Point at a tile to see its node; a click keeps it. A tile is as wide as the node's CPU; the coloured part is " +
            "what pods ask for. Hatched: booting. Corner cut: spot. Outlined: somebody was or will be there.",
        ),
      );
      return;
    }
    const [name, facts, ...pods] = describeNode(this.data, node, this.atS, this.span.startS);
    const look = make("button", { type: "button", class: "quiet" }, "All its decisions");
    look.addEventListener("click", () => this.journal.look(this.run, this.data.node_names[node]));
    const latest = make("div", { class: "latest" });
    panel.replaceChildren(name, facts, latest, ...pods, look);
    this.journal.latest(this.run, this.data.node_names[node], this.atS).then((entries) => {
      if (entries.length) latest.replaceChildren(make("h4", {}, "Last decisions"), ...entries);
    });
  }

  // What there is at this moment, while no node is chosen.
  overview() {
    const { present, price, running, waiting, types, share } = this.moment;
    const filled = $("#wall-fill").value === "cpu" ? "CPU" : "Memory";
    const listed = [...types].sort(([, a], [, b]) => b - a);
    const rest = listed.slice(TYPES_LISTED).reduce((sum, [, count]) => sum + count, 0);
    const lines = [
      ["Nodes", countText(present.length)],
      ["Price", `${usdText(price)}/h`],
      [filled, `${percentText(share)} requested`],
      ["Pods", `${countText(running)} running, ${countText(waiting)} pending`],
    ];
    const kinds = listed
      .slice(0, TYPES_LISTED)
      .map(([type, count]) => [this.data.strings[type] || "no type", countText(count)]);
    if (rest) kinds.push(["others", countText(rest)]);
    const list = (rows, name) =>
      make(
        "dl",
        { class: name },
        ...rows.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value))),
      );
    return [
      make("h3", {}, clockText(this.span.startS, this.atS)),
      list(lines, ""),
      make("h4", {}, "Nodes by type"),
      list(kinds, "counts"),
    ];
  }

  buildLegend() {
    const names = this.data.workloads;
    const { workloads, patterns } = this.palette();
    const shown = names.slice(0, COLOURED).map((name, i) => [i, name]);
    if (names.length === COLOURED + 1) shown.push([COLOURED, names[COLOURED]]);
    else if (names.length > COLOURED) shown.push([COLOURED, `${names.length - COLOURED} other workloads`]);
    $("#wall-legend").replaceChildren(
      ...shown.map(([i, name]) => {
        const chip = make("canvas", { width: 28, height: 28, class: "chip", "aria-hidden": "true" });
        const pen = chip.getContext("2d");
        pen.fillStyle = $("#wall-patterns").checked ? patterns[i] : workloads[i];
        pen.fillRect(0, 0, 28, 28);
        const button = make(
          "button",
          { type: "button", class: "key", "aria-pressed": String(this.only === i) },
          chip,
          make("span", {}, name),
        );
        button.addEventListener("click", () => {
          this.only = this.only === i ? null : i;
          for (const other of $$("#wall-legend button"))
            other.setAttribute("aria-pressed", String(other === button && this.only === i));
          this.redraw();
        });
        return button;
      }),
    );
  }
}
