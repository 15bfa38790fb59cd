// The table of tasks: sorted by a click on a head, filtered by name and verdict.

const flagged = new Map(); // task -> groups whose forgetting hinges on it
for (const [name, cell] of [["all items", map.total], ...Object.entries(map.categories)]) {
  if (hinges(cell))
    flagged.set(cell.influence.task, [...(flagged.get(cell.influence.task) ?? []), name]);
}

const category = (name) => map.task_categories[name] ?? "";
const TASK_COLUMNS = [
  { head: "task", value: ([name]) => name.toLowerCase(), text: true },
  { head: "n", value: ([, cell]) => cell.n },
  { head: "k", value: ([, cell]) => (cell.k ? Math.min(...Object.keys(cell.k)) : Infinity) },
  { head: "accuracy %", value: ([, cell]) => cell.change.value },
  { head: "forgotten %", value: ([, cell]) => forgot(cell).value },
  { head: "gained %", value: ([, cell]) => gained(cell).value },
  { head: "raw flips %", value: ([, cell]) => cell.forgetting.raw.value },
  { head: "p adj.", value: ([, cell]) => cell.p_adjusted },
  { head: "could show", value: ([, cell]) => cell.mde },
  {
    head: "verdict",
    value: ([, cell]) => `${cell.verdict.forgetting} ${cell.verdict.net}`,
    text: true,
  },
  { head: "influence", value: ([name]) => flagged.get(name)?.length ?? 0, text: true },
];
const taskOrder = {
  column: TASK_COLUMNS.findIndex(({ head }) => head === "forgotten %"),
  down: true,
};
const spread = {
  low: Math.min(
    0,
    ...Object.values(map.tasks).flatMap((cell) => [forgot(cell).low, gained(cell).low]),
  ),
  high: Math.max(
    0.01,
    ...Object.values(map.tasks).flatMap((cell) => [forgot(cell).high, gained(cell).high]),
  ),
};

// The interval as a small picture; the numbers stand beside it.
function intervalBar(found, kind) {
  const place = (value) => `${(100 * (value - spread.low)) / (spread.high - spread.low)}%`;
  const [line, dot] = [make("i"), make("b")];
  line.style.left = place(found.low);
  line.style.width = `${(100 * (found.high - found.low)) / (spread.high - spread.low)}%`;
  dot.style.left = place(found.value);
  return make("span", { class: `span of-${kind}`, "aria-hidden": "true" }, line, dot);
}

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
      make("span", { class: "under" }, brief(category(name), 40)),
    ),
    make("td", {}, whole(cell.n)),
    make("td", {}, optionCounts(cell)),
    make("td", {}, `${points(cell.accuracy_before)} → ${points(cell.accuracy_after)}`),
    make(
      "td",
      {},
      points(forgot(cell).value),
      intervalBar(forgot(cell), "lost"),
      make("span", { class: "under" }, interval(forgot(cell))),
    ),
    make(
      "td",
      {},
      points(gained(cell).value),
      intervalBar(gained(cell), "won"),
      make("span", { class: "under" }, interval(gained(cell))),
    ),
    make(
      "td",
      {},
      `${points(cell.forgetting.raw.value)} / ${points(cell.backward_transfer.raw.value)}`,
    ),
    make("td", {}, pValue(cell.p_adjusted)),
    make("td", {}, percent(cell.mde)),
    make("td", { class: "text" }, badge(cell.verdict.forgetting), " ", badge(cell.verdict.net)),
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
  for (const id of ["task-text", "task-forgetting", "task-net"])
    byId(id).addEventListener("input", showTasks);
  byId("task-note").append(
    `Forgotten and gained by ${map.settings.headline} where a task allows it, else by raw flips; 95 % intervals below. k: options shown. ` +
      "p adj.: paired test of the net change, Benjamini-Hochberg over tasks. could show: smallest net change seen with 80 % power. " +
      "influence: without this task the forgetting of the group named would change by more than half.",
  );
  showTasks();
}
