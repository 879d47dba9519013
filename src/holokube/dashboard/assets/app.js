// The page: puts the parts together, and hands events from the stream and from people to them.

import { Figures } from "./charts.js";
import { Detail } from "./detail.js";
import { Model, act, follow } from "./feed.js";
import { bytes, cores, count, instant, money, share } from "./format.js";
import { Key } from "./key.js";
import { Decisions, showPending } from "./panels.js";
import { STATES, drawSample, readTheme } from "./tile.js";
import { Wall } from "./wall.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = [[1, "1×"], [10, "10×"], [60, "60×"], [600, "600×"], [3600, "3600×"], [null, "max"]];

const model = new Model();
let theme = readTheme();
const figures = new Figures($("figures"), model);
const wall = new Wall($("wall"), $("wall-box"), $("wall-space"), model);
const key = new Key($("key"), model, wall, () => theme);
const decisions = new Decisions($("decisions"), $("acts-only"), model);
const detail = new Detail($("detail"), model, {
  toast, theme: () => theme, onClose: () => { wall.select(null); $("wall").focus({ preventScroll: true }); },
});

// -- the stream

follow((kind, data) => {
  if (kind === "empty") { showEmpty(data.note); return; }
  hasEnded = false;
  heardAt = performance.now();
  if ($("link").dataset.state === "quiet") showLink("on");
  const change = model.apply(kind, data);
  if (change.all) { chooseGrouping(); readings.length = 0; }
  takeReading();
  wall.update(change);
  figures.draw();
  showStatus();
  if (change.pending || Math.floor(model.now) !== shownSecond) showPending($("pending"), $("pending-count"), model);
  shownSecond = Math.floor(model.now);
  if (change.decisions || change.all) decisions.show();
  key.show(change.all);
  detail.refresh(change.all || change.names.includes(wall.selected));
  document.documentElement.dataset.ready = "true";
}, (state) => {
  // What has ended is not lost; yet it may be started again at the same address.
  if (state !== "on" && hasEnded) return;
  heardAt = performance.now();
  showLink(state);
  if (state === "asleep") document.title = "holokube";
});
function showLink(state) {
  $("link").dataset.state = state;
  $("link").textContent = { on: "live", lost: "connection lost, trying again", asleep: "not looked at", quiet: "no news for some seconds" }[state];
}

// Something is told several times a second, even in a pause: silence means that the program was stopped, or is stuck.
const QUIET_AFTER_MS = 4000;
let heardAt = 0;
setInterval(() => {
  if (!document.hidden && $("link").dataset.state === "on" && performance.now() - heardAt > QUIET_AFTER_MS) showLink("quiet");
}, 1000);
let shownSecond = -1;
let hasEnded = false;

// Until somebody chooses: by zone where all nodes are of one group, else by group. A choice outlives a reload.
let isGroupingChosen = false;
for (const id of ["group-by", "fill-by"]) {
  try {
    const kept = sessionStorage.getItem(`holokube-${id}`);
    if (![...$(id).options].some((option) => option.value === kept)) continue;
    $(id).value = kept;
    if (id === "group-by") { isGroupingChosen = true; wall.groupBy = kept; } else wall.fill = kept;
  } catch { /* Not allowed here. */ }
}
function keepChoice(event) {
  try { sessionStorage.setItem(`holokube-${event.target.id}`, event.target.value); } catch { /* Not allowed here. */ }
}
function chooseGrouping() {
  if (isGroupingChosen || !model.nodes.size) return;
  const different = (key) => new Set([...model.nodes.values()].map((node) => node[key])).size;
  $("group-by").value = wall.groupBy = different("group") === 1 && different("zone") > 1 ? "zone" : "group";
}

// Nothing runs. What was seen last stays.
function showEmpty(note) {
  hasEnded = true;
  $("link").dataset.state = "ended";
  $("link").textContent = note;
  $("pace").hidden = true;
  $("wall-empty").hidden = model.nodes.size > 0;
  $("wall-empty").textContent = note;
  document.documentElement.dataset.ready = "true";
}

// How many times faster than real time it goes, over the last few seconds.
let factor = 0;
const readings = [];
function takeReading() {
  readings.push([performance.now() / 1000, model.now]);
  if (readings.length > 12) readings.shift();
  const [first, last] = [readings[0], readings.at(-1)];
  factor = last[0] > first[0] ? Math.max(0, (last[1] - first[1]) / (last[0] - first[0])) : 0;
}

function showStatus() {
  const { status, totals } = model;
  document.title = `${count(totals.nodes)} nodes${totals.pending ? `, ${count(totals.pending)} pending` : ""} · holokube`;
  $("title").hidden = !status.title;
  $("title").textContent = status.title;
  $("time-kind").textContent = status.virtual ? `virtual time${status.paused ? ", paused" : factor > 1.5 ? `, ${count(Number(factor.toPrecision(2)))} ×` : ""}` : "";
  [$("date").textContent, $("clock").textContent] = instant(model.now).split(" ");
  $("pace").hidden = !status.can.pace;
  $("pause").textContent = status.paused ? "Resume" : "Pause";
  $("pause").setAttribute("aria-pressed", String(status.paused));
  for (const button of $("speeds").children) {
    const isOn = button.dataset.speed === String(status.speed);
    button.setAttribute("aria-checked", String(isOn));
    button.tabIndex = isOn ? 0 : -1;
  }
  if (![...$("speeds").children].some((button) => button.tabIndex === 0)) $("speeds").lastChild.tabIndex = 0;
  $("wall-empty").hidden = totals.nodes > 0;
  $("wall-empty").textContent = status.virtual ? "No nodes yet." : "No nodes yet.\nholokube scale nodes 100, or pending pods and a policy, bring some.";
  $("wall").setAttribute("aria-label", `${count(totals.nodes)} nodes`);
  for (const [state] of STATES) legendCounts[state].textContent = count(totals.states[state]);
}

