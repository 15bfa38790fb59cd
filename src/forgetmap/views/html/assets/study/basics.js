// What a study holds, and small things that all parts of its page use.

let study = null; // what the page shows, as Python gave it
let pairs = []; // with cells as objects

const MOST_CHOSEN = 6; // pairs in one radar; more cannot be told apart
const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "cross", "x", "star"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const TINTS = 6;
const tint = (place, alpha = 1) => colour(`tint-${(place % TINTS) + 1}`, alpha);
const symbol = (place) => SYMBOLS[place % SYMBOLS.length];

async function openStudy() {
  study = JSON.parse(await unpack(byId("study")));
  byId("study").remove();
  pairs = study.pairs.map((pair, place) => ({
    ...pair,
    place,
    old: cellOf(pair.old),
    new: cellOf(pair.new),
    category: study.cells.category[place].map(cellOf),
    task: study.cells.task[place].map(cellOf),
  }));
}

// --- words -------------------------------------------------------------------------------------

const overRuns = ({ deviation }) => `± ${points(deviation)} over runs`;
function withInterval(found) {
  if (hasInterval(found)) return `${ends(found)} % (${interval(found)})`;
  return `${ends(found)} % (${found.deviation === null ? "" : `${overRuns(found)}, `}no interval)`;
}
const verdictOf = (cell) =>
  cell.forgetting ? study.words.forgetting[cell.forgetting] : "not available";
const netOf = (cell) => (cell.net ? study.words.net[cell.net] : "not available");
const NOT_KNOWN = "not available";
const orNot = (value, show) => (value === null || value === undefined ? NOT_KNOWN : show(value));
const learnedBy = (pair) => (pair.new ? pair.new.change : null);
const plusMinus = (share, digits = 1) => {
  const text = points(Math.abs(share), digits);
  return Number(text) === 0 ? text : `${share < 0 ? "−" : "+"}${text}`;
};
const estimateText = (found, digits = 1) =>
  found
    ? `${plusMinus(found.value, digits)} (${plusMinus(found.low, digits)} to ${plusMinus(found.high, digits)})`
    : NOT_KNOWN;
const shareText = (found) =>
  found ? `${points(found.value)} (${points(found.low)} to ${points(found.high)})` : NOT_KNOWN;

// An attribute as people write it, as in Python: 7B, 0.5, 1e-05.
function showValue(value) {
  if (typeof value !== "number") return brief(value, 40);
  const unit = [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
  ].find(([size]) => Math.abs(value) >= size);
  const short = (number, digits) => String(Number(number.toPrecision(digits)));
  return unit ? short(value / unit[0], 4) + unit[1] : short(value, 6);
}

// The name of a column, and whether it was meant to be learned.
const titleOf = (name) =>
  name + (Object.hasOwn(study.taught[state.by], name) ? study.taught[state.by][name] : "");

const attribute = (name) => study.attributes.find((one) => one.name === name);
const valueIn = (pair, name) =>
  Object.hasOwn(pair.attributes, name) ? pair.attributes[name] : undefined;
const valueText = (pair, name) =>
  valueIn(pair, name) === undefined ? "none" : showValue(valueIn(pair, name));

function cellWords(pair, column, cell) {
  if (!cell) return [`${brief(pair.name, 80)}: ${brief(column, 80)}`, "not compared in this pair"];
  const items = cell.n === null ? "items not known" : `${whole(cell.n)} items`;
  const accuracy =
    cell.accuracyBefore === null
      ? "accuracy not available"
      : `accuracy ${points(cell.accuracyBefore)} → ${percent(cell.accuracyAfter)}`;
  return [
    `${brief(pair.name, 80)}: ${brief(column, 80)}`,
    `lost −${withInterval(cell.lost)}`,
    `gained +${withInterval(cell.gained)}`,
    `${items}, ${accuracy}`,
    cell.forgetting
      ? `verdict: ${verdictOf(cell)}; net ${netOf(cell)}`
      : "verdict: not available, since there are no items behind the numbers",
    ...cell.marks.map((mark) =>
      Object.hasOwn(study.marks, mark)
        ? `${brief(mark, 40)}: ${brief(study.marks[mark], 200)}`
        : brief(mark, 40),
    ),
  ];
}

// --- parts of the page -------------------------------------------------------------------------

// The name of a pair, as a link to its page where there is one.
const pairLink = (pair, most = 60, place = "") =>
  pair.page
    ? make("a", { href: pair.page + place }, brief(pair.name, most))
    : make("span", {}, brief(pair.name, most));

// Room between an axis and its numbers, so that those at the corner do not touch.
const apart = () => ({ ticks: "outside", ticklen: 7, tickcolor: "rgba(0,0,0,0)" });

// Where a chart has nothing to draw, it says why.
function showInstead(name, reason) {
  if (plotly && byId(`${name}-chart`).data) plotly.purge(byId(`${name}-chart`));
  byId(`${name}-chart`).replaceChildren();
  for (const place of ["role", "aria-label"]) byId(`${name}-chart`).removeAttribute(place);
  byId(`${name}-caption`).replaceChildren(reason);
  byId(`${name}-figure`).classList.add("nothing");
}
const showAgain = (name) => byId(`${name}-figure`).classList.remove("nothing");
