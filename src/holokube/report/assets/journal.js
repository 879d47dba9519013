// The decision journal: search and filters over a list of which only the visible rows exist.

const PRINTED_MOST = 80;
const LATEST = 3;
const TAIL = 12;
// Words of questions: whoever asks "why did node x stay?" looks for node, x and stay.
const ASKING = new Set(
  ("a about an and are at by can did do does for from had has have how i in is it its my of on or our so that the " +
    "then there this to was we were what when where which who why with").split(" "),
);

class JournalView {
  constructor(span) {
    this.span = span;
    this.run = 0;
    this.chosen = -1;
    this.found = new Int32Array(0);
    this.subjects = new Map();
    this.lower = new Map();
    this.onMoment = () => {};
    this.list = $("#journal-list");
    this.refresh = oncePerFrame(() => this.search());
    this.redraw = oncePerFrame(() => this.rows());
    this.listen();
  }

  listen() {
    for (const id of ["component", "kind", "from", "to", "zoomed"]) {
      $(`#journal-${id}`).addEventListener("change", this.refresh);
    }
    $("#journal-search").addEventListener("input", this.refresh);
    $("#journal-run").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    $("#journal-clear").addEventListener("click", () => {
      this.clear();
      this.refresh();
    });
    this.span.spanListeners.push(() => {
      if ($("#journal-zoomed").checked) this.refresh();
    });
    this.list.addEventListener("scroll", this.redraw, { passive: true });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const row = event.target.closest("[data-place]");
      if (row) this.select(Number(row.dataset.place));
    });
    new ResizeObserver(this.redraw).observe(this.list);
    addEventListener("beforeprint", () => this.print());
    const stamp = (atS) => new Date((this.span.startS + atS) * 1000).toISOString().slice(0, 16);
    for (const id of ["#journal-from", "#journal-to"]) {
      $(id).min = stamp(0);
      $(id).max = stamp(this.span.durationS + 60);
    }
  }

  clear() {
    for (const id of ["search", "component", "kind", "from", "to"]) $(`#journal-${id}`).value = "";
    $("#journal-zoomed").checked = false;
  }

  async choose(run) {
    this.run = run;
    $("#journal-run").value = String(run);
    this.data = await block(`journal-${run}`);
    if (!this.lower.has(run))
      this.lower.set(
        run,
        this.data.strings.map((one) => one.toLowerCase()),
      );
    this.fillChoice("component", "all");
    this.fillChoice("kind", "everything");
    this.search();
  }

  fillChoice(name, all) {
    const select = $(`#journal-${name}`);
    const before = select.value;
    const places = [...new Set(this.data.columns[name])];
    const names = places.map((place) => this.data.strings[place]).sort();
    select.replaceChildren(
      make("option", { value: "" }, all),
      ...names.map((one) => make("option", { value: one }, one || "–")),
    );
    select.value = names.includes(before) ? before : "";
  }

  // Looks something up, as the node wall asks for it.
  async look(run, text) {
    this.clear();
    $("#journal-search").value = text;
    await this.choose(run);
    $("#journal").scrollIntoView({ behavior: reducedMotion.matches ? "auto" : "smooth" });
    this.list.focus({ preventScroll: true });
  }

  // Strings are compared once each, however many entries share them.
  search() {
    const { columns, strings, tick_s: tickS } = this.data;
    const lower = this.lower.get(this.run);
    const typed = $("#journal-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const component = strings.indexOf($("#journal-component").value);
    const kind = strings.indexOf($("#journal-kind").value);
    const byComponent = $("#journal-component").selectedIndex > 0;
    const byKind = $("#journal-kind").selectedIndex > 0;
    const [from, to] = this.times().map((atS) => atS / tickS);
    const searched = [
      columns.subject,
      columns.decision,
      columns.reasons,
      columns.component,
      columns.kind,
      columns.facts,
    ];
    const matching = (words) => {
      const hits = words.map((word) => lower.map((one) => one.includes(word)));
      const found = new Int32Array(columns.at.length);
      let count = 0;
      for (let i = 0; i < columns.at.length; i++) {
        if (columns.at[i] < from || columns.at[i] > to) continue;
        if (byComponent && columns.component[i] !== component) continue;
        if (byKind && columns.kind[i] !== kind) continue;
        if (!hits.every((hit) => searched.some((column) => hit[column[i]]))) continue;
        found[count++] = i;
      }
      return found.subarray(0, count);
    };
    this.found = matching(typed);
    this.meant = "";
    if (!this.found.length) {
      const asked = asWords(typed);
      if (asked.length && asked.join(" ") !== typed.join(" ")) {
        this.found = matching(asked);
        if (this.found.length) this.meant = asked.join(" ");
      }
    }
    this.tell();
    this.chosen = -1;
    this.list.scrollTop = 0;
    this.rows();
    this.describe();
  }

  times() {
    const { startS, fromS, toS, durationS } = this.span;
    if ($("#journal-zoomed").checked) return [fromS, toS];
    const at = (id, otherwise) => {
      const value = $(id).value;
      return value ? Date.parse(value + "Z") / 1000 - startS : otherwise;
    };
    return [at("#journal-from", -1), at("#journal-to", durationS + 1e9)];
  }

  tell() {
    const total = this.data.columns.at.length;
    const left = this.data.left_out ? ` The ${countText(this.data.left_out)} before these are left out.` : "";
    const status = $("#journal-status");
    if (!total) status.textContent = "No decisions were taken in this run.";
    else if (this.found.length === total) status.textContent = `${countText(total)} decisions.${left}`;
    else {
      const meant = this.meant ? ` with: ${this.meant}` : "";
      status.textContent = `${countText(this.found.length)} of ${countText(total)} decisions${meant}.${left}`;
    }
    this.list.classList.toggle("nothing", this.found.length === 0);
    this.list.dataset.nothing = total
      ? "Nothing matches. Fewer words or a wider time may help."
      : "No decisions were taken in this run.";
  }

  rowHeight() {
    return matchMedia("(max-width: 640px)").matches ? 64 : 34;
  }

  rows() {
    if (!this.data) return;
    const height = this.rowHeight();
    const space = $("#journal-space");
    space.style.height = `${this.found.length * height}px`;
    const first = Math.max(0, Math.floor(this.list.scrollTop / height) - 4);
    const last = Math.min(this.found.length, first + Math.ceil(this.list.clientHeight / height) + 9);
    const rows = $("#journal-rows");
    rows.style.transform = `translateY(${first * height}px)`;
    const shown = [];
    for (let place = first; place < last; place++) shown.push(this.row(place));
    rows.replaceChildren(...shown);
  }

  entry(i) {
    const { columns, strings, tick_s: tickS } = this.data;
    const text = (name) => strings[columns[name][i]];
    return {
      atS: columns.at[i] * tickS,
      component: text("component"),
      kind: text("kind"),
      subject: text("subject"),
      decision: text("decision"),
      reasons: text("reasons"),
      facts: text("facts"),
    };
  }

  row(place) {
    const entry = this.entry(this.found[place]);
    return make(
      "div",
      {
        class: "entry",
        role: "option",
        id: `entry-${place}`,
        "data-place": place,
        "aria-selected": String(place === this.chosen),
        "aria-setsize": this.found.length,
        "aria-posinset": place + 1,
      },
      make("span", { class: "when num" }, clockText(this.span.startS, entry.atS, true)),
      make("span", { class: "kind" }, entry.kind),
      subjectOf(entry.subject),
      make(
        "span",
        { class: "decision" },
        make("b", {}, entry.decision),
        entry.reasons ? " " + entry.reasons.replaceAll("\n", "; ") : "",
      ),
    );
  }

  select(place) {
    this.chosen = clamp(place, 0, this.found.length - 1);
    const height = this.rowHeight();
    const top = this.chosen * height;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    else if (top + height > this.list.scrollTop + this.list.clientHeight) {
      this.list.scrollTop = top + height - this.list.clientHeight;
    }
    this.rows();
    this.list.setAttribute("aria-activedescendant", `entry-${this.chosen}`);
    this.describe();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / this.rowHeight()) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!this.found.length || !(event.key in steps)) return;
    event.preventDefault();
    const step = steps[event.key];
    this.select(step === -Infinity ? 0 : step === Infinity ? this.found.length - 1 : this.chosen + step);
  }

  describe() {
    const panel = $("#journal-panel");
    if (this.chosen < 0) {
      panel.replaceChildren(
        make("p", { class: "note" }, this.found.length ? "Choose an entry to read all of it." : ""),
      );
      return;
    }
    const entry = this.entry(this.found[this.chosen]);
    const facts = make("dl", {});
    for (const [name, value] of [
      ["When", `${clockText(this.span.startS, entry.atS, true)} (${elapsedText(entry.atS)})`],
      ["By", entry.component],
      ["About", `${entry.kind} ${entry.subject}`],
    ]) {
      facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    }
    for (const line of entry.facts.split("\n").filter(Boolean)) {
      const cut = line.indexOf(": ");
      facts.append(make("div", {}, make("dt", {}, line.slice(0, cut)), make("dd", {}, line.slice(cut + 2))));
    }
    const reasons = entry.reasons.split("\n").filter(Boolean);
    const same = make("button", { type: "button", class: "quiet" }, `All about ${entry.subject}`);
    same.addEventListener("click", () => this.look(this.run, entry.subject));
    const there = make("button", { type: "button", class: "quiet" }, "Node wall at that time");
    there.addEventListener("click", () => {
      this.onMoment(this.run, entry.atS);
      $("#wall").scrollIntoView({ behavior: reducedMotion.matches ? "auto" : "smooth" });
    });
    panel.replaceChildren(
      make("h3", {}, entry.decision),
      ...(reasons.length ? [make("ul", { class: "reasons" }, ...reasons.map((one) => make("li", {}, one)))] : []),
      facts,
      make("div", { class: "buttons" }, same, there),
    );
  }

  // The last decisions about a subject before a time.
  async latest(run, subject, atS) {
    const data = await block(`journal-${run}`);
    if (!this.subjects.has(run)) {
      const index = new Map();
      data.columns.subject.forEach((place, i) => {
        if (!index.has(place)) index.set(place, []);
        index.get(place).push(i);
      });
      this.subjects.set(run, { index, places: new Map(data.strings.map((one, place) => [one, place])) });
    }
    const { index, places } = this.subjects.get(run);
    const entries = (index.get(places.get(subject)) || []).filter((i) => data.columns.at[i] * data.tick_s <= atS);
    return entries
      .slice(-LATEST)
      .reverse()
      .map((i) =>
        make(
          "p",
          {},
          make("span", { class: "num" }, clockText(this.span.startS, data.columns.at[i] * data.tick_s)),
          " ",
          make("b", {}, data.strings[data.columns.decision[i]]),
          " " + data.strings[data.columns.reasons[i]].replaceAll("\n", "; "),
        ),
      );
  }

  // Paper does not scroll: the entries that are found, as far as that is sensible.
  print() {
    if (!this.data) return;
    const table = $("#journal-printed");
    const rows = [...this.found.subarray(0, PRINTED_MOST)].map((i) => {
      const entry = this.entry(i);
      return make(
        "tr",
        {},
        make("td", { class: "num" }, clockText(this.span.startS, entry.atS, true)),
        make("td", {}, entry.kind),
        make("td", {}, entry.subject),
        make("td", {}, make("b", {}, entry.decision), " " + entry.reasons.replaceAll("\n", "; ")),
      );
    });
    if (this.found.length > PRINTED_MOST) {
      rows.push(make("tr", {}, make("td", { colspan: 4 }, `and ${countText(this.found.length - PRINTED_MOST)} more`)));
    }
    table.replaceChildren(make("tbody", {}, ...rows));
  }
}

// What of a question is worth looking for: not its small words, its punctuation, or the end of stayed and removes.
function asWords(typed) {
  return typed
    .map((word) => word.replace(/^["'(]+|["'?!.,;:)]+$/g, ""))
    .filter((word) => word && !ASKING.has(word))
    .map((word) => word.replace(/^(keep(s|ing)?|kept)$/, "stay"))
    .map((word) => word.replace(/^(stay|remov|evict|pend)(s|es|ed|ing|e)$/, "$1"));
}

// Names of one group begin alike: where there is no room for all of one, its end is shown.
function subjectOf(name) {
  const cut = Math.max(0, name.length - TAIL);
  return make(
    "span",
    { class: "subject", title: name },
    make("span", { class: "start" }, name.slice(0, cut)),
    make("span", { class: "end" }, name.slice(cut)),
  );
}
