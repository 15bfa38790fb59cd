// The items of a lineage in the list that the report has: of one pair of checkpoints at a time, with
// the life of the opened item over all checkpoints. The cause of an item is its kind of life line.

let listing = null;
const unpacked = new Map(); // part -> promise of its texts

const textParts = () => [...document.querySelectorAll("script.texts")];
const textsOfPart = (part) => {
  if (!unpacked.has(part)) unpacked.set(part, unpack(textParts()[part]).then(JSON.parse));
  return unpacked.get(part);
};

const OUTCOMES = { "1 0": "forgotten", "0 1": "gained", "1 1": "retained", "0 0": "never" };

// The path whose life lines the items of a pair are told by.
const pathOfPair = ({ before, after }) => {
  const holds = ({ nodes }, node) => nodes.includes(node);
  const paths = lineage.paths;
  const together = paths.findIndex((path) => holds(path, before) && holds(path, after));
  if (holds(paths[view.path], before) && holds(paths[view.path], after)) return view.path;
  return together >= 0 ? together : paths.findIndex((path) => holds(path, after));
};

// What the report's table reads, made for one pair: its rows, those that lost most first.
function pairListing(pair) {
  const [before, after] = [listing.shares[pair.before], listing.shares[pair.after]];
  const kinds = listing.kinds[pathOfPair(pair)];
  const known = (share) => (share > 0.5 ? 1 : 0);
  const rows = listing.item
    .map((_, row) => row)
    .filter((row) => before[row] !== null && after[row] !== null)
    .sort((one, two) => after[one] - before[one] - (after[two] - before[two]) || one - two);
  const column = (values) => rows.map((row) => values[row]);
  const outcomes = rows.map((row) => OUTCOMES[`${known(before[row])} ${known(after[row])}`]);
  const causes = rows.map((row) => listing.kind_names[kinds[row]]);
  return {
    rows,
    item: column(listing.item),
    item_ref: column(listing.item_ref),
    k: rows.map((row) => lineage.options[listing.task[row]] ?? null),
    before: column(before),
    after: column(after),
    ...coded("task", column(listing.task)),
    ...coded("transition", outcomes),
    ...coded("cause", causes),
    category_of: lineage.category_of,
    groups: countGroups(column(listing.task), outcomes, causes),
  };
}

// A column as numbers, and the names that they stand for; the last one stands for none.
function coded(name, values) {
  const names = [...new Set(values)];
  const codes = new Map(names.map((value, code) => [value, code]));
  return { [name]: values.map((value) => codes.get(value)), [`${name}_names`]: [...names, null] };
}

function countGroups(...columns) {
  const groups = new Map();
  columns[0].forEach((_, row) => {
    const values = columns.map((column) => column[row]);
    const key = JSON.stringify(values);
    groups.set(key, [...values, (groups.get(key)?.at(-1) ?? 0) + 1]);
  });
  return [...groups.values()];
}

// The items of one pair; their texts are those of all checkpoints, in the order of all items.
class PairItems extends EmbeddedItems {
  constructor(pair) {
    super(pairListing(pair), textParts());
    this.pair = pair;
  }

  numberTexts() {
    const { rows } = this.listing;
    const { with_text: withText } = lineage.items;
    this.textNumber = Int32Array.from(rows, (row) => (row < withText ? row : -1));
    this.rowOfText = new Map(rows.map((row, place) => [row, place]));
  }

  textsOf(part) {
    if (!this.parts.has(part)) this.parts.set(part, this.bringTexts(part));
    return this.parts.get(part);
  }

  async bringTexts(part) {
    const { before, after } = this.pair;
    this.unpacked[part] = (await textsOfPart(part)).map(([prompt, target, said]) => {
      const [was, now] = [said[before] ?? [], said[after] ?? []];
      const told = { target, prompt_before: prompt, prompt_after: prompt };
      told.answer_before = was[0];
      told.answer_after = now[0];
      told.response_before = was[1];
      told.response_after = now[1];
      told.status_before = was[2];
      told.status_after = now[2];
      return TEXTS.map((name) => told[name] ?? null);
    });
    return this.unpacked[part];
  }
}

