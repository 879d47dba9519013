// What a tile of the node wall shows, in colours and in words.

const PODS_LISTED = 8;

// Where there is room, pods of a workload are told apart by thin lines; they are mostly of one size.
function addSeparators(separators, x, y, w, h, count) {
  if (count < 1 || w / count < 5) return;
  for (let k = 1; k <= count; k++) separators.push([x + (w * k) / count - 0.8, y, h]);
}

// Colour with strokes over it, so that workloads can be told apart without colour.
function patternOf(i, colour, stroke) {
  const size = 8;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.3;
  const line = (...points) => {
    pen.beginPath();
    points.forEach(([x, y], k) => (k % 2 ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  };
  const kinds = [
    () => {},
    () => line([-2, 2], [2, -2], [0, 8], [8, 0], [6, 10], [10, 6]),
    () => {
      pen.fillStyle = stroke;
      pen.fillRect(1, 1, 2, 2);
      pen.fillRect(5, 5, 2, 2);
    },
    () => line([4, 0], [4, 8]),
    () => line([0, 4], [8, 4]),
    () => line([-2, 6], [2, 10], [0, 0], [8, 8], [6, -2], [10, 2]),
    () => line([4, 0], [4, 8], [0, 4], [8, 4]),
    () => {
      pen.fillStyle = stroke;
      pen.fillRect(2, 2, 3, 3);
    },
  ];
  kinds[i % kinds.length]();
  return pen.createPattern(tile, "repeat");
}

// All that is known of a node at a moment.
function describeNode(data, node, atS, startS) {
  const { columns, strings, tick_s: tickS } = data;
  const at = atS / tickS;
  const pods = [];
  let cpu = 0;
  let memory = 0;
  for (let i = 0; i < columns.pod_node.length; i++) {
    if (columns.pod_node[i] !== node || columns.pod_bound[i] < 0 || columns.pod_bound[i] > at) continue;
    if (columns.pod_ended[i] >= 0 && columns.pod_ended[i] <= at) continue;
    cpu += columns.pod_cpu[i];
    memory += columns.pod_memory_mib[i];
    pods.push(data.pod_names[i]);
  }
  const moment = (tick) => clockText(startS, tick * tickS);
  const removed = columns.node_removed[node];
  const gone = removed >= 0 && removed <= at;
  const ready = columns.node_ready[node];
  const facts = [
    ["Type", [strings[columns.node_type[node]], strings[columns.node_capacity[node]]].filter(Boolean).join(", ")],
    ["Zone", strings[columns.node_zone[node]]],
    ["Group", strings[columns.node_group[node]]],
    ["Price", columns.node_price[node] > 0 ? `${usdText(columns.node_price[node])}/h` : "not known"],
    ["CPU", `${coresText(cpu)} of ${coresText(columns.node_cpu[node])} requested`],
    ["Memory", `${memoryText(memory)} of ${memoryText(columns.node_memory_mib[node])}`],
    [
      "Here",
      columns.node_created[node] === 0
        ? "from the start"
        : `since ${moment(columns.node_created[node])}` +
          (ready < 0 ? ", never ready" : `, ready after ${spanText((ready - columns.node_created[node]) * tickS)}`),
    ],
    ["Added", strings[columns.node_why_added[node]]],
    [
      "Removed",
      removed < 0
        ? ""
        : `${moment(removed)}${strings[columns.node_why_removed[node]] ? ": " + strings[columns.node_why_removed[node]] : ""}`,
    ],
  ];
  const list = make("dl", {});
  for (const [name, value] of facts) {
    if (value) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  }
  const parts = [make("h3", {}, data.node_names[node]), list];
  if (gone) parts.push(make("p", { class: "note" }, "It is gone at this moment."));
  else if (!pods.length) parts.push(make("p", { class: "note" }, "No pods on it at this moment."));
  else {
    parts.push(make("h4", {}, pods.length === 1 ? "1 pod" : `${pods.length} pods`));
    const named = make("ul", { class: "pods" }, ...pods.slice(0, PODS_LISTED).map((pod) => make("li", {}, pod)));
    if (pods.length > PODS_LISTED) named.append(make("li", { class: "more" }, `and ${pods.length - PODS_LISTED} more`));
    parts.push(named);
  }
  return parts;
}
