// The node wall: thousands of tiles on one canvas as large as what can be seen of it.

import { compareNames, count, hue } from "./format.js";
import { Raster } from "./raster.js";
import { BLOCKS_FROM, drawSmallStates, drawSmallTiles, drawTile, readTheme } from "./tile.js";

const HEAD = 25, PAD = 12, SIZE_MIN = 8, SIZE_MAX = 136, FLASH_MS = 900, FLASHES_MAX = 400, TOGETHER_FROM = 250;
const SIZE_OF_MANY_GROUPS = BLOCKS_FROM + 6;

export class Wall {
  constructor(canvas, box, space, model) {
    this.canvas = canvas; this.box = box; this.space = space; this.model = model;
    this.ctx = canvas.getContext("2d", { alpha: false });
    this.groupBy = "group"; this.fill = "cpu"; this.search = "";
    this.lines = []; this.heads = []; this.places = new Map(); this.order = [];
    this.selected = null; this.hovered = null;
    this.flashes = new Map();
    this.dirty = new Set();
    this.raster = new Raster();
    this.isStale = true; this.needsLayout = true; this.frame = 0;
    this.frameTimes = []; // of the last frames drawn, in milliseconds, for those who measure
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.theme = readTheme();
    this.onLayout = () => {};
    new ResizeObserver(() => this.relayout()).observe(box);
    box.addEventListener("scroll", () => this.redraw(), { passive: true });
  }

  retheme() { this.theme = readTheme(); this.redraw(); }
  relayout() { this.needsLayout = true; this.redraw(); }
  redraw() { this.isStale = true; this.#ask(); }

  update(change) {
    if (change.moved || (change.restated && this.groupBy === "state")) this.relayout();
    const now = performance.now();
    const isQuiet = this.still.matches || change.all;
    for (const name of change.names) {
      this.dirty.add(name);
      const node = this.model.nodes.get(name);
      if (!isQuiet && node && node.isStateNew && this.flashes.size < FLASHES_MAX) this.flashes.set(name, now + FLASH_MS);
    }
    if (this.dirty.size) this.#ask();
  }

  select(key) {
    const before = this.selected;
    this.selected = key;
    if (before !== key) this.redraw();
  }

  #ask() { if (!this.frame) this.frame = requestAnimationFrame((at) => this.#draw(at)); }

  // -- where everything is

  #keyOf(node) {
    if (this.groupBy === "zone") return node.zone || "no zone";
    if (this.groupBy === "type") return node.type || "no type";
    if (this.groupBy === "state") return node.state.replace("-", " ");
    return node.group || "no group";
  }

  #layout() {
    this.needsLayout = false;
    const groups = new Map();
    const sizes = [];
    for (const node of this.model.nodes.values()) {
      const key = this.#keyOf(node);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(node);
      sizes.push(node.cpu);
    }
    sizes.sort((a, b) => a - b);
    const median = sizes[sizes.length >> 1] || 1;
    // Larger machines are wider; the root keeps the largest from taking over.
    const widthOf = (node) => Math.min(3, Math.max(0.6, Math.sqrt((node.cpu || median) / median)));
    const sorted = [...groups].sort((a, b) => compareNames(a[0], b[0]));
    for (const [, nodes] of sorted) {
      nodes.sort((a, b) => a.created - b.created || (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
    }
    const width = this.box.clientWidth - 2 * PAD, height = this.box.clientHeight;
    const heightOf = (size) => this.#heightOf(sorted, size, width, widthOf);
    let low = SIZE_MIN, high = SIZE_MAX;
    while (low < high) {
      const size = Math.ceil((low + high) / 2);
      if (heightOf(size) <= height) low = size; else high = size - 1;
    }
    // Where headings take most of the room, tiles would be squeezed for little: one has to scroll anyway, or nearly.
    if (low < SIZE_OF_MANY_GROUPS && sorted.length * (HEAD + 6) > height / 2
        && heightOf(SIZE_OF_MANY_GROUPS) <= 2 * Math.max(height, heightOf(low))) low = SIZE_OF_MANY_GROUPS;
    this.size = low;
    this.#place(sorted, low, width, widthOf);
    // What is left at the right of full rows is shared out.
    const used = this.wrapped ? this.widest : width;
    const more = Math.min(1.2, width / used);
    const taller = Math.floor((height - this.height) / Math.max(1, this.lines.length));
    if (taller >= 1) this.size = low + Math.min(taller, Math.ceil(low / 5));
    if (more > 1.01 || taller >= 1) this.#place(sorted, low, width, widthOf, Math.max(1, more));
  }

  #gap(size) { return size < 14 ? 1 : size < 30 ? 2 : 4; }

  #heightOf(groups, size, width, widthOf) {
    let y = PAD / 2;
    const gap = this.#gap(size);
    for (const [, nodes] of groups) {
      let x = 0, rows = 1;
      for (const node of nodes) {
        const w = Math.floor(size * widthOf(node));
        if (x > 0 && x + w > width) { rows++; x = 0; }
        x += w + gap;
      }
      y += HEAD + rows * (size + gap) + 6;
    }
    return y + PAD;
  }

