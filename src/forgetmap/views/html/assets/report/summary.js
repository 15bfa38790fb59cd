// The verdict, how far to trust it, and the sections that look at groups of items.

function showVerdict() {
  const cell = map.old;
  byId("models").append(
    make("b", {}, brief(map.before.name, 120)),
    " → ",
    make("b", {}, brief(map.after.name, 120)),
  );
  byId("sentence").append(unbroken(facts.finding));
  byId("basis").append(unbroken(facts.doubt));
  const items = facts.split ? ", old items" : "";
  const known = cell.lost.of_known;
  byId("tiles").append(
    tile("Verdict", verdictWord(cell, "forgetting"), verdictReason(cell)),
    ...(known && saysSomething(cell.lost)
      ? [tile("Lost of what it knew", boundOf(cell.lost) + percent(known.value), intervalOf(known), "lost")]
      : []),
    tile(`Gained${items}`, `${ends(cell.gained)}\u00a0%`, moreOf(cell.gained), "won"),
    tile(
      `Accuracy${items}`,
      `${points(cell.accuracy_before)}\u00a0→ ${percent(cell.accuracy_after)}`,
      `net change: ${verdictWord(cell, "net")}, p ${pValue(cell.p_adjusted)}. It hides what was lost and gained.`,
    ),
  );
  showForest();
  byId("trust").append(...trust());
}

// A share of what was known says something where it is exact or more than nothing.
const saysSomething = (found) => isExact(found) || Number(points(found.of_known.value)) > 0;
const boundOf = (found) =>
  isExact(found) || !isRange(found) ? "" : found.basis === "repeats" ? "at least " : "up to ";
const intervalOf = (found) => (hasInterval(found) ? `95 % interval ${interval(found)}` : "");

// The interval of a gain, its share of what is known now, and what guessing may explain.
function moreOf(found) {
  const parts = [intervalOf(found)];
  if (found.of_known && saysSomething(found))
    parts.push(`${boundOf(found)}${percent(found.of_known.value)} of what it knows`);
  if (isExact(found) && isRange(found))
    parts.push(`up to ${percent(found.high_end - found.low_end)} may be reshuffled guessing`);
  return parts.join("; ");
}

function verdictReason(cell) {
  const margin = percent(map.settings.margin);
  return {
    lost: `surely more than the margin of ${margin}`,
    held: `surely less than the margin of ${margin}`,
    undecided: `${wouldDecide(cell) || "the data do not decide"}; the margin is ${margin}`,
  }[cell.verdict.forgetting];
}

function trust() {
  const { coverage, old: cell } = map;
  const entry = (term, text, warn = false, more = []) =>
    make(
      "div",
      { class: warn ? "warn" : "" },
      make("dt", {}, term),
      make("dd", {}, unbroken(text)),
      ...more.map((line) => make("dd", {}, unbroken(line))),
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
      ? "not measured: that takes repeats, or a second run of each model."
      : `${percent(cell.noise_floor)} of items flip between two runs of one model.`;
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
    entry(
      "Which tasks the interval speaks of",
      facts.populations[0],
      false,
      facts.populations.slice(1),
    ),
    entry("Noise floor", noise, false, [
      `Raw flips, noise included: ${percent(cell.raw.lost.value)} from right to wrong, ${percent(cell.raw.gained.value)} from wrong to right.`,
    ]),
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
        `Without ${brief(cell.influence.task)} the loss would be ${percent(valueOf(cell.lost) + change)} instead of ${percent(valueOf(cell.lost))}.`,
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

const where = { measure: "lost", sort: "lost" };

function setUpWhere() {
  const defined = (name) =>
    [map.total, ...Object.values(groupCells)].some((cell) => measured(cell, "lost", name));
  choices(
    byId("estimator"),
    facts.estimators.map(({ name, label: word, needs }) => [name, word, !defined(name), needs]),
    where.measure,
    (value) => {
      where.measure = value;
      showWhere();
    },
  );
  byId("sort").addEventListener("change", (event) => {
    where.sort = event.target.value;
    showWhere();
  });
  const lead =
    `Share of items lost and gained in each ${groupWord}. A bar is full up to what is sure and pale up to what is possible; the line is the 95 % interval. The dotted line is the margin that would matter. A bar that ends in ▸ is longer than the axis.` +
    (hasCategories ? "" : " A task map would group the tasks.");
  byId("where-lead").append(unbroken(lead));
  fillSelect(
    byId("flow-group"),
    [["", "all items"], ...Object.keys(groupCells).map((name) => [name, brief(name) + groupMark(name)])],
    "",
  );
  byId("flow-group").addEventListener("change", (event) => drawFlow(event.target.value));
}

function showWhere() {
  const explained = facts.estimators.find(({ name }) => name === where.measure);
  const groups = Object.keys(groupCells).length;
  byId("groups-note").replaceChildren(
    `${explained.says} Assumes: ${explained.assumes} ` +
      "The verdict beside a row is on what was lost. * hinges on one task." +
      (groups > MOST_GROUPS
        ? ` The first ${MOST_GROUPS} of ${whole(groups)} are drawn; the table has all.`
        : ""),
  );
  byId("groups-table").replaceChildren(groupsTable(ordered(where.measure, where.sort)));
  if (plotly) drawForest(where.measure, where.sort);
}

function groupsTable(rows) {
  const both = (found) => (found ? `${ends(found)} (${interval(found)})` : "not defined");
  const share = (found) => (found ? percent(found.value) : "");
  const like = (cell) =>
    cell.like_these
      ? `${interval(cell.like_these.lost)} / ${interval(cell.like_these.gained)}`
      : "";
  const each = (cell, measure) =>
    ["lost", "gained"].map((way) => both(measured(cell, way, measure))).join(" / ");
  return table(
    [
      groupWord,
      "items",
      "lost %",
      "gained %",
      "verdict",
      "net",
      "accuracy %",
      "lost of what it knew",
      "tasks like these: lost / gained %",
      "raw flips % 1→0 / 0→1",
      "as published %",
      "p adjusted",
      "what would decide",
    ],
    rows.map(([name, cell, mark]) => [
      brief(name) + mark,
      whole(cell.n),
      both(cell.lost),
      both(cell.gained),
      verdictWord(cell, "forgetting"),
      verdictWord(cell, "net"),
      `${points(cell.accuracy_before)} → ${points(cell.accuracy_after)}`,
      share(cell.lost.of_known),
      like(cell),
      each(cell, "raw"),
      cell.paper ? each(cell, "paper") : "not defined",
      pValue(cell.p_adjusted),
      wouldDecide(cell),
    ]),
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

const rightOf = (check) => (check ? `${percent(check.value)} (${interval(check)})` : "not known");

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
  // Options that were scored have no text, and so no cause of form: nothing there can be misread.
  const { answers, form, formal, right } = facts.checks;
  const read = rows.some(([cause]) => formal.includes(cause));
  if (read)
    byId("causes-lead").append(
      ` The rules can err: on ${whole(answers)} labelled answers they told form from another answer ` +
        `rightly in ${percent(form)}, and a cause as often as the table says.`,
    );
  byId("causes-table").append(
    table(
      [
        ...["cause", "items", "share of these", "right less often without it"],
        ...(read ? ["such a cause is right in"] : []),
        "",
      ],
      rows.map(([cause, count]) => [
        brief(cause),
        whole(count),
        percent(count / lost),
        percent((lost - count) / map.total.n),
        ...(read ? [rightOf(right[cause])] : []),
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
