// What all parts of the page share: elements, packed data, numbers in words, the theme.

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const SVG = "http://www.w3.org/2000/svg";
const STYLES = 8;

// Builds an element. Text goes in as text, never as markup: names in a cluster may be anything.
function make(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

// Calls a function at most once before the next picture.
function oncePerFrame(work) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      work();
    });
  };
}

// Packed columns: see columns.py for how they are made.
async function unpack(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const coded = atob(element.textContent);
  const bytes = new Uint8Array(coded.length);
  for (let i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(raw.buffer).getUint32(0, true);
  const block = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
  let at = 4 + length;
  const columns = {};
  for (const [name, kind, count, difference] of block.columns) {
    const numbers = new Int32Array(count);
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const value =
        raw[at + i] | (raw[at + count + i] << 8) | (raw[at + 2 * count + i] << 16) | (raw[at + 3 * count + i] << 24);
      sum = difference ? (sum + value) | 0 : value;
      numbers[i] = sum;
    }
    columns[name] = kind === "f4" ? new Float32Array(numbers.buffer) : numbers;
    at += 4 * count;
  }
  block.columns = columns;
  return block;
}

const unpacked = new Map();

// Each block is unpacked once, when it is first asked for.
function block(id) {
  if (!unpacked.has(id)) unpacked.set(id, unpack(id));
  return unpacked.get(id);
}

const NBSP = "\u00a0";

function countText(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0 });
}

function usdText(value) {
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 0.1 || value === 0 ? 2 : 4;
  return "$" + value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const percentText = (value) => (value * 100).toFixed(1) + NBSP + "%";

function coresText(milli) {
  return (milli / 1000).toLocaleString("en-US", { maximumFractionDigits: 2 });
}

function memoryText(mib) {
  return mib >= 1024
    ? (mib / 1024).toLocaleString("en-US", { maximumFractionDigits: 1 }) + NBSP + "GiB"
    : mib.toLocaleString("en-US", { maximumFractionDigits: 0 }) + NBSP + "MiB";
}

const two = (value) => String(value).padStart(2, "0");
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// A moment of the run as its own clock showed it.
function clockText(startS, atS, seconds = false) {
  const date = new Date((startS + atS) * 1000);
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  return `${DAYS[date.getUTCDay()]} ${time}${seconds ? ":" + two(date.getUTCSeconds()) : ""}`;
}

// How long after the beginning.
function elapsedText(atS) {
  const minutes = Math.floor(atS / 60);
  return `+${Math.floor(minutes / 60)}${NBSP}h ${two(minutes % 60)}${NBSP}min`;
}

function spanText(seconds) {
  const whole = Math.round(seconds);
  const parts = (large, name, small, smallName) => {
    const rest = Math.floor((whole % large) / small);
    return `${Math.floor(whole / large)}${NBSP}${name}${rest ? ` ${two(rest)}${NBSP}${smallName}` : ""}`;
  };
  if (whole < 60) return `${whole}${NBSP}s`;
  return whole < 3600 ? parts(60, "min", 1, "s") : parts(3600, "h", 60, "min");
}

function announce(text) {
  $("#live").textContent = text;
}

// Light, dark, or what the system says. Kept for the next report where the browser lets a file keep something.
const THEMES = ["auto", "light", "dark"];
const themeListeners = [];

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    /* It is then chosen anew each time. */
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = $("#theme");
  button.textContent = `Theme: ${theme}`;
  button.setAttribute("aria-label", `Theme: ${theme}. Change it.`);
  for (const listener of themeListeners) listener();
}

function startTheme() {
  const button = $("#theme");
  button.hidden = false;
  setTheme(THEMES.includes(kept("holokube-theme")) ? kept("holokube-theme") : "auto");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    keep("holokube-theme", next);
    setTheme(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const listener of themeListeners) listener();
  });
}

function startCopying() {
  for (const button of $$("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = $("code", button.closest(".command"));
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
  }
}

// Each file with its own name, as the command expects it.
function startSaving() {
  for (const button of $$("button.save")) {
    button.hidden = false;
    button.setAttribute("aria-label", `Save ${button.dataset.name}`);
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([$("code", button.closest(".command")).textContent]));
      make("a", { href: address, download: button.dataset.name.split("/").at(-1) }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
  }
}
