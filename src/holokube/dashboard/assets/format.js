// Numbers and times as people read them.

export const count = new Intl.NumberFormat("en").format;

export function cores(milli) {
  const value = milli / 1000;
  return value >= 100 ? count(Math.round(value)) : String(Math.round(value * 100) / 100);
}

export function bytes(mib) {
  if (mib >= 1024 * 1024) return `${trim(mib / 1048576)} TiB`;
  return mib >= 1024 ? `${trim(mib / 1024)} GiB` : `${Math.round(mib)} MiB`;
}

const trim = (value) => (value >= 100 ? count(Math.round(value)) : String(Math.round(value * 10) / 10));

export function share(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

export function money(usd) {
  if (usd === null || usd === undefined) return "no price";
  return `$${usd >= 1000 ? count(Math.round(usd)) : usd >= 1 ? usd.toFixed(2) : usd.toFixed(3).replace(/0$/, "")}`;
}

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const instant = (unix) => new Date(unix * 1000).toISOString().slice(0, 19).replace("T", " ");
export const clockTime = (unix) => new Date(unix * 1000).toISOString().slice(11, 19);

const natural = new Intl.Collator("en", { numeric: true });
export const compareNames = natural.compare;

// A name's colour comes from the name, so that it is mostly the same on every page and day; while there are colours
// nobody has, it takes the next free one instead of sharing.
const HUES = 8, NAMES_MAX = 5000;
const hues = new Map();
const takers = new Array(HUES).fill(0);

export function hue(name) {
  let found = hues.get(name);
  if (found !== undefined) return found;
  if (hues.size > NAMES_MAX) { hues.clear(); takers.fill(0); }
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  found = ((hash ^ (hash >>> 13)) >>> 0) % HUES;
  const fewest = Math.min(...takers);
  while (takers[found] > fewest) found = (found + 1) % HUES;
  takers[found]++;
  hues.set(name, found);
  return found;
}
