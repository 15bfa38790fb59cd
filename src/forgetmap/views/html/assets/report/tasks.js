// The table of tasks: sorted by a click on a head, filtered by name and verdict.

const flagged = new Map(); // task -> groups whose loss hinges on it
for (const [name, cell] of [
  [facts.split ? "old items" : "all items", map.old],
  ...Object.entries(map.categories),
]) {
  if (hinges(cell))
    flagged.set(cell.influence.task, [...(flagged.get(cell.influence.task) ?? []), name]);
}

const category = (name) => map.task_categories[name] ?? "";
const TASK_COLUMNS = [
  { head: "task", value: ([name]) => name.toLowerCase(), text: true },
  { head: "n", value: ([, cell]) => cell.n },
  { head: "lost %", value: ([, cell]) => valueOf(cell.lost) + cell.lost.high_end / 1e6 },
  { head: "gained %", value: ([, cell]) => valueOf(cell.gained) + cell.gained.high_end / 1e6 },
  { head: "verdict", value: ([, cell]) => cell.verdict.forgetting, text: true },
  { head: "net", value: ([, cell]) => cell.verdict.net, text: true },
  { head: "accuracy %", value: ([, cell]) => cell.accuracy_after },
  { head: "raw flips %", value: ([, cell]) => cell.raw.lost.value },
  { head: "published %", value: ([, cell]) => cell.paper?.lost.value ?? -1 },
  { head: "k", value: ([, cell]) => (cell.k ? Math.min(...Object.keys(cell.k)) : Infinity) },
  { head: "p adj.", value: ([, cell]) => cell.p_adjusted },
  { head: "could show", value: ([, cell]) => cell.mde },
  { head: "influence", value: ([name]) => flagged.get(name)?.length ?? 0, text: true },
];
const taskOrder = {
  column: TASK_COLUMNS.findIndex(({ head }) => head === "lost %"),
  down: true,
};
const widest = Math.max(
  0.01,
  ...Object.values(map.tasks).flatMap((cell) => [cell.lost.high, cell.gained.high]),
);

const flips = (both) =>
  both ? `${points(both.lost.value)} / ${points(both.gained.value)}` : "";

function taskRow([name, cell]) {
  const groups = flagged.get(name);
  const cells = [
    make(
      "td",
      { class: "name" },
      make(
        "button",
        {
          class: "link",
          type: "button",
          title: "Show the items of this task",
          onclick: () => showItems({ transition: "", task: name, cause: "", text: "" }, true),
        },
        brief(name, 80),
      ),
      facts.marks.task[name],
      make("span", { class: "under" }, brief(category(name), 40)),
    ),
    make("td", {}, whole(cell.n)),
    rangeCell(cell.lost, "lost", widest),
    rangeCell(cell.gained, "won", widest),
    make(
      "td",
      { class: "text verdict" },
      verdictBadge(cell, "forgetting"),
      make("span", { class: "under" }, wouldDecide(cell)),
    ),
    make("td", { class: "text net" }, verdictBadge(cell, "net")),
    make("td", {}, `${points(cell.accuracy_before)} → ${points(cell.accuracy_after)}`),
    make("td", {}, flips(cell.raw)),
    make("td", {}, flips(cell.paper)),
    make("td", {}, optionCounts(cell)),
    make("td", {}, pValue(cell.p_adjusted)),
    make("td", {}, percent(cell.mde)),
    make(
      "td",
      { class: "text" },
      groups
        ? make(
            "span",
            { class: "badge bad" },
            `decides ${groups.map((group) => brief(group, 30)).join(", ")}`,
          )
        : "",
    ),
  ];
  return make("tr", {}, ...cells);
}

function showTasks() {
  const text = byId("task-text").value.trim().toLowerCase();
  const wanted = (name, cell) =>
    (!text || name.toLowerCase().includes(text) || category(name).toLowerCase().includes(text)) &&
    ["forgetting", "net"].every(
      (kind) => !byId(`task-${kind}`).value || cell.verdict[kind] === byId(`task-${kind}`).value,
    );
  const { value } = TASK_COLUMNS[taskOrder.column];
  const rows = Object.entries(map.tasks).filter(([name, cell]) => wanted(name, cell));
  rows.sort((one, two) => {
    const [first, second] = [value(one), value(two)];
    const order = first < second ? -1 : first > second ? 1 : 0;
    return (taskOrder.down ? -order : order) || one[0].localeCompare(two[0]);
  });
  byId("task-table")
    .querySelector("tbody")
    .replaceChildren(...rows.map(taskRow));
  byId("task-count").textContent =
    `${whole(rows.length)} of ${whole(Object.keys(map.tasks).length)} tasks`;
  byId("task-table")
    .querySelectorAll("th")
    .forEach((head, index) => {
      if (index === taskOrder.column)
        head.setAttribute("aria-sort", taskOrder.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
}

function setUpTasks() {
  const heads = TASK_COLUMNS.map(({ head, text }, index) =>
    make(
      "th",
      { scope: "col", class: text ? "text" : "" },
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            taskOrder.down = index === taskOrder.column ? !taskOrder.down : !text;
            taskOrder.column = index;
            showTasks();
          },
        },
        head,
      ),
    ),
  );
  byId("task-table").append(
    make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody")),
  );
  byId("task-columns").addEventListener("change", ({ target }) =>
    byId("task-table").classList.toggle("all", target.checked),
  );
  for (const id of ["task-text", "task-forgetting", "task-net"])
    byId(id).addEventListener("input", showTasks);
  byId("task-note").append(
    unbroken("lost, gained: a bar is full up to what is sure and pale up to what is possible; 95 % intervals below. Gains do not make up for losses. k: options shown. " +
      "raw flips: right to wrong / wrong to right, with the noise of the runs. published: the same, corrected as Harmon et al. do. " +
      "p adj.: paired test of the change of accuracy, Benjamini-Hochberg over tasks. could show: smallest such change seen with 80 % power. " +
      "influence: without this task the loss of the group named would change by more than half."),
  );
  showTasks();
}
