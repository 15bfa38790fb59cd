// The leaderboard: rank 1 lost least. Ranks that cannot be told apart are shown as a range.

const rankKey = (pair) => pair.standing?.rank ?? Infinity;
function boardColumns() {
  const attributes = study.attributes.map(({ name, numeric }) => ({
    id: `a.${name}`,
    head: brief(name, 20),
    value: (pair) => valueIn(pair, name),
    text: !numeric,
    cell: (pair) =>
      make(
        "td",
        { class: numeric ? "" : "text" },
        valueIn(pair, name) === undefined ? "" : valueText(pair, name),
      ),
  }));
  const widest = Math.max(
    0.01,
    ...pairs.flatMap(({ old }) => [
      old.lost.high ?? old.lost.high_end,
      old.gained.high ?? old.gained.high_end,
    ]),
  );
  return [
    {
      id: "rank",
      head: "rank",
      value: rankKey,
      cell: (pair) => make("td", {}, rankText(pair), rankBar(pair)),
    },
    {
      id: "name",
      head: "pair",
      text: true,
      value: (pair) => pair.name.toLowerCase(),
      cell: nameCell,
    },
    {
      id: "lost",
      head: "lost %",
      value: (pair) => valueOf(pair.old.lost),
      cell: (pair) => shareCell(pair.old.lost, "lost", widest),
    },
    {
      id: "gained",
      head: "gained %",
      value: (pair) => -valueOf(pair.old.gained),
      cell: (pair) => shareCell(pair.old.gained, "won", widest),
    },
    {
      id: "learned",
      head: "learned",
      value: (pair) => -(learnedBy(pair) ?? -Infinity),
      cell: (pair) => make("td", {}, learnedBy(pair) === null ? "" : plusMinus(learnedBy(pair))),
    },
    {
      id: "net",
      head: "net",
      value: (pair) => -pair.old.change,
      cell: (pair) => make("td", {}, plusMinus(pair.old.change)),
    },
    {
      id: "hid",
      head: "hid",
      value: (pair) => -(pair.standing?.hidden ?? 0),
      cell: (pair) =>
        make(
          "td",
          {},
          orNot(pair.standing, ({ hidden }) => points(hidden)),
        ),
    },
    {
      id: "verdict",
      head: "verdict",
      text: true,
      value: (pair) => pair.old.forgetting ?? "",
      cell: (pair) =>
        make("td", { class: "text verdict" }, badge(verdictOf(pair.old), pair.old.forgetting)),
    },
    ...attributes,
    {
      id: "marks",
      head: "marks",
      text: true,
      value: (pair) => pair.old.marks.join(" "),
      cell: (pair) => make("td", { class: "text" }, brief(pair.old.marks.join(" "), 80)),
    },
  ].filter(({ id }) => SHOWN[id]?.() ?? true);
}

// Columns that only some studies have.
const SHOWN = {
  learned: canLearn,
  verdict: () => pairs.some(({ old }) => old.forgetting),
  marks: () => pairs.some(({ old }) => old.marks.length),
};

// What was published has a deviation over runs in place of an interval.
function shareCell(found, kind, widest) {
  const cell = rangeCell(found, kind, widest);
  if (!hasInterval(found) && found.deviation !== null) cell.lastChild.append(overRuns(found));
  return cell;
}

const rankText = ({ standing }) => {
  if (!standing) return NOT_KNOWN;
  const { rank, best, worst } = standing;
  return best === worst ? String(rank) : `${rank} (${best}–${worst})`;
};

function rankBar({ standing }) {
  if (!standing || study.source) return null;
  const all = Math.max(pairs.length, 2) - 1;
  const bar = make("i");
  bar.style.left = `${(100 * (standing.best - 1)) / pairs.length}%`;
  bar.style.width = `${(100 * (standing.worst - standing.best + 1)) / pairs.length}%`;
  const dot = make("i", { class: "dot" });
  dot.style.left = `${(100 * (standing.rank - 1)) / all}%`;
  return make("span", { class: "ranks", "aria-hidden": "true" }, bar, dot);
}

function nameCell(pair) {
  const box = make("input", {
    type: "checkbox",
    "aria-label": `Compare ${brief(pair.name, 60)}`,
    checked: state.pair.includes(pair.name),
    onchange: (event) => {
      if (!togglePair(pair.name)) event.target.checked = false;
    },
  });
  return make(
    "td",
    { class: "text name" },
    box,
    " ",
    pairLink(pair, 80),
    pair.standing?.pareto
      ? make("span", { class: "star", title: "no other pair lost less and learned more" }, " ★")
      : null,
    pair.confounds.length
      ? make("span", { class: "under" }, `settings differ: ${brief(pair.confounds.join(", "), 80)}`)
      : null,
  );
}

function drawBoard() {
  const columns = boardColumns();
  const sorted = columns.find(({ id }) => id === state.sort) ?? columns[0];
  const list = [...wantedPairs()].sort(
    (one, two) =>
      compare(sorted.value(one), sorted.value(two)) || compare(rankKey(one), rankKey(two)),
  );
  if (state.down) list.reverse();
  const head = ({ id, head: word, text }) =>
    make(
      "th",
      {
        scope: "col",
        class: text ? "text" : "",
        ...(id === sorted.id ? { "aria-sort": state.down ? "descending" : "ascending" } : {}),
      },
      make(
        "button",
        {
          type: "button",
          onclick: () => choose({ sort: id, down: id === sorted.id && !state.down ? "yes" : "" }),
        },
        word,
      ),
    );
  byId("board-table").replaceChildren(
    make(
      "table",
      { class: "board" },
      make("thead", {}, make("tr", {}, ...columns.map(head))),
      make(
        "tbody",
        {},
        ...list.map((pair) => make("tr", {}, ...columns.map(({ cell }) => cell(pair)))),
      ),
    ),
  );
}

function setUpBoard() {
  const published = study.source !== null;
  byId("board-lead").append(
    (published
      ? "Ranks are by the published numbers alone. Without items nobody can say which ranks can be told apart, and there are no verdicts. "
      : `Rank 1 lost least; in brackets, and as a bar, the ranks that cannot be told apart (${brief(study.answers.compared_by, 200)}). `) +
      (SHOWN.marks() ? "Marks are explained in the notes below. " : "") +
      "★ no other pair lost less and learned more. hid: points of loss and gain that cancel out in the average. Tick pairs to set them side by side.",
  );
  if (!study.failures.length) return;
  byId("board-failures").append(
    make("h3", {}, `${study.failures.length} could not be compared`),
    textTable(
      "Pairs that could not be compared",
      ["pair", "why"],
      study.failures.map(({ name, reason }) => [brief(name, 80), brief(reason, 300)]),
      [0, 1],
    ),
  );
}