// -- the legend

const legendCounts = {};
const legendSamples = [];
for (const [state, words] of STATES) {
  const item = document.createElement("li"), sample = document.createElement("canvas"), number = document.createElement("b");
  item.append(sample, words, " ", number);
  $("legend").append(item);
  legendCounts[state] = number;
  legendSamples.push([sample, state]);
}

function retheme() {
  theme = readTheme();
  wall.retheme();
  key.show(true);
  figures.draw();
  for (const [sample, state] of legendSamples) drawSample(sample, state, theme);
  detail.refresh(true);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", retheme);
try { const kept = localStorage.getItem("holokube-theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* Not allowed here. */ }
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("holokube-theme", root.dataset.theme); } catch { /* Not allowed here. */ }
  retheme();
});
retheme();

// -- the wall

$("group-by").addEventListener("change", (event) => { isGroupingChosen = true; wall.groupBy = event.target.value; wall.relayout(); keepChoice(event); });
$("fill-by").addEventListener("change", (event) => { wall.fill = event.target.value; wall.redraw(); key.show(true); keepChoice(event); });
$("find").addEventListener("input", (event) => { wall.search = event.target.value.trim(); wall.redraw(); });
$("find").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  const found = wall.order.find((name) => name === wall.search) ?? wall.order.find((name) => name.includes(wall.search));
  if (found && wall.search) openNode(found); else toast(`No node is called ${wall.search}.`);
});

function openNode(name) {
  wall.select(name);
  wall.reveal(name);
  detail.openNode(name);
}

function openHead(head) {
  const by = { zone: "zone", group: "group", type: "type", state: "state" }[wall.groupBy];
  const node = [...model.nodes.values()].find((one) => (one[by] || `no ${by}`).replace(by === "state" ? "-" : "\0", " ") === head.key);
  if (!node) return;
  wall.select(null);
  detail.openGroup(by, node[by], by === "state" ? head.key : `${by} ${head.key}`);
}

$("wall").addEventListener("click", (event) => {
  const found = wall.hit(event.clientX, event.clientY);
  $("tip").hidden = true;
  if (found?.name) openNode(found.name);
  else if (found?.head) openHead(found.head);
  else detail.close();
});

$("wall").addEventListener("pointermove", (event) => {
  const found = wall.hit(event.clientX, event.clientY);
  $("wall").style.cursor = found ? "pointer" : "default";
  if (!found?.name || event.pointerType === "touch") { $("tip").hidden = true; return; }
  showTip(model.nodes.get(found.name), event.clientX, event.clientY);
});
$("wall").addEventListener("pointerleave", () => { $("tip").hidden = true; });

function describe(node) {
  const state = node.state.replace("-", " ") + (node.why ? `: ${node.why}` : "");
  const place = [node.group, node.zone, node.type].filter(Boolean).join(", ");
  return `${state}\n${place ? `${place}\n` : ""}CPU ${share(node.cpuUsed, node.cpu)} of ${cores(node.cpu)}, memory ${share(node.memoryUsed, node.memory)} of ${bytes(node.memory)}\n${count(node.pods)} pods, ${node.price === null ? "no price" : `${money(node.price)} /h`}`;
}

function showTip(node, x, y) {
  if (!node) return;
  const tip = $("tip"), name = document.createElement("b");
  name.textContent = node.name;
  tip.replaceChildren(name, describe(node));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
}

$("wall").addEventListener("keydown", (event) => {
  if (["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
    event.preventDefault();
    const name = wall.neighbour(event.key);
    if (!name) return;
    wall.select(name);
    wall.reveal(name);
    $("wall-said").textContent = `${name}, ${describe(model.nodes.get(name)).replaceAll("\n", ", ")}`;
    if (!$("detail").hidden) detail.openNode(name);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (wall.selected) { openNode(wall.selected); $("detail").focus(); }
  } else if (event.key === "Escape") {
    detail.close();
    wall.select(null);
  }
});

addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("find").focus(); }
  if (event.key === "p" && !$("pace").hidden) setPace({ paused: !model.status.paused });
});

// -- the pace

for (const [speed, words] of SPEEDS) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.dataset.speed = String(speed);
  button.setAttribute("role", "radio");
  button.title = speed ? `${count(speed)} virtual seconds a second` : "as fast as possible";
  button.addEventListener("click", () => setPace({ speed }));
  $("speeds").append(button);
}
$("speeds").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = [...$("speeds").children];
  const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
  next.focus();
  next.click();
});
$("pause").addEventListener("click", () => setPace({ paused: !model.status.paused }));

async function setPace(wish) {
  try {
    const status = await act("pace", wish);
    model.status = { ...model.status, ...status };
    if (model.totals) showStatus();
  } catch (error) { toast(error.message); }
}

// -- words that pass

let toastTimer = 0;
function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 5000);
}

// For measuring, and for tests that have to know where a tile is.
globalThis.holokube = { model, wall, detail };
