// What a lineage holds, what is chosen in it, and small things that all parts of its page use.

let lineage = null; // what the page shows, as Python gave it
let pairs = []; // with cells as objects
const map = { tasks: {} }; // what the list of items reads of a report
const facts = { page: 50, remote: false, groups: [], with_probability: 0, why: "life line" };

async function openLineage() {
  lineage = JSON.parse(await unpack(byId("lineage")));
  byId("lineage").remove();
  pairs = lineage.pairs.map((pair, place) => ({
    ...pair,
    place,
    old: cellOf(pair.old),
    new: cellOf(pair.new),
    category: pair.category.map(cellOf),
    task: pair.task.map(cellOf),
  }));
  if (lineage.columns.category.length) view.by = "category";
}

const edges = () => pairs.filter(({ edge }) => edge);
const againstRoot = (node) => pairs.find(({ root, after }) => root && after === node);
const pairOf = (before, after) =>
  pairs.find((pair) => pair.before === before && pair.after === after);
const nameAt = (node, most = 60) => brief(lineage.nodes[node].name, most);
const pairName = ({ before, after }, most = 40) =>
  `${nameAt(before, most)} → ${nameAt(after, most)}`;

// --- groups --------------------------------------------------------------------------------------

// What is shown of the groups: categories where there are some, else tasks.
const view = { by: "task", show: "both", against: "parent", sort: "lost", find: "", path: 0 };

const groupNames = () => lineage.columns[view.by];
const isTaught = (name) => lineage.taught[view.by].includes(name);
const titleOf = (name) => brief(name, 60) + (isTaught(name) ? " (new)" : "");
const oldWord = () => (pairs.some((pair) => pair.new) ? "old skills" : "all items");

const verdictBadge = (cell) => badge(lineage.words.forgetting[cell.forgetting], cell.forgetting);

// A number with its sign and colour, and how far it can be trusted.
const amount = (direction, found) =>
  make("span", { class: direction.colour }, `${signed(direction, found)}\u00a0%`);
const within = (found) => [
  isRange(found)
    ? make("span", {}, unbroken(`${points(found.low_end)} to ${points(found.high_end)}`))
    : null,
  make("span", {}, unbroken(`95 %: ${interval(found)}`)),
];

const pairWords = (pair) =>
  `${pairName(pair)}: lost ${ends(pair.old.lost)} %, gained ${ends(pair.old.gained)} %, verdict ${lineage.words.forgetting[pair.old.forgetting]}`;

// --- what is chosen: a pair or a checkpoint, in the address ----------------------------------------

const chosen = { pair: null, node: null };

const addressOf = (...names) => `#${names.map((name) => encodeURIComponent(name)).join("/")}`;
const pairAddress = ({ before, after }) =>
  addressOf("pair", lineage.nodes[before].name, lineage.nodes[after].name);
const nodeAddress = (node) => addressOf("checkpoint", lineage.nodes[node].name);

const pairLink = (pair, most) => make("a", { href: pairAddress(pair) }, pairName(pair, most));
const nodeLink = (node, most) => make("a", { href: nodeAddress(node) }, nameAt(node, most));

// What the address names; nothing where it names something else.
function readAddress() {
  const parts = location.hash.slice(1).split("/");
  const places = parts.slice(1).map((part) => {
    try {
      const name = decodeURIComponent(part);
      return lineage.nodes.findIndex((node) => node.name === name);
    } catch {
      return -1; // an address that nobody wrote here
    }
  });
  if (parts[0] === "pair" && places.length === 2)
    return { pair: pairOf(...places) ?? null, node: null };
  if (parts[0] === "checkpoint" && places[0] >= 0) return { pair: null, node: places[0] };
  return { pair: null, node: null };
}
