// Two logs in, what was lost and gained out. The queries are those of the Python package: recipes.json
// is written by docs/make_drop.py, which records them as they run.

import * as duckdb from "@duckdb/duckdb-wasm";
import { HISTOGRAM_COLUMNS, mapOf, sumsByTask } from "./estimates.js";
import { asCsv, BadLog, COLUMNS, readLog } from "./read.js";
import { brief, byId, endOf, make, percent, points, setUpTheme, SNIPPET, whole, withoutCue } from "./shared.js";

const SIDES = ["before", "after"];
const MOST_ITEMS = 50;
const EXAMPLE = { before: "smollm2-before.parquet", after: "smollm2-airports-sft-0.parquet" };
const logs = {};

const say = (text, isWrong = false) => {
  byId("said").textContent = text;
  byId("said").classList.toggle("wrong", isWrong);
};
const here = (name) => new URL(name, import.meta.url).href;

// --- the database ------------------------------------------------------------------------------

// The worker is made from our own file as a blob: so this page's policy holds for it, too.
async function openDatabase() {
  const script = await (await fetch(here("duckdb.worker.js"))).blob();
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const database = new duckdb.AsyncDuckDB(new duckdb.VoidLogger(), new Worker(address));
  await database.instantiate(here("duckdb.wasm"));
  const connection = await database.connect();
  await connection.query("SET autoinstall_known_extensions = false");
  await connection.query("SET autoload_known_extensions = false");
  return { database, connection };
}

let opening = null;
async function ask(sql) {
  const { connection } = await opening;
  return (await connection.query(sql)).toArray().map((row) => row.toJSON());
}

async function load(side, rows) {
  const { database } = await opening;
  const file = `${side}.csv`;
  await database.registerFileText(file, asCsv(rows));
  const types = Object.entries(COLUMNS).map(([name, kind]) => `'${name}': '${kind}'`);
  await ask(
    `CREATE OR REPLACE TABLE ${side}_rows AS
     SELECT * REPLACE (coalesce(item, hash(name)) AS item)
     FROM read_csv('${file}', header = true, auto_detect = false, delim = ',', quote = '"',
                   escape = '"', nullstr = '\\N', columns = {${types.join(", ")}})`,
  );
  await database.dropFile(file);
}

// What a log holds, as far as it decides on the queries.
async function stockOf(side) {
  const [found] = await ask(
    `SELECT count(*)::INT AS n, count(item)::INT AS items, count(cluster)::INT AS clusters,
            count(gold_probability)::INT AS probabilities,
            count(option_probabilities)::INT AS options, max(repeat)::INT AS repeats,
            min(score) AS low, max(score) AS high,
            count(DISTINCT (task, item, repeat))::INT AS distinct_items,
            count(DISTINCT task)::INT AS tasks, count(DISTINCT (task, metric))::INT AS metrics
     FROM ${side}_rows`,
  );
  return found;
}

function check(name, stock) {
  const beyond = "; use forgetmap compare";
  if (stock.metrics > stock.tasks) throw new BadLog(`${name}: has several metrics of one task${beyond}`);
  if (stock.items < stock.n) throw new BadLog(`${name}: holds items without content${beyond}`);
  if (stock.clusters) throw new BadLog(`${name}: names clusters of items${beyond}`);
  if (stock.distinct_items < stock.n) throw new BadLog(`${name}: has an item twice in one run${beyond}`);
  if (stock.low < 0 || stock.high > 1) throw new BadLog(`${name}: its scores are not from 0 to 1${beyond}`);
}

// --- what is shown -----------------------------------------------------------------------------

async function compare(fresh) {
  say("Reading …");
  opening ??= openDatabase();
  const stocks = [];
  for (const [number, side] of SIDES.entries()) {
    await load(`s${number}`, await readLog(logs[side]));
    stocks.push(await stockOf(`s${number}`));
    check(logs[side].name, stocks[number]);
  }
  const both = (name) => stocks.every((stock) => stock[name] > 0);
  const chances = both("options") ? "options" : both("probabilities") ? "probabilities" : "plain";
  const recipes = await (await fetch(here("recipes.json"))).json();
  const recipe = recipes[stocks.some(({ repeats }) => repeats > 0) ? "repeats" : "single"][chances];
  for (const sql of recipe.views) await ask(sql);
  const names = Array.from({ length: HISTOGRAM_COLUMNS }, (_, place) => `c${place}`); // some are alike
  const texts = `SELECT COLUMNS(*)::VARCHAR FROM (${recipe.histogram}) AS found(${names})`;
  const sums = sumsByTask(await ask(texts));
  if (!sums.size) throw new BadLog("the logs have no item in common: are these logs of the same tasks?");
  for (const sql of recipe.listing) await ask(sql);
  showItems(await ask(`${recipe.items} LIMIT ${MOST_ITEMS}`));
  show(sums, fresh);
  say("");
}

