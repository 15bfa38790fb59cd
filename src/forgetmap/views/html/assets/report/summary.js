// The verdict, how far to trust it, and the sections that look at groups of items.

function showVerdict() {
  const cell = map.total;
  byId("models").append(
    make("b", {}, brief(map.before.name, 120)),
    " → ",
    make("b", {}, brief(map.after.name, 120)),
  );
  const together = facts.sentence.replace(/ %|(?<=\d) to (?=-?\d)/g, (gap) =>
    gap.replaceAll(" ", "\u00a0"),
  );
  byId("sentence").append(together); // no line breaks inside of "2.0 to 4.0 %"
  byId("basis").append(facts.basis);
  const beside = (estimator, direction) =>
    `95 % interval ${interval(estimator)}` +
    (cell.headline === "raw" ? "" : `; raw flips ${percent(cell[direction].raw.value)}`);
  byId("tiles").append(
    tile("Forgotten", percent(forgot(cell).value), beside(forgot(cell), "forgetting"), "lost"),
    tile("Gained", percent(gained(cell).value), beside(gained(cell), "backward_transfer"), "won"),
    tile(
      "Accuracy",
      `${points(cell.accuracy_before)} → ${percent(cell.accuracy_after)}`,
      `change ${cell.change.value > 0 ? "+" : ""}${points(cell.change.value)} points (${interval(cell.change)})`,
    ),
    tile(
      "Verdict",
      `${cell.verdict.forgetting}, ${cell.verdict.net}`,
      `forgetting; net change, p ${pValue(cell.p_adjusted)}; margin ${percent(map.settings.margin)}`,
    ),
  );
  byId("trust").append(...trust());
}

function trust() {
  const { coverage, total: cell } = map;
  const entry = (term, text, warn = false, more = []) =>
    make(
      "div",
      { class: warn ? "warn" : "" },
      make("dt", {}, term),
      make("dd", {}, text),
      ...more.map((line) => make("dd", {}, line)),
    );
  const missing = [
    ["only before", coverage.only_before],
    ["only after", coverage.only_after],
    ["conflicting", coverage.conflicts],
    ["unscored", coverage.unscored],
    ["duplicate rows", coverage.duplicates],
  ]
    .filter(([, count]) => count)
    .map(([word, count]) => `${whole(count)} ${word}`);
  const noise =
    cell.noise_floor === null
      ? "not measured: it takes repeated runs on both sides."
      : `${percent(cell.noise_floor)} of items flip between two runs of one model.`;
  const bounds = cell.forgetting.guessing_bounds;
  const guessing =
    bounds && cell.noise_floor === null
      ? [
          `Given lucky guesses, between ${points(bounds[0])} and ${percent(bounds[1])} were truly lost.`,
        ]
      : [];
  const confounds = map.confounds.map(
    (found) =>
      `${brief(found.setting, 80)}: ${settingText(found.before)} / ${settingText(found.after)}`,
  );
  const entries = [
    entry(
      "Coverage",
      `${whole(coverage.matched)} items in ${whole(Object.keys(map.tasks).length)} tasks compared, paired by ${coverage.identity}.`,
      missing.length > 0,
      missing.length ? [`Not compared: ${missing.join(", ")}.`] : [],
    ),
    entry("Noise floor", noise, false, guessing),
    entry(
      "Confounds",
      confounds.length
        ? `The two runs differ in ${confounds.length === 1 ? "one setting" : `${confounds.length} settings`}:`
        : "none found: the logs name no setting that differs.",
      confounds.length > 0,
      confounds,
    ),
    entry(
      "Smallest change it could have shown",
      `${percent(cell.mde)} of net accuracy, with 80 % power.`,
    ),
  ];
  if (hinges(cell)) {
    const change = cell.influence.change;
    entries.push(
      entry(
        "Hinges on one task",
        `Without ${brief(cell.influence.task)} forgetting would be ${percent(forgot(cell).value + change)} instead of ${percent(forgot(cell).value)}.`,
        true,
      ),
    );
  }
  if (map.warnings.length)
    entries.push(
      entry(
        "Notes",
        brief(map.warnings[0], 300),
        false,
        map.warnings.slice(1).map((text) => brief(text, 300)),
      ),
    );
  return entries;
}

function settingText(value) {
  const text = brief(typeof value === "string" ? value : JSON.stringify(value), 60);
  return /^[0-9a-f]{32,}…?$/.test(text) ? `${text.slice(0, 10)}…` : text;
}

