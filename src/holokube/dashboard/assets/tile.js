// How one node is drawn: its pods as blocks whose area is what they ask for, its state as a shape, not only a colour.

import { mix, word } from "./raster.js";

export const STATES = [
  ["ready", "ready"], ["booting", "booting"], ["not-ready", "not ready"], ["draining", "draining"], ["faulty", "faulty"],
];
const RUNNING = 0, STARTING = 1, ENDING = 2;
export const BLOCKS_FROM = 34; // pixels of height from which single pods are told apart
const NAME_FROM = 58;
export const BANDS_FROM = 28; // below that, workloads are noise: only how full a node is can be seen, by height and by shade
const SHADES = 8;

export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const shades = Array.from({ length: SHADES + 1 }, (_, i) => mix(color("--full"), color("--slack"), i / SHADES));
  return {
    surface: color("--surface"), ink: color("--ink"), muted: color("--muted"), line: color("--line"),
    tile: color("--tile"), tileLine: color("--tile-line"), focus: color("--focus"), accent: color("--accent"),
    bad: color("--bad"), warn: color("--warn"), leave: color("--leave"), boot: color("--boot"),
    workloads: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => color(`--w${i}`)),
    shades, pale: shades.map((shade) => mix(shade, color("--tile"), 0.25)),
    font: getComputedStyle(document.body).fontFamily || "sans-serif",
  };
}

export function drawTile(ctx, node, x, y, w, h, fill, theme, hueOf) {
  const isLarge = h >= NAME_FROM;
  const head = isLarge ? 16 : 0;
  const radius = h >= BLOCKS_FROM ? Math.min(5, h / 12) : 0;
  if (radius) {
    ctx.save();
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
    ctx.clip();
  }
  ctx.fillStyle = theme.tile;
  ctx.fillRect(x, y, w, h);
  if (node.state === "draining" || node.state === "booting") ctx.globalAlpha = 0.5;
  drawPods(ctx, node, x, y + head, w, h - head, fill, theme, hueOf);
  ctx.globalAlpha = 1;
  if (node.state === "not-ready") drawHatch(ctx, x, y + head, w, h - head, theme);
  if (radius) ctx.restore();
  drawState(ctx, node, x, y, w, h, theme, radius);
  if (isLarge) drawName(ctx, node, x, y, w, theme);
}

// Behind a sign of trouble the shade is pale, or the sign could not be seen.
function shadeOf(node, share, theme) {
  return (node.state === "ready" ? theme.shades : theme.pale)[Math.round(share * SHADES)];
}

const shareOf = (node, fill) => Math.min(1, fill === "memory" ? node.memoryUsed / node.memory : node.cpuUsed / node.cpu);

function drawPods(ctx, node, x, y, w, h, fill, theme, hueOf) {
  const whole = fill === "memory" ? node.memory : node.cpu;
  if (!(whole > 0)) return;
  let bottom = y + h;
  if (h < BANDS_FROM) {
    const share = shareOf(node, fill);
    ctx.fillStyle = shadeOf(node, share, theme);
    ctx.fillRect(x, bottom - Math.round(share * h), w, Math.round(share * h));
    return;
  }
  for (const [workload, state, number, cpu, memory] of node.blocks) {
    const each = (fill === "memory" ? memory : cpu) / whole;
    const band = Math.min(bottom - y, each * number * h);
    if (band <= 0) continue;
    const color = theme.workloads[hueOf(workload)];
    if (h >= BLOCKS_FROM && band >= 3) drawBlocks(ctx, x, bottom - band, w, band, number, each * w * h, state, color, theme);
    else {
      const alpha = ctx.globalAlpha;
      if (state !== RUNNING) ctx.globalAlpha = alpha * 0.45;
      ctx.fillStyle = color;
      ctx.fillRect(x, bottom - band, w, band);
      ctx.globalAlpha = alpha;
    }
    bottom -= band;
  }
}