// Names come from logs: a shell must take them for nothing else.
const forShell = (name) => (/^\w[\w./-]*$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`);
const shownShare = ({ lost, raw }) => lost ?? raw.lost;

// Show the map; tasks that the training was meant to teach stand apart, so they dilute no loss.
function show(sums, fresh) {
  const map = mapOf(sums, fresh);
  const { total, old, tasks } = map;
  const shown = old ?? total;
  const isExact = shown.lost !== null;
  const [lost, gained] = isExact ? [shown.lost, shown.gained] : [shown.raw.lost, shown.raw.gained];
  const what = `${whole(shown.n)}${fresh.size && old ? " old" : ""} items`;
  byId("finding").textContent = isExact
    ? `Lost ${percent(lost)}, gained ${percent(gained)} of ${what}`
    : `${percent(lost)} of ${what} went from right to wrong, ${percent(gained)} from wrong to right`;
  byId("basis").textContent =
    (isExact
      ? "From the probabilities of the options. "
      : "As counted: the noise of the runs is in these numbers. ") +
    `Accuracy ${points(shown.accuracy_before)} → ${percent(shown.accuracy_after)}. ` +
    "Gains do not make up for losses. Tick the tasks that the training was meant to teach: they are then told apart.";
  showTasks(map, isExact, fresh, (task, isFresh) => {
    if (isFresh) fresh.add(task);
    else fresh.delete(task);
    show(sums, fresh);
  });
  const named = [...fresh].map((task) => ` --new ${forShell(task)}`).join("");
  const files = SIDES.map((side) => forShell(logs[side].name)).join(" ");
  byId("command").textContent = `forgetmap compare ${files}${named} --report map.html`;
  byId("result").hidden = false;
  document.documentElement.dataset.map = JSON.stringify(map); // for those who look closer
}

function showTasks(map, isExact, fresh, tick) {
  const groups = [["Old items", fresh.size ? map.old : null], ["New items", map.new], ["All items", map.total]];
  const rows = Object.entries(map.tasks).sort(([, one], [, two]) => shownShare(two) - shownShare(one));
  const shares = ({ lost, gained, raw }) => [
    ...(isExact ? [signed("lost", lost), signed("won", gained)] : []),
    signed("lost", raw.lost),
    signed("won", raw.gained),
  ];
  const box = (task) =>
    make("input", {
      type: "checkbox",
      checked: fresh.has(task),
      "aria-label": `${brief(task, 80)} is new`,
      onchange: ({ target }) => tick(task, target.checked),
    });
  const line = ([name, cell], last) => [
    brief(name, 80),
    whole(cell.n),
    ...shares(cell),
    `${points(cell.accuracy_before)} → ${percent(cell.accuracy_after)}`,
    last,
  ];
  byId("tasks").replaceChildren(
    table(
      ["task", "items", ...(isExact ? ["lost", "gained"] : []), "right → wrong", "wrong → right", "accuracy", "new"],
      [
        ...groups.filter(([, cell]) => cell).map((group) => line(group, "")),
        ...rows.map((row) => line(row, box(row[0]))),
      ],
    ),
  );
}

function showItems(items) {
  byId("items").replaceChildren(
    table(["question", "target", "before", "after", "change"], items.map((item) => [
      brief(withoutCue(endOf(item.prompt_before)) || `${item.task} · ${item.item_ref}`, SNIPPET + 2),
      brief(item.target ?? "", 60),
      make("span", { class: "won" }, `✓ ${brief(item.answer_before ?? "right", 60)}`),
      make("span", { class: "lost" }, `✗ ${brief(item.answer_after ?? "wrong", 60)}`),
      signed("lost", item.fall),
    ])),
  );
}

// A share that was lost or gained, with its sign. The groups of a map may lack it.
function signed(kind, share) {
  if (share === null) return "";
  const sign = points(share) === points(0) ? "" : kind === "lost" ? "−" : "+";
  return make("span", { class: kind }, `${sign}${percent(Math.abs(share))}`);
}

function table(heads, rows) {
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell))))),
  );
}

// --- files come in -----------------------------------------------------------------------------

// `taught` are tasks that are known to be new.
async function take(side, file, taught = []) {
  logs[side] = file;
  const slot = document.querySelector(`[data-side=${side}]`);
  slot.classList.add("full");
  slot.querySelector(".name").textContent = `${brief(file.name, 80)}, ${whole(file.size / 1000)} kB`;
  byId("result").hidden = true;
  if (!SIDES.every((each) => logs[each])) return say("Now the other log.");
  try {
    await compare(new Set(taught));
  } catch (error) {
    say(error instanceof BadLog ? error.message : `The logs cannot be mapped here (${error.message}); use forgetmap compare`, true);
  }
}

for (const side of SIDES) {
  const slot = document.querySelector(`[data-side=${side}]`);
  byId(side).addEventListener("change", ({ target }) => target.files[0] && take(side, target.files[0]));
  slot.addEventListener("dragover", () => slot.classList.add("over"));
  for (const end of ["dragleave", "drop"]) slot.addEventListener(end, () => slot.classList.remove("over"));
  slot.addEventListener("drop", ({ dataTransfer }) => dataTransfer.files[0] && take(side, dataTransfer.files[0]));
}
// A file that misses its place must not replace the page.
for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());

byId("example").addEventListener("click", async () => {
  for (const [side, name] of Object.entries(EXAMPLE)) {
    const content = await (await fetch(here(`example/${name}`))).blob();
    await take(side, new File([content], name), ["airports"]);
  }
});
setUpTheme();
document.documentElement.dataset.ready = "true";
