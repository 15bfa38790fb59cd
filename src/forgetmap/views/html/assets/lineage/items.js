// The items of a lineage: any two checkpoints side by side, all of them in the opened item.

let lineage = null;
let itemTable = null;
const WORDS_OF = { "-1": "missing", 0: "not known", 1: "known" };
const SIGNS = { "-1": "·", 0: "✗", 1: "✓" };
const OUTCOMES = [["lost", "− lost"], ["gained", "+ gained"], ["", "all that changed"]];
const LIVES = ["kept", "lost for good", "recovered", "oscillating", "learned", "learned and lost", "never known", "incomplete"];
const USUAL = { before: 0, after: 0, outcome: "lost", group: "", life: "", text: "", order: "change" };
const shown = { ...USUAL, open: "" };

const nameOfPoint = (place) => brief(lineage.checkpoints[place], 60);
const chance = (item, place) => item.chances[place] ?? Math.max(0, item.states[place]);
const changeOf = (item) => chance(item, shown.after) - chance(item, shown.before);
const addressOf = (item) => `item=${item.number}`;

// --- which items -----------------------------------------------------------------------------------

const fits = {
  lost: (item) => item.states[shown.before] === 1 && item.states[shown.after] === 0,
  gained: (item) => item.states[shown.before] === 0 && item.states[shown.after] === 1,
  "": () => true,
};
const hasLife = (item) => {
  if (!shown.life) return true;
  const [path, kind] = shown.life.split(".").map(Number);
  return item.lives[path] === kind;
};
const textOf = (item) => {
  item.searched ??= [item.prompt, item.target, item.id, lineage.tasks[item.task], ...item.answers]
    .join("\n")
    .toLowerCase();
  return item.searched;
};
const ORDERS = {
  change: changeOf,
  question: (item) => lineage.tasks[item.task],
  before: (item) => chance(item, shown.before),
  after: (item) => chance(item, shown.after),
  stages: (item) => -item.states.filter((state, place) => place && state < item.states[place - 1]).length,
};

function chosenItems() {
  const words = shown.text.toLowerCase();
  const group = shown.group === "" ? null : Number(shown.group);
  const others = lineage.items.filter(
    (item) =>
      (group === null || item.group === group) && hasLife(item) && (!words || textOf(item).includes(words)),
  );
  const key = ORDERS[shown.order.replace("-", "")];
  const turn = shown.order.startsWith("-") ? -1 : 1;
  const rows = others.filter(fits[shown.outcome]);
  const keys = new Map(rows.map((item) => [item, key(item)]));
  rows.sort((one, two) => {
    const [first, second] = [keys.get(one), keys.get(two)];
    return first < second ? -turn : first > second ? turn : one.number - two.number;
  });
  return { rows, counts: Object.fromEntries(Object.keys(fits).map((name) => [name, others.filter(fits[name]).length])) };
}

function showItems(changed = {}) {
  Object.assign(shown, changed);
  const { rows, counts } = chosenItems();
  for (const item of rows) item.whole = true;
  itemTable.show({ size: rows.length, total: rows.length, at: (index) => rows[index], load: async () => {} }, shown.order);
  itemTable.rows = rows;
  itemTable.mark(shown.open);
  byId("item-count").textContent = rows.length === 1 ? "1 item" : `${whole(rows.length)} items`;
  for (const [name, word] of OUTCOMES) {
    const input = byId("outcome").querySelector(`input[value="${name}"]`);
    input.checked = name === shown.outcome;
    input.nextSibling.textContent = `${word} ${whole(counts[name])}`;
  }
  const selects = { before: shown.before, after: shown.after, group: shown.group, life: shown.life };
  for (const [name, value] of Object.entries(selects)) byId(`item-${name}`).value = String(value);
  if (byId("item-text").value.trim() !== shown.text) byId("item-text").value = shown.text;
  showChosen();
}

// What the maps say of the two checkpoints; counts of items hold the noise of the runs.
function showChosen() {
  const pair = lineage.pairs.find(({ before, after }) => before === shown.before && after === shown.after);
  const names = `${nameOfPoint(shown.before)} → ${nameOfPoint(shown.after)}`;
  const said = (found) => `${ends(found)} % (${interval(found)})`;
  byId("chosen").replaceChildren(
    make("b", {}, names),
    pair ? unbroken(`: lost ${said(pair.lost)}, gained ${said(pair.gained)}.`) : ": not compared by a map; the items are.",
  );
}

// --- the table --------------------------------------------------------------------------------------

const ITEM_COLUMNS = [
  { name: "question", head: "question" },
  { name: "target", head: "target", fixed: true },
  { name: "before", head: "before" },
  { name: "after", head: "after" },
  { name: "change", head: "change" },
  { name: "stages", head: "all stages" },
];

function sideCell(which, item) {
  const place = shown[which];
  const state = item.states[place];
  const kind = { 1: " is-right", 0: " is-wrong" }[state] ?? "";
  const said = item.answers[place] ? brief(item.answers[place], 60) : WORDS_OF[state];
  const probability = item.chances[place];
  return make(
    "td",
    { role: "cell", class: `side${kind}` },
    labelled(which),
    make("span", { class: "said" }, `${SIGNS[state]} ${said}`),
    typeof probability === "number" ? make("span", { class: "under" }, percent(probability)) : null,
  );
}

