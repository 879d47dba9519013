// Where tiles stand on the node wall.

const GAP = 2;
// Room for the outline of a chosen tile.
const EDGE = 2;
const HEAD = 20;
const TILE_HEIGHTS = [72, 64, 56, 50, 44, 38, 34, 30, 26, 23, 20, 18, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3];
const TILE_PER_CORE = 0.38;

// Gives each node a place that it keeps for life; a place is used again once its node is gone.
function placeNodes(data, groupBy) {
  const { columns, strings } = data;
  const sections = new Map();
  const count = data.node_names.length;
  const order = Array.from({ length: count }, (_, i) => i).sort(
    (a, b) => columns.node_created[a] - columns.node_created[b] || a - b,
  );
  const slotOf = new Array(count);
  for (const i of order) {
    const name = strings[columns[groupBy][i]] || "";
    if (!sections.has(name)) sections.set(name, new Map());
    const sizes = sections.get(name);
    const cpu = columns.node_cpu[i];
    if (!sizes.has(cpu)) sizes.set(cpu, []);
    const slots = sizes.get(cpu);
    const end = columns.node_removed[i] < 0 ? Infinity : columns.node_removed[i];
    let slot = slots.find((one) => one.free <= columns.node_created[i]);
    if (!slot) {
      slot = { free: 0, x: 0, y: 0, w: 0, h: 0 };
      slots.push(slot);
    }
    slot.free = end;
    slotOf[i] = slot;
  }
  const ordered = [...sections].sort(
    ([a], [b]) => (a === "") - (b === "") || a.localeCompare(b, "en", { numeric: true }),
  );
  return {
    slotOf,
    sections: ordered.map(([name, sizes]) => ({
      name,
      y: 0,
      slots: [...sizes]
        .sort(([a], [b]) => b - a)
        .flatMap(([cpu, slots]) => slots.map((slot) => Object.assign(slot, { cpu }))),
    })),
  };
}

// Lays the places out in rows, as large as the room allows; gives back the height used.
function layOut(sections, width, room) {
  const widest = Math.max(1, ...sections.flatMap((section) => section.slots.map((slot) => slot.cpu)));
  let bottom = 0;
  for (const h of TILE_HEIGHTS) {
    // As many of the widest as fit beside each other, a little wider still, so that they fill the row.
    const row = width - 2 * EDGE;
    const natural = Math.min((h * TILE_PER_CORE * widest) / 1000, row);
    const abreast = Math.max(1, Math.floor((row + GAP) / (natural + GAP)));
    const perCpu = (row - (abreast - 1) * GAP) / abreast / widest;
    bottom = 0;
    for (const section of sections) {
      section.y = bottom;
      let x = EDGE;
      let y = bottom + HEAD;
      for (const slot of section.slots) {
        const w = Math.max(3, slot.cpu * perCpu);
        if (x > EDGE && x + w > width - EDGE + 0.01) {
          x = EDGE;
          y += h + GAP;
        }
        Object.assign(slot, { x, y, w, h });
        x += w + GAP;
      }
      bottom = y + h + 12;
    }
    if (bottom <= room) break;
  }
  return bottom;
}
