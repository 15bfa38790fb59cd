// What the report shows, and small things that all of its parts use.

const map = JSON.parse(byId("map").textContent);
const facts = JSON.parse(byId("facts").textContent);

const optionCounts = (cell) => (cell.k ? Object.keys(cell.k).join(", ") : "open");

// --- what was lost and gained ------------------------------------------------------------------

// What a cell lost or gained: two ends and an interval; null where the measure is not defined.
function measured(cell, direction, measure = "lost") {
  if (measure === "lost") return cell[direction];
  const found = cell[measure]?.[direction];
  return found ? { ...found, low_end: found.value, high_end: found.value } : null;
}

// The most lost or gained first; of equals the one that may be more.
const byLoss = (direction, measure) => (one, two) => {
  const [first, second] = [one, two].map((cell) => measured(cell, direction, measure));
  if (!first || !second) return (first ? 0 : 1) - (second ? 0 : 1);
  return valueOf(second) - valueOf(first) || second.high_end - first.high_end;
};

// Leaving one task out would change the loss by more than half.
const hinges = (cell) =>
  cell.influence !== null && Math.abs(cell.influence.change) > valueOf(cell.lost) / 2;

// --- verdicts ----------------------------------------------------------------------------------

const verdictWord = (cell, kind) => facts.verdicts[kind][cell.verdict[kind]];
const wouldDecide = ({ verdict }) =>
  verdict.would_decide ?? "";

const verdictBadge = (cell, kind) => badge(verdictWord(cell, kind), cell.verdict[kind]);

// What the charts and lists are about: categories where there are some, else tasks.
const hasCategories = Object.keys(map.categories).length > 0;
const groupCells = hasCategories ? map.categories : map.tasks;
const groupWord = hasCategories ? "category" : "task";
const groupMark = (name) => facts.marks[groupWord][name] ?? "";

// The cells that sum up the map, as [name, cell].
const totals = [
  ...(facts.split
    ? [
        ["Old items", map.old],
        ["New items", map.new],
      ]
    : []),
  ["All items", map.total],
  ...(hasCategories ? [["Mean of categories", map.macro]] : []),
];
