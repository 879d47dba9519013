// Puts the parts of a report together.

async function start() {
  startTheme();
  startCopying();
  startSaving();
  const labels = $$("#wall-run option").map((option) => option.textContent);
  if (!labels.length) return;
  if (typeof DecompressionStream === "undefined") {
    for (const id of ["#charts", "#wall-stage", "#journal-list"]) {
      $(id).replaceChildren(
        make(
          "p",
          { class: "empty" },
          "This browser is too old to unpack the data. The tables are complete; any browser since 2023 shows the rest.",
        ),
      );
    }
    return;
  }
  const span = await startCharts(labels);
  const journal = new JournalView(span);
  const wall = new WallView(span, journal);
  journal.onMoment = (run, atS) => wall.show(run, atS);
  await wall.choose(0);
  await journal.choose(0);
  document.documentElement.dataset.ready = "yes";
}

start();