// --- which pair ------------------------------------------------------------------------------------

function usePair(pair) {
  source = new PairItems(pair);
  facts.groups = source.listing.groups;
  shown.filter.pair = String(pair.place);
  byId("item-pair").value = String(pair.place);
}

// Go to the items of a pair that pass some filters.
function showPairItems(pair, filter) {
  usePair(pair);
  shown.open = "";
  noItem();
  showItems({ transition: "forgotten", task: "", cause: "", text: "", ...filter }, true);
}

// The address may name another pair than the one whose items are listed.
function followPair() {
  const asked = pairs[new URLSearchParams(location.hash.split("?")[1] ?? "").get("pair")];
  if (asked && asked !== source.pair) usePair(asked);
}

async function setUpLineageItems() {
  listing = JSON.parse(await unpack(byId("listing")));
  byId("listing").remove();
  const { changed, listed, part, with_text: withText } = lineage.items;
  Object.assign(facts, { listed, part, items: listed, changed: withText, with_text: withText });
  map.tasks = Object.fromEntries(
    [...lineage.columns.category, ...lineage.columns.task].map((name) => [name, null]),
  );
  const order = [...edges(), ...pairs.filter(({ edge }) => !edge)];
  fillSelect(
    byId("item-pair"),
    order.map((pair) => [String(pair.place), pairName(pair, 30)]),
    "",
  );
  byId("item-pair").addEventListener("change", ({ target }) =>
    showPairItems(pairs[target.value], { ...shown.filter, pair: target.value }),
  );
  usual.pair = String(chosen.pair?.place ?? edges()[0].place);
  usual.transition = "forgotten";
  window.addEventListener("hashchange", followPair); // before the list follows the address
  usePair(pairs[usual.pair]);
  followPair();
  setUpItems();
  noItem();
  byId("items-lead").textContent =
    `${whole(changed)} items changed between a checkpoint and one of its parents.` +
    (listed < changed
      ? ` ${whole(listed)} of them are listed, drawn at random; --flips and --lives write all.`
      : "") +
    (withText < listed ? ` ${whole(withText)} of these have their texts here.` : "");
  await showItems({});
  await openAddress();
  window.addEventListener("hashchange", showLife);
  await showLife();
}

// --- the life of one item ----------------------------------------------------------------------------

async function showLife() {
  const [, task, item] = location.hash.match(ADDRESS) ?? [];
  const row =
    item === undefined
      ? -1
      : listing.item.findIndex(
          (name, place) =>
            name === decodeURIComponent(item) && listing.task[place] === decodeURIComponent(task),
        );
  byId("item-life").hidden = row < 0;
  if (row < 0) return;
  const { part, with_text: withText } = lineage.items;
  const [, , said] =
    row < withText ? (await textsOfPart(Math.floor(row / part)))[row % part] : [null, null, {}];
  const state = (node) => {
    const share = listing.shares[node][row];
    if (share === null) return ["missing", "?", "missing"];
    return share > 0.5 ? ["is-right", "✓", rightness(share)] : ["is-wrong", "✗", rightness(share)];
  };
  const steps = lineage.nodes.map((_, node) => {
    const [kind, sign, word] = state(node);
    return make(
      "li",
      { class: kind, title: word },
      make("a", { href: nodeAddress(node) }, `${sign} ${nameAt(node, 24)}`),
    );
  });
  const rows = lineage.nodes.map((_, node) => {
    const [kind, sign, word] = state(node);
    const [answer, response] = said[node] ?? [];
    return [
      nodeLink(node, 40),
      make("span", { class: kind }, `${sign} ${word}`),
      brief(answer ?? "–", 80),
      brief(response ?? "–", 240),
    ];
  });
  byId("item-life").replaceChildren(
    make("h3", {}, "Its life, checkpoint by checkpoint"),
    make("ul", { class: "steps" }, ...steps),
    make(
      "details",
      {},
      make("summary", {}, "What each checkpoint answered"),
      textTable(
        "What each checkpoint answered",
        ["checkpoint", "outcome", "answer", "response"],
        rows,
        [0, 1, 2, 3],
      ),
    ),
  );
}