// Many small tiles at once, without their states; `top` is what is scrolled away.
export function drawSmallTiles(raster, tiles, top, size, scale, fill, theme, hueOf) {
  const tile = word(theme.tile), plain = theme.workloads.map(word);
  const dim = theme.workloads.map((color) => word(mix(color, theme.tile, 0.45)));
  for (const { node, x, y, w } of tiles) {
    const left = Math.round(x * scale), right = Math.round((x + w) * scale);
    const up = Math.round((y - top) * scale), down = Math.round((y - top + size) * scale);
    const whole = fill === "memory" ? node.memory : node.cpu;
    const isDim = node.state === "draining" || node.state === "booting";
    let used = 0, bottom = down;
    if (size < BANDS_FROM && whole > 0) {
      const share = shareOf(node, fill);
      bottom = down - Math.round(share * (down - up));
      raster.fill(left, bottom, right, down, word(shadeOf(node, share, theme)));
    } else if (whole > 0) {
      for (const block of node.blocks) {
        used += (fill === "memory" ? block[4] : block[3]) * block[2];
        const next = Math.max(up, Math.round(down - (used / whole) * (down - up)));
        if (next < bottom) raster.fill(left, next, right, bottom, (isDim || block[1] !== RUNNING ? dim : plain)[hueOf(block[0])]);
        bottom = next;
      }
    }
    raster.fill(left, up, right, bottom, tile);
  }
}

export function drawSmallStates(ctx, tiles, size, theme) {
  for (const { node, x, y, w } of tiles) {
    if (node.state === "not-ready") drawHatch(ctx, x, y, w, size, theme);
    if (node.state !== "ready") drawState(ctx, node, x, y, w, size, theme);
  }
}

// Pods alike share a band, in rows of nearly square blocks.
function drawBlocks(ctx, x, y, w, h, number, area, state, color, theme) {
  const columns = Math.max(1, Math.min(number, Math.round(w / Math.sqrt(Math.max(area, 1)))));
  const rows = Math.ceil(number / columns);
  const height = h / rows;
  const gap = Math.min(1, height / 5);
  ctx.fillStyle = color;
  ctx.strokeStyle = color;
  for (let row = 0; row < rows; row++) {
    const inRow = row === rows - 1 ? number - row * columns : columns;
    const width = w / inRow;
    for (let i = 0; i < inRow; i++) {
      const left = x + i * width + gap / 2, top = y + h - (row + 1) * height + gap / 2;
      const right = width - gap, down = height - gap;
      if (state === RUNNING) ctx.fillRect(left, top, right, down);
      else drawUnusual(ctx, left, top, right, down, state, theme);
    }
  }
}

function drawUnusual(ctx, x, y, w, h, state, theme) {
  const alpha = ctx.globalAlpha;
  ctx.globalAlpha = alpha * (state === STARTING ? 0.25 : 0.45);
  ctx.fillRect(x, y, w, h);
  ctx.globalAlpha = alpha;
  if (w < 4 || h < 4) return;
  ctx.lineWidth = 1;
  if (state === STARTING) ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  else {
    const stroke = ctx.strokeStyle;
    if (state !== ENDING) ctx.strokeStyle = theme.bad;
    ctx.beginPath();
    ctx.moveTo(x, y + h); ctx.lineTo(x + w, y);
    if (state !== ENDING) { ctx.moveTo(x, y); ctx.lineTo(x + w, y + h); }
    ctx.stroke();
    ctx.strokeStyle = stroke;
  }
}

function drawName(ctx, node, x, y, w, theme) {
  ctx.font = `11px ${theme.font}`;
  ctx.textBaseline = "top";
  ctx.fillStyle = theme.ink;
  ctx.fillText(shortened(ctx, node, w - 9 - (hasBang(node) ? 15 : 0)), x + 5, y + 3);
}