// --- where -------------------------------------------------------------------------------------

const where = { estimator: map.settings.headline, view: "forest", sort: "forgetting" };

function setUpWhere() {
  const defined = (name) =>
    [map.total, ...Object.values(groupCells)].some((cell) => estimate(cell, "forgetting", name));
  choices(
    byId("estimator"),
    facts.estimators.map(({ name }) => [name, name, !defined(name)]),
    where.estimator,
    (value) => {
      where.estimator = value;
      showWhere();
    },
  );
  const few = Object.keys(groupCells).length < 3;
  choices(
    byId("view"),
    [
      ["forest", "forest", false],
      ["radar", "radar", few],
    ],
    "forest",
    (value) => {
      where.view = value;
      showWhere();
    },
  );
  byId("sort").addEventListener("change", (event) => {
    where.sort = event.target.value;
    showWhere();
  });
  byId("where-lead").append(
    hasCategories
      ? "Share of items lost and won in each category, with 95 % intervals. The dotted line is the margin that would matter."
      : "Share of items lost and won in each task, with 95 % intervals. The dotted line is the margin that would matter. A task map would group the tasks.",
  );
  fillSelect(
    byId("flow-group"),
    [["", "all items"], ...Object.keys(groupCells).map((name) => [name, brief(name)])],
    "",
  );
  byId("flow-group").addEventListener("change", (event) => drawFlow(event.target.value));
}

function showWhere() {
  const explained = facts.estimators.find(({ name }) => name === where.estimator);
  byId("groups-note").replaceChildren(
    `${explained.name}: ${explained.says} Assumes: ${explained.assumes} ` +
      "The verdict beside a row uses its headline estimator. * hinges on one task." +
      (Object.keys(groupCells).length > MOST_GROUPS
        ? ` The first ${MOST_GROUPS} of ${whole(Object.keys(groupCells).length)} are drawn; the table has all.`
        : ""),
  );
  const rows = ordered(where.estimator, where.sort);
  const cells = (cell, direction) => {
    const found = estimate(cell, direction, where.estimator);
    return found ? `${points(found.value)} (${interval(found)})` : "not defined";
  };
  byId("groups-table").replaceChildren(
    table(
      [
        groupWord,
        "items",
        "forgotten %",
        "gained %",
        "accuracy %",
        "p adjusted",
        "forgetting",
        "net",
      ],
      rows.map(([name, cell]) => [
        brief(name),
        whole(cell.n),
        cells(cell, "forgetting"),
        cells(cell, "backward_transfer"),
        `${points(cell.accuracy_before)} → ${points(cell.accuracy_after)}`,
        pValue(cell.p_adjusted),
        cell.verdict.forgetting,
        cell.verdict.net,
      ]),
    ),
  );
  if (plotly) (where.view === "radar" ? drawRadar : drawForest)(where.estimator, where.sort);
}

function table(head, rows) {
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make(
      "tbody",
      {},
      ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell)))),
    ),
  );
}

// --- causes ------------------------------------------------------------------------------------

function causeCounts() {
  const counts = new Map();
  for (const [, transition, cause, count] of facts.groups) {
    if (transition === "forgotten")
      counts.set(cause ?? NO_CAUSE, (counts.get(cause ?? NO_CAUSE) ?? 0) + count);
  }
  return [...counts].sort((one, two) => two[1] - one[1]);
}

function showCauses() {
  const rows = causeCounts();
  const lost = rows.reduce((sum, [, count]) => sum + count, 0);
  if (!lost) {
    byId("causes-lead").append("No item was lost.");
    byId("causes-chart").remove();
    byId("causes-table").remove();
    return;
  }
  byId("causes-lead").append(
    `${whole(lost)} items are right less often than before. Each gets a cause by rules on its answer; ` +
      `"wrong" is another answer, "${NO_CAUSE}" means that the log holds no text to judge by.`,
  );
  byId("causes-table").append(
    table(
      ["cause", "items", "share of losses", "items lost without it", ""],
      rows.map(([cause, count]) => [
        brief(cause),
        whole(count),
        percent(count / lost),
        percent((lost - count) / map.total.n),
        make(
          "button",
          {
            class: "link",
            type: "button",
            onclick: () =>
              showItems(
                {
                  transition: "forgotten",
                  cause: cause === NO_CAUSE ? "-" : cause,
                  task: "",
                  text: "",
                },
                true,
              ),
          },
          "show the items",
        ),
      ]),
    ),
  );
}
