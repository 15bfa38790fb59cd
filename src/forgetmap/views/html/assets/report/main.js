// Put the page together: words first, then charts and items as they are unpacked.

function showMethod() {
  const { settings, before, after, coverage } = map;
  const side = ({ name, harness, runs }) =>
    `${brief(name, 120)} (${brief(harness, 60)}, ${runs === 1 ? "1 run" : `${runs} runs`})`;
  const metrics = [...new Set(Object.values(settings.metric))];
  const rows = [
    ["before", side(before)],
    ["after", side(after)],
    [
      "metric",
      metrics.length === 1
        ? brief(metrics[0])
        : Object.entries(settings.metric)
            .map(([task, metric]) => `${brief(task, 40)}: ${brief(metric, 40)}`)
            .join("; "),
    ],
    ["correct from a score of", String(settings.threshold)],
    ["margin that would matter", percent(settings.margin)],
    ["new tasks", settings.new.length ? settings.new.map((task) => brief(task)).join(", ") : "none"],
    ["runs without noise, as you said", settings.deterministic ? "yes" : "no"],
    ["items paired by", coverage.identity],
    [
      "items",
      `${whole(coverage.items_before)} before, ${whole(coverage.items_after)} after, ${whole(coverage.matched)} compared`,
    ],
    ["task map", settings.task_map === null ? "none" : brief(settings.task_map, 80)],
    ["draws, seed", `${whole(settings.draws)}, ${settings.seed}`],
    [
      "versions",
      Object.entries(facts.versions)
        .map(([name, number]) => `${name} ${number}`)
        .join(", "),
    ],
  ];
  const grid = (head, lines, said) =>
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": said },
      make(
        "table",
        {},
        head
          ? make(
              "thead",
              {},
              make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text))),
            )
          : null,
        make(
          "tbody",
          {},
          ...lines.map(([first, ...rest]) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, first),
              ...rest.map((text) => make("td", {}, text)),
            ),
          ),
        ),
      ),
    );
  byId("method-content").append(
    make("h3", {}, "Settings"),
    grid(null, rows, "Settings"),
    make("h3", {}, "What is measured"),
    make(
      "p",
      { class: "note" },
      "p and q: an item's chance of a right answer before and after, from option probabilities or from its runs; a and b: their means; k: options shown. Gains are the same with before and after exchanged. Gained less lost is the change of accuracy, so no gain can hide a loss.",
    ),
    grid(
      ["name", "formula", "says", "assumes", "does not prove"],
      facts.estimators.map((e) => [
        e.label,
        make("code", {}, e.formula),
        e.says,
        e.assumes,
        e.does_not_prove,
      ]),
      "What is measured",
    ),
    make("h3", {}, "Intervals, tests, verdicts"),
    make(
      "p",
      { class: "note" },
      "A range has two ends. The low end is what is sure. The high end is what could be lost at most; with option probabilities it is the loss itself, and the low end leaves out what reshuffled guessing could explain. Without repeats, without option probabilities and without a second run nobody knows how much of a flip is noise, so the range is wide.",
    ),
    make(
      "p",
      { class: "note" },
      "Intervals are 95 % and cover both ends. They hold for these tasks: another draw of items. The interval for tasks like these takes the tasks as a sample. None covers training noise: another fine-tune with another seed loses other items. The test of net change is the exact sign-flip test, adjusted over tasks and over categories.",
    ),
    make(
      "p",
      { class: "note" },
      `The verdict is lost if the low end surely lies above ${percent(settings.margin)}, held if the high end surely lies below, else can't tell. With many tasks or categories the verdicts are corrected for their number. Net change is equal if it lies within the margin by two one-sided tests, else worse or better if the adjusted test rejects at 5 %.`,
    ),
    make(
      "p",
      { class: "note" },
      "No number here proves that knowledge was destroyed. A flip can come from format, length, a changed prompt or another engine: read the items, and the confounds named at the top.",
    ),
  );
}

const CHARTS = [
  showWhere,
  drawBars,
  () => drawFlow(byId("flow-group").value),
  () => byId("causes-chart") && drawCauses(causeCounts()),
];
drawAll = () => plotly && CHARTS.forEach((draw) => draw());

// The items stand behind this script in the file.
const isParsed = new Promise((done) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done);
  else done();
});

// Resolves when the browser has painted; a page in the background does not paint.
const painted = () =>
  new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, 100);
  });

async function start() {
  setUpTheme();
  showVerdict();
  setUpItems();
  await isParsed; // what is shown so far is painted meanwhile
  source = facts.remote ? new ServedItems() : await EmbeddedItems.open();
  await showItems({});
  await painted();
  performance.mark("items"); // the first view is complete: see benchmarks/report_job.py
  setUpWhere();
  showWhere();
  setUpTasks();
  showCauses();
  showMethod();
  if ((await openAddress()) || ADDRESS.test(location.hash)) byId("items").scrollIntoView();
  await loadPlotly();
  for (const draw of CHARTS) {
    await painted(); // one at a time, so that the page can be scrolled meanwhile
    draw();
  }
  await source.prepare(); // so that the first search need not wait
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  byId("basis").after(
    make(
      "p",
      { class: "notice", role: "alert" },
      `Part of this page could not be shown: ${error.message}. A current browser may help.`,
    ),
  );
});