function changeCell(item) {
  const change = changeOf(item);
  const text = percent(Math.abs(change));
  const isNone = Number.parseFloat(text) === 0;
  const kind = isNone ? "" : change < 0 ? " lost" : " won";
  return make(
    "td",
    { role: "cell", class: `change${kind}` },
    labelled("change"),
    `${isNone ? "" : change < 0 ? "−" : "+"}${text}`,
  );
}

const strip = (item) =>
  make(
    "span",
    { class: "strip", role: "img", "aria-label": item.states.map((state) => WORDS_OF[state]).join(", ") },
    ...item.states.map((state) => make("i", { class: `state-${state}` })),
  );

function itemCells(item) {
  const task = lineage.tasks[item.task];
  const id = item.id.startsWith(task) ? brief(item.id) : `${brief(task)} · ${brief(item.id)}`;
  return [
    item.prompt ? brief(withoutCue(endOf(item.prompt)), SNIPPET + 2) : id,
    item.prompt ? id : null,
    make("td", { role: "cell", class: "target" }, item.target ? labelled("target") : null, brief(item.target ?? "", 60)),
    sideCell("before", item),
    sideCell("after", item),
    changeCell(item),
    make("td", { role: "cell", class: "cause" }, strip(item)),
  ];
}

// --- the opened item --------------------------------------------------------------------------------

const NOTHING_OPEN =
  "Choose an item to see what every checkpoint answered. Keys: j and k walk, Enter opens, / searches, Escape goes back.";

function showDetail() {
  const item = lineage.items.find((one) => addressOf(one) === shown.open);
  const box = byId("item-detail");
  itemTable.mark(shown.open);
  box.replaceChildren(...(item ? detail(item) : [make("p", { class: "faint" }, NOTHING_OPEN)]));
}

function detail(item) {
  const kinds = [shown.before, shown.after].map((place) => ({ 1: "right", 0: "wrong" })[item.states[place]] ?? "other");
  const pair = (title, texts) => {
    const [before, after] = [texts[shown.before], texts[shown.after]];
    if (!before && !after) return [];
    const side = (place, part) => make("div", {}, make("h4", {}, nameOfPoint(place)), part);
    const [left, second] = compared(before, after, kinds);
    return [make("h3", {}, title), make("div", { class: "sides" }, side(shown.before, left), side(shown.after, second))];
  };
  const block = (title, text) => (text ? [make("h3", {}, title), make("pre", { tabindex: "0" }, visible(text))] : []);
  return [
    make("header", {}, make("span", { class: "where" }, `${brief(lineage.tasks[item.task])} · ${brief(item.id, 80)}`), strip(item)),
    ...block("Question", item.prompt),
    ...block("Target", item.target),
    ...pair("Answer", item.answers),
    ...pair("Response", item.responses),
    make("h3", {}, "Every checkpoint"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Every checkpoint" }, everyCheckpoint(item)),
  ];
}

function everyCheckpoint(item) {
  const hasChances = item.chances.some((value) => typeof value === "number");
  const rows = lineage.checkpoints.map((name, place) => {
    const state = item.states[place];
    const kind = { 1: "won", 0: "lost" }[state] ?? "soft";
    const status = item.statuses[place];
    const word = `${SIGNS[state]} ${WORDS_OF[state]}${status && status !== "ok" ? `, ${brief(status, 20)}` : ""}`;
    const probability = item.chances[place];
    return [
      brief(name, 60),
      make("span", { class: kind }, word),
      item.answers[place] ? brief(item.answers[place], 120) : "",
      ...(hasChances ? [typeof probability === "number" ? percent(probability) : ""] : []),
    ];
  });
  return table(["checkpoint", "outcome", "answer", ...(hasChances ? ["probability of the right answer"] : [])], rows);
}

// --- the address ------------------------------------------------------------------------------------

function keepAddress() {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(USUAL)) if (shown[name] !== value) kept.set(name, shown[name]);
  if (shown.open) kept.set(...shown.open.split("="));
  history.replaceState(null, "", `#items${kept.size ? `?${kept}` : ""}`);
}

// Show what the address names; true if it names anything.
function readAddress() {
  const [place, query] = location.hash.split("?");
  if (place !== "#items" || query === undefined) return false;
  const named = new URLSearchParams(query);
  const last = lineage.checkpoints.length - 1;
  for (const [name, value] of Object.entries(USUAL)) {
    const text = named.get(name);
    if (text === null) shown[name] = value;
    else if (typeof value === "number") shown[name] = Math.min(Math.max(Number(text) || 0, 0), last);
    else shown[name] = text;
  }
  if (!(shown.outcome in fits)) shown.outcome = USUAL.outcome;
  if (!(shown.order.replace("-", "") in ORDERS)) shown.order = USUAL.order;
  shown.open = named.has("item") ? `item=${named.get("item")}` : "";
  return true;
}

// --- export -----------------------------------------------------------------------------------------

const csvField = (value) => {
  const text = String(value ?? "");
  const plain = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text; // no formula
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

function exportItems() {
  const head = ["task", "item", "target", "before", "after", "answer_before", "answer_after", "states"];
  const lines = itemTable.rows.map((item) => [
    lineage.tasks[item.task],
    item.id,
    item.target,
    lineage.checkpoints[shown.before],
    lineage.checkpoints[shown.after],
    item.answers[shown.before],
    item.answers[shown.after],
    item.states.map((state) => (state < 0 ? "?" : state)).join(""),
  ]);
  download("items.csv", [head, ...lines].map((line) => line.map(csvField).join(",")).join("\r\n") + "\r\n");
}
