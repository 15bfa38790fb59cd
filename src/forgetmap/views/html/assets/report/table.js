// The columns of the items: question, target, both answers, change and cause.

// What the change is a change of.
const CHANGE_OF =
  facts.with_probability === 0
    ? "of right runs"
    : facts.with_probability === facts.items
      ? "of probability"
      : "of probability, else of right runs";

// An id that begins with its task says the task already.
function nameOf({ task, item, item_ref: reference }, most = 60) {
  const id = brief(reference ?? item, most);
  return id.startsWith(task) ? id : `${brief(task, most)} · ${id}`;
}

// "✓ Paris", and below it how probable the right answer was.
function outcomeCell(which, row) {
  const share = row[which];
  const answer = row[`answer_${which}`];
  const word = share === 1 ? "right" : share === 0 ? "wrong" : `${percent(share, 0)} of runs`;
  const isRight = share > 0.5;
  const chance = which === "before" ? chanceBefore(row) : chanceAfter(row);
  const below = hasProbability(row) ? percent(chance) : answer && share % 1 ? word : null;
  return make(
    "td",
    { role: "cell", class: `side ${isRight ? "is-right" : "is-wrong"}` },
    labelled(which),
    make("span", { class: "said" }, `${isRight ? "✓" : "✗"} ${answer ? brief(answer, 60) : word}`),
    below === null ? null : make("span", { class: "under" }, below),
  );
}

function changeCell(row) {
  const change = chanceAfter(row) - chanceBefore(row);
  const text = percent(Math.abs(change), hasProbability(row) ? 1 : 0);
  const isNone = Number.parseFloat(text) === 0;
  const kind = isNone ? "" : change < 0 ? " lost" : " won";
  return make(
    "td",
    { role: "cell", class: `change${kind}` },
    labelled("change"),
    `${isNone ? "" : change < 0 ? "−" : "+"}${text}`,
  );
}

// A server has the order of its file.
const ITEM_COLUMNS = [
  { name: TASK_ORDER, head: "question" },
  { name: "target", head: "target", fixed: true },
  { name: "before", head: "before" },
  { name: "after", head: "after" },
  { name: "change", head: "change", under: CHANGE_OF },
  { name: "cause", head: "cause" },
].map((column) => ({ ...column, fixed: column.fixed || facts.remote }));

const itemCells = (row) => [
  row.snippet ? brief(withoutCue(row.snippet), SNIPPET + 2) : nameOf(row, 80),
  row.snippet ? nameOf(row) : null,
  make("td", { role: "cell", class: "target" }, row.target ? labelled("target") : null, brief(row.target ?? "", 60)),
  outcomeCell("before", row),
  outcomeCell("after", row),
  changeCell(row),
  make("td", { role: "cell", class: "cause" }, row.cause ? brief(row.cause, 24) : ""),
];
