// What was lost or gained, as numbers and bars.

const DIRECTIONS = [
  { key: "lost", colour: "lost", sign: "−", side: "left", shift: 0.17, hue: "to-worse" },
  { key: "gained", colour: "won", sign: "+", side: "right", shift: -0.17, hue: "to-better" },
];
const [LOST, GAINED] = DIRECTIONS;

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

const interval = (estimate) => unbroken(`${points(estimate.low)} to ${points(estimate.high)}`);
// What others published may have no interval.
const hasInterval = ({ low, high }) => typeof low === "number" && typeof high === "number";
const pValue = (p) => (p < 0.001 ? "<0.001" : p.toFixed(3));

// Exact where the chances of every item are known; the low end then leaves out guessing.
const isExact = ({ basis }) => basis === "probabilities" || basis === "deterministic";
const isRange = (found) => points(found.low_end) !== points(found.high_end);
// As Range.value in Python: the low end of single runs may be a net number, which hides losses.
const valueOf = (found) => (found.basis === "repeats" ? found.low_end : found.high_end);
const ends = (found) =>
  isRange(found) ? `${points(found.low_end)}–${points(found.high_end)}` : points(valueOf(found));

// With its sign, in percent: nothing lost has none.
function signed(direction, found) {
  const text = points(valueOf(found));
  return Number(text) ? direction.sign + text : text;
}

// A verdict as a badge; `verdict` says which way it goes.
const GOOD = new Set(["held", "better", "equal"]);
const BAD = new Set(["lost", "worse"]);
function badge(text, verdict) {
  const shade = GOOD.has(verdict) ? " good" : BAD.has(verdict) ? " bad" : "";
  return make("span", { class: `badge${shade}` }, text);
}

// Round numbers from 0 to the first one that is not less than the most.
function roundTicks(most, wanted = 4) {
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}
// A share on an axis, in percent.
const tickText = (share) => points(share, Number.isInteger(Math.round(share * 1e6) / 1e4) ? 0 : 1);

// The range as a small picture: full up to the low end, pale up to the high end, and the interval.
// What is longer than the widest ends in a mark that says so.
function rangeBar(found, kind, widest, margin) {
  const place = (share) => Math.min(100, (100 * share) / widest);
  const part = (name, from, to) => {
    const element = make("i", { class: name });
    element.style.left = `${place(from)}%`;
    element.style.width = `${place(to) - place(from)}%`;
    return element;
  };
  return make(
    "span",
    { class: `span of-${kind}`, "aria-hidden": "true" },
    part("most", 0, found.high_end),
    part("sure", 0, found.low_end),
    hasInterval(found) ? part("interval", found.low, found.high) : null,
    margin === undefined ? null : part("margin", margin, margin),
    found.high_end > widest ? make("b", { class: "beyond" }, "▸") : null,
  );
}

function rangeCell(found, kind, widest) {
  return make(
    "td",
    {},
    ends(found),
    rangeBar(found, kind, widest),
    make("span", { class: "under" }, hasInterval(found) ? interval(found) : ""),
  );
}