// The end of a name tells nodes apart; what it shares with its group does not.
function shortened(ctx, node, room) {
  let name = node.group && node.name.startsWith(`${node.group}-`) ? node.name.slice(node.group.length + 1) : node.name;
  if (ctx.measureText(name).width <= room) return name;
  while (name.length > 1 && ctx.measureText(`…${name}`).width > room) name = name.slice(1);
  return `…${name}`;
}

const hasBang = (node) => node.state === "faulty" || (node.faults.length > 0 && node.state !== "ready");

export function drawState(ctx, node, x, y, w, h, theme, radius = 0) {
  const state = node.state;
  const line = h < 9 ? 1 : h < 24 ? 1.5 : 2;
  ctx.lineWidth = state === "ready" ? 1 : line;
  const inset = ctx.lineWidth / 2;
  ctx.strokeStyle = { "ready": theme.tileLine, "booting": theme.boot, "not-ready": theme.bad, "draining": theme.leave, "faulty": theme.warn }[state];
  if (state === "booting") ctx.setLineDash([Math.max(2, h / 8), Math.max(2, h / 9)]);
  if (radius) {
    ctx.beginPath();
    ctx.roundRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset, radius);
    ctx.stroke();
  } else if (h >= BLOCKS_FROM || state !== "ready") ctx.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
  ctx.setLineDash([]);
  if (state === "draining") drawArrow(ctx, x, y, w, h, theme);
  if (hasBang(node)) drawBang(ctx, x, y, w, h, theme, state);
}

function drawHatch(ctx, x, y, w, h, theme) {
  const step = h < 16 ? h / 2 : Math.max(6, h / 7);
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.beginPath();
  for (let at = -h; at < w; at += step) { ctx.moveTo(x + at, y + h); ctx.lineTo(x + at + h, y); }
  ctx.strokeStyle = theme.bad;
  ctx.lineWidth = h < 16 ? 1.2 : 1.5;
  ctx.globalAlpha = h < 30 ? 1 : 0.65;
  ctx.stroke();
  ctx.restore();
}

function drawArrow(ctx, x, y, w, h, theme) {
  const size = Math.min(w, h) * (h < 20 ? 0.34 : 0.22);
  const cx = x + w / 2, cy = y + h / 2;
  ctx.fillStyle = theme.leave;
  ctx.beginPath();
  ctx.moveTo(cx - size, cy - size * 0.5);
  ctx.lineTo(cx + size, cy - size * 0.5);
  ctx.lineTo(cx, cy + size);
  ctx.fill();
}

function drawBang(ctx, x, y, w, h, theme, state) {
  const size = h < 20 ? Math.min(w, h) * 0.7 : h < NAME_FROM ? Math.max(11, h * 0.26) : 13;
  const left = h < 20 ? x + (w - size) / 2 : x + w - size - 3, top = h < 20 ? y + (h - size) / 2 : y + 3;
  ctx.fillStyle = state === "not-ready" ? theme.bad : theme.warn;
  ctx.strokeStyle = theme.surface;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(left + size / 2, top);
  ctx.lineTo(left + size, top + size);
  ctx.lineTo(left, top + size);
  ctx.closePath();
  ctx.fill();
  if (size < 6) return;
  ctx.stroke();
  ctx.fillStyle = theme.surface;
  ctx.fillRect(left + size / 2 - size * 0.06, top + size * 0.35, size * 0.12, size * 0.32);
  ctx.fillRect(left + size / 2 - size * 0.06, top + size * 0.76, size * 0.12, size * 0.12);
}

// A sample for legends and headings.
export function drawSample(canvas, state, theme) {
  const scale = window.devicePixelRatio || 1, size = 16;
  canvas.width = canvas.height = size * scale;
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  ctx.fillStyle = theme.tile;
  ctx.fillRect(0, 0, size, size);
  if (state === "ready") { ctx.fillStyle = theme.workloads[0]; ctx.fillRect(0, 6, size, size - 6); }
  if (state === "not-ready") drawHatch(ctx, 0, 0, size, size, theme);
  drawState(ctx, { state, faults: [] }, 0, 0, size, size, theme);
}
