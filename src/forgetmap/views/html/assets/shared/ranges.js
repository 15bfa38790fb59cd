// What was lost or gained, as numbers.

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