  #place(groups, size, width, widthOf, more = 1) {
    this.widest = 1; this.wrapped = false;
    this.lines = []; this.heads = []; this.places.clear(); this.order = [];
    const gap = this.#gap(size);
    let y = PAD / 2;
    for (const [key, nodes] of groups) {
      this.heads.push({ y, key, nodes: nodes.length });
      y += HEAD;
      let line = { y, tiles: [] };
      let x = 0;
      for (const node of nodes) {
        const w = Math.floor((size * widthOf(node) + gap) * more - gap);
        if (x > 0 && x + w > width) { this.lines.push(line); y += this.size + gap; line = { y, tiles: [] }; x = 0; this.wrapped = true; }
        this.widest = Math.max(this.widest, x + w);
        const place = { name: node.name, x: PAD + x, y: line.y, w, line: this.lines.length, at: line.tiles.length };
        line.tiles.push(place);
        this.places.set(node.name, place);
        this.order.push(node.name);
        x += w + gap;
      }
      this.lines.push(line);
      y += this.size + gap + 6;
    }
    this.height = y + PAD;
    this.space.style.height = `${this.height}px`;
  }

  hit(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const x = clientX - box.left, y = clientY - box.top + this.box.scrollTop;
    for (const head of this.heads) if (y >= head.y && y < head.y + HEAD) return { head };
    let low = 0, high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lines[middle].y <= y) low = middle; else high = middle - 1;
    }
    const line = this.lines[low];
    if (!line || y < line.y || y > line.y + this.size + this.#gap(this.size)) return null;
    const place = line.tiles.find((tile) => x >= tile.x && x <= tile.x + tile.w + 1);
    return place ? { name: place.name } : null;
  }

  // The neighbour of the selected node: the keyboard's way over the wall.
  neighbour(key) {
    if (this.needsLayout) this.#layout();
    const place = this.places.get(this.selected);
    if (!place) return this.order[0] ?? null;
    const index = this.order.indexOf(this.selected);
    if (key === "ArrowRight") return this.order[Math.min(index + 1, this.order.length - 1)];
    if (key === "ArrowLeft") return this.order[Math.max(index - 1, 0)];
    if (key === "Home") return this.order[0];
    if (key === "End") return this.order.at(-1);
    const line = this.lines[place.line + (key === "ArrowDown" ? 1 : -1)];
    if (!line) return this.selected;
    const middle = place.x + place.w / 2;
    return line.tiles.reduce((best, tile) =>
      Math.abs(tile.x + tile.w / 2 - middle) < Math.abs(best.x + best.w / 2 - middle) ? tile : best).name;
  }

  reveal(name) {
    if (this.needsLayout) this.#layout();
    const place = this.places.get(name);
    if (!place) return;
    const top = this.box.scrollTop, height = this.box.clientHeight;
    if (place.y < top + HEAD) this.box.scrollTop = place.y - HEAD;
    else if (place.y + this.size > top + height) this.box.scrollTop = place.y + this.size - height + PAD;
  }

  // -- drawing

  #draw(at) {
    this.frame = 0;
    const began = performance.now();
    const ctx = this.ctx, scale = window.devicePixelRatio || 1;
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (this.needsLayout) {
      const before = this.size;
      this.#layout();
      this.isStale = true;
      if (before !== this.size) this.onLayout();
    }
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.isStale = true;
    }
    ctx.setTransform(scale, 0, 0, scale, 0, -this.box.scrollTop * scale);
    for (const name of this.flashes.keys()) this.dirty.add(name);
    // With this many, all together are quicker than one by one.
    if (this.isStale || this.dirty.size > TOGETHER_FROM) this.#drawAll(width, height);
    else for (const name of this.dirty) this.#drawOne(name, true);
    this.isStale = false;
    this.dirty.clear();
    this.#drawFlashes(at);
    this.#drawMarks();
    this.frameTimes.push(performance.now() - began);
    if (this.frameTimes.length > 240) this.frameTimes.shift();
    if (this.flashes.size) this.#ask();
  }

  #drawAll(width, height) {
    const ctx = this.ctx, top = this.box.scrollTop;
    ctx.fillStyle = this.theme.surface;
    ctx.fillRect(0, top, width, height);
    const seen = this.lines.filter((line) => line.y + this.size >= top && line.y <= top + height);
    if (this.size < BLOCKS_FROM && !this.search) this.#drawMany(seen);
    else for (const line of seen) for (const place of line.tiles) this.#drawOne(place.name, false);
    for (const head of this.heads) this.#drawHead(head, top, width);
  }

  #drawMany(lines) {
    const tiles = [];
    for (const line of lines) {
      for (const { name, x, y, w } of line.tiles) {
        const node = this.model.nodes.get(name);
        if (node) tiles.push({ node, x, y, w });
      }
    }
    const scale = window.devicePixelRatio || 1;
    this.raster.begin(this.canvas.width, this.canvas.height, this.theme.surface);
    drawSmallTiles(this.raster, tiles, this.box.scrollTop, this.size, scale, this.fill, this.theme, hue);
    this.raster.put(this.ctx);
    drawSmallStates(this.ctx, tiles, this.size, this.theme);
  }

  #drawHead(head, top, width) {
    if (head.y + HEAD < top || head.y > top + this.box.clientHeight) return;
    const ctx = this.ctx;
    ctx.textBaseline = "middle";
    ctx.font = `600 12.5px ${this.theme.font}`;
    ctx.fillStyle = this.theme.ink;
    const words = fitting(ctx, head.key, width - 130);
    ctx.fillText(words, PAD, head.y + HEAD / 2 + 1);
    const wide = ctx.measureText(words).width;
    ctx.font = `12px ${this.theme.font}`;
    ctx.fillStyle = this.theme.muted;
    ctx.fillText(`${count(head.nodes)} ${head.nodes === 1 ? "node" : "nodes"}`, PAD + wide + 9, head.y + HEAD / 2 + 1);
  }

  #drawOne(name, isAlone) {
    const place = this.places.get(name), node = this.model.nodes.get(name);
    if (!place || !node) return;
    if (isAlone) {
      this.ctx.fillStyle = this.theme.surface;
      const edge = this.#gap(this.size) / 2;
      this.ctx.fillRect(place.x - edge, place.y - edge, place.w + 2 * edge, this.size + 2 * edge);
    }
    const isFaint = this.search && !name.includes(this.search);
    drawTile(this.ctx, node, place.x, place.y, place.w, this.size, this.fill, this.theme, hue);
    if (isFaint) {
      this.ctx.globalAlpha = 0.82;
      this.ctx.fillStyle = this.theme.surface;
      this.ctx.fillRect(place.x - 1, place.y - 1, place.w + 2, this.size + 2);
      this.ctx.globalAlpha = 1;
    }
  }

  #drawFlashes(at) {
    const ctx = this.ctx;
    for (const [name, until] of this.flashes) {
      const left = (until - at) / FLASH_MS, place = this.places.get(name);
      if (left <= 0 || !place) { this.flashes.delete(name); this.dirty.add(name); continue; }
      ctx.globalAlpha = Math.min(1, left);
      ctx.strokeStyle = this.theme.accent;
      ctx.lineWidth = this.size < 14 ? 1.5 : 3;
      ctx.strokeRect(place.x + 1, place.y + 1, place.w - 2, this.size - 2);
      ctx.globalAlpha = 1;
    }
    if (this.dirty.size) this.#ask();
  }

  #drawMarks() {
    const place = this.places.get(this.selected);
    if (!place) return;
    const ctx = this.ctx, out = this.#gap(this.size) / 2;
    ctx.lineWidth = 2;
    ctx.strokeStyle = this.theme.focus;
    ctx.strokeRect(place.x - out, place.y - out, place.w + 2 * out, this.size + 2 * out);
  }
}

// As much of a text as there is room for.
function fitting(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let end = text.length - 1;
  while (end > 1 && ctx.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}
