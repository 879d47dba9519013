// What the colours on the wall stand for: workloads, or, where tiles are too small for those, how full a node is.

import { compareNames, count, hue } from "./format.js";
import { BANDS_FROM } from "./tile.js";

const SHOWN = 8, EVERY_MS = 1000;

// Without its namespace, which takes much room and mostly tells nothing.
const bareName = (name) => name.slice(name.indexOf("/") + 1);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export class Key {
  constructor(list, model, wall, theme) {
    this.list = list; this.model = model; this.wall = wall; this.theme = theme;
    this.shownAt = -Infinity; this.shown = "";
    wall.onLayout = () => this.show(true);
  }

  // Going over all pods of thousands of nodes is not done with every delta.
  show(isAtOnce) {
    const now = performance.now();
    if (!isAtOnce && now - this.shownAt < EVERY_MS) return;
    this.shownAt = now;
    if (!this.model.nodes.size) { this.#put("nothing", () => []); return; }
    if (this.wall.size < BANDS_FROM) this.#showShades(); else this.#showWorkloads();
  }

  // Only what differs is put in place: nobody loses his place in the list, and no reader says it again.
  #put(what, make) {
    const shown = `${this.theme().ink} ${what}`;
    if (shown === this.shown) return;
    this.shown = shown;
    this.list.replaceChildren(...make());
  }

  #showShades() {
    const { shades } = this.theme();
    this.#put("shades", () => {
      const item = element("li"), strip = element("span", "strip");
      strip.setAttribute("aria-hidden", "true");
      for (const shade of shades) { const part = element("i"); part.style.background = shade; strip.append(part); }
      item.append("little requested", strip, "all of it");
      return [item];
    });
  }

  #showWorkloads() {
    const at = this.wall.fill === "memory" ? 4 : 3, sums = new Map();
    for (const node of this.model.nodes.values()) {
      for (const block of node.blocks) sums.set(block[0], (sums.get(block[0]) ?? 0) + block[2] * block[at]);
    }
    // The largest, in the order of their names: one that grows does not change places.
    const names = [...sums].sort((a, b) => b[1] - a[1]).slice(0, SHOWN).map(([name]) => name).sort(compareNames);
    const more = sums.size - names.length;
    this.#put(`workloads ${more} ${names.join(" ")}`, () => {
      const items = names.map((name) => {
        const item = element("li"), swatch = element("span", "swatch");
        swatch.style.background = this.theme().workloads[hue(name)];
        const bare = bareName(name), isTwice = names.some((other) => other !== name && bareName(other) === bare);
        item.append(swatch, element("span", "name", isTwice ? name : bare));
        item.title = name;
        return item;
      });
      if (more) items.push(element("li", "more", `and ${count(more)} more`));
      if (!names.length) items.push(element("li", "", "no pods"));
      return items;
    });
  }
}
