// Where it was lost: groups by steps. A cell has what was lost and what was gained, each by itself.

const MOST_ROWS = 80; // more would be slow; the search finds the others

const heatPairs = () => pairs.filter(({ edge, root }) => (view.against === "root" ? root : edge));

// Groups that the search finds, in order; `sort` is lost, gained, name, or the place of a pair.
function heatRows(columns) {
  const words = view.find.toLowerCase();
  const most = (place, key) =>
    Math.max(
      -1,
      ...columns.map((pair) => (pair[view.by][place] ? valueOf(pair[view.by][place][key]) : -1)),
    );
  const rows = groupNames()
    .map((name, place) => ({ name, place }))
    .filter(({ name }) => name.toLowerCase().includes(words));
  const worth = ({ place }) => {
    if (view.sort === "lost" || view.sort === "gained") return most(place, view.sort);
    const cell = pairs[view.sort]?.[view.by][place];
    return cell ? valueOf(cell.lost) : -1;
  };
  if (view.sort === "name") return rows.sort((one, two) => one.name.localeCompare(two.name));
  const worths = new Map(rows.map((row) => [row, worth(row)]));
  return rows.sort(
    (one, two) => worths.get(two) - worths.get(one) || one.name.localeCompare(two.name),
  );
}

function heatCell(pair, cell, name) {
  if (!cell) return make("td", { class: "none" }, "–");
  const directions = DIRECTIONS.filter(({ key }) => view.show === "both" || view.show === key);
  const said = `${titleOf(name)}, ${pairName(pair)}: lost ${ends(cell.lost)} % (${interval(cell.lost)}), gained ${ends(cell.gained)} % (${interval(cell.gained)}), verdict ${lineage.words.forgetting[cell.forgetting]}`;
  const kind = cell.forgetting === "lost" ? " sure" : "";
  return make(
    "td",
    { class: `cell${kind}`, title: said },
    make(
      "button",
      {
        type: "button",
        class: "halves-of",
        "aria-label": said,
        onclick: () =>
          showPairItems(pair, {
            task: name,
            transition: view.show === "gained" ? "gained" : "forgotten",
          }),
      },
      ...directions.map((direction) =>
        make(
          "span",
          {
            class: `${direction.hue} depth-${depthOf(valueOf(cell[direction.key]), lineage.steps)}`,
          },
          signed(direction, cell[direction.key]),
        ),
      ),
    ),
  );
}

function drawHeat() {
  const columns = heatPairs();
  const rows = heatRows(columns);
  const shownRows = rows.slice(0, MOST_ROWS);
  const head = (pair) =>
    make(
      "th",
      { scope: "col", "aria-sort": String(pair.place) === view.sort ? "descending" : null },
      make("a", { href: pairAddress(pair), title: pairName(pair, 200) }, nameAt(pair.after, 22)),
      make("span", { class: "under" }, `from ${nameAt(pair.before, 18)}`),
      make(
        "button",
        {
          type: "button",
          class: "sort",
          "aria-label": `Sort by ${pairName(pair)}`,
          onclick: () => setView({ sort: String(pair.place) }),
        },
        String(pair.place) === view.sort ? "↓" : "↕",
      ),
    );
  byId("heat-table").replaceChildren(
    make(
      "table",
      { class: `heat show-${view.show}` },
      make(
        "thead",
        {},
        make("tr", {}, make("th", { scope: "col" }, view.by), ...columns.map(head)),
      ),
      make(
        "tbody",
        {},
        ...shownRows.map(({ name, place }) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, titleOf(name)),
            ...columns.map((pair) => heatCell(pair, pair[view.by][place], name)),
          ),
        ),
      ),
    ),
  );
  byId("heat-count").textContent =
    `${whole(shownRows.length)} of ${whole(groupNames().length)} ${view.by === "task" ? "tasks" : "categories"}, ${whole(columns.length)} ${view.against === "root" ? "checkpoints" : "steps"}`;
  byId("heat-sort").value = ["lost", "gained", "name"].includes(view.sort) ? view.sort : "";
}

function setUpHeat() {
  choices(
    byId("heat-against"),
    [
      ["parent", "each step"],
      ["root", "against the root"],
    ],
    view.against,
    (against) => setView({ against, sort: "lost" }),
  );
  choices(
    byId("heat-show"),
    [
      ["both", "lost and gained"],
      ["lost", "lost"],
      ["gained", "gained"],
    ],
    view.show,
    (show) => setView({ show }),
  );
  const isSplit = lineage.columns.category.length > 0;
  choices(
    byId("heat-by"),
    [
      ["category", "categories"],
      ["task", "tasks"],
    ],
    view.by,
    (by) => setView({ by }),
  );
  byId("heat-by").hidden = !isSplit;
  byId("heat-find").addEventListener("input", ({ target }) =>
    setView({ find: target.value.trim() }),
  );
  byId("heat-sort").addEventListener("change", ({ target }) => setView({ sort: target.value }));
}
