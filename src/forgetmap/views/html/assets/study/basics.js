// What a study holds, and small things that all parts of its page use.

let study = null; // what the page shows, as Python gave it
let pairs = []; // with cells as objects

const DIRECTIONS = [
  { key: "lost", colour: "lost", sign: "−", side: "left", hue: "to-worse" },
  { key: "gained", colour: "won", sign: "+", side: "right", hue: "to-better" },
];
const [LOST, GAINED] = DIRECTIONS;
const MOST_CHOSEN = 6; // pairs in one radar; more cannot be told apart
const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "cross", "x", "star"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const TINTS = 6;
const tint = (place, alpha = 1) => colour(`tint-${(place % TINTS) + 1}`, alpha);
const symbol = (place) => SYMBOLS[place % SYMBOLS.length];

// A cell as an object; Python sends a row of numbers.
function cellOf(row) {
  if (!row) return null;
  const [n, accuracyBefore, accuracyAfter, change, ...rest] = row;
  const basis = rest[10];
  const share = ([low_end, high_end, low, high, deviation]) => ({
    ...{ low_end, high_end, low, high, deviation, basis },
  });
  return {
    ...{ n, accuracyBefore, accuracyAfter, change },
    lost: share(rest.slice(0, 5)),
    gained: share(rest.slice(5, 10)),
    forgetting: rest[11],
    net: rest[12],
    marks: rest[13] ?? [],
  };
}

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

const signed = (direction, found) => `${direction.sign}${points(valueOf(found))}`;
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

function badgeOf(text, kind) {
  const shade = { lost: " bad", worse: " bad", held: " good", better: " good", equal: " good" }[
    kind
  ];
  return make("span", { class: `badge${shade ?? ""}` }, text);
}

// The name of a pair, as a link to its page where there is one.
const pairLink = (pair, most = 60, place = "") =>
  pair.page
    ? make("a", { href: pair.page + place }, brief(pair.name, most))
    : make("span", {}, brief(pair.name, most));

// A table of texts; `text` names the columns that are not numbers.
function textTable(label_, head, rows, text = [0]) {
  const kind = (index) => (text.includes(index) ? "text" : "");
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label_ },
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...head.map((word, i) => make("th", { scope: "col", class: kind(i) }, word)),
        ),
      ),
      make(
        "tbody",
        {},
        ...rows.map((row) =>
          make("tr", {}, ...row.map((part, i) => make("td", { class: kind(i) }, part))),
        ),
      ),
    ),
  );
}

// Room between an axis and its numbers, so that those at the corner do not touch.
const apart = () => ({ ticks: "outside", ticklen: 7, tickcolor: "rgba(0,0,0,0)" });

const notice = (text) => make("p", { class: "notice" }, text);

// Where a chart has nothing to draw, it says why.
function showInstead(name, reason) {
  if (plotly && byId(`${name}-chart`).data) plotly.purge(byId(`${name}-chart`));
  byId(`${name}-chart`).replaceChildren();
  for (const place of ["role", "aria-label"]) byId(`${name}-chart`).removeAttribute(place);
  byId(`${name}-caption`).replaceChildren(reason);
  byId(`${name}-figure`).classList.add("nothing");
}
const showAgain = (name) => byId(`${name}-figure`).classList.remove("nothing");

// --- pictures made by hand ---------------------------------------------------------------------

function shape(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 13, weight = 400) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// A text on one line, cut in the middle so that it fits: names often differ at their ends.
function fitted(text, room, size = 13) {
  const line = brief(text, 160);
  if (textWidth(line, size) <= room) return line;
  const cut = (kept) =>
    `${line.slice(0, Math.ceil(kept / 2))}…${line.slice(line.length - Math.floor(kept / 2))}`;
  let [low, high] = [0, line.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(cut(middle), size) <= room) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

function depthOf(share) {
  let depth = 0;
  while (depth < study.steps.length && share >= study.steps[depth]) depth += 1;
  return depth;
}

// The colour that a heat map of the style sheet has at a depth.
function heatColour(hue, depth) {
  const name = `${hue} depth-${depth}`;
  if (!colours.has(name)) {
    const probe = document.body.appendChild(make("i", { class: name }));
    colours.set(name, getComputedStyle(probe).backgroundColor);
    probe.remove();
  }
  return colours.get(name);
}
