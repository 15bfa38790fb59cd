// Put the page of a lineage together: the graph and the heat map choose items, the table shows them.

// Show other items, and keep the choice in the address.
function choose(changed) {
  showItems(changed);
  showDetail();
  keepAddress();
}

function setUpItems() {
  const worst = lineage.pairs.reduce((one, two) => (valueOf(two.lost) > valueOf(one.lost) ? two : one));
  Object.assign(USUAL, { before: worst.before, after: worst.after });
  Object.assign(shown, USUAL);
  const points = lineage.checkpoints.map((name, place) => [String(place), brief(name, 50)]);
  fillSelect(byId("item-before"), points);
  fillSelect(byId("item-after"), points);
  fillSelect(byId("item-group"), [["", "all"], ...lineage.groups.map((name, place) => [String(place), brief(name, 50)])]);
  const lives = [...document.querySelectorAll("button[data-life]:not(:disabled)")].map(({ dataset, textContent }) => [
    `${dataset.path}.${dataset.life}`,
    `${textContent}, ${document.querySelectorAll(".life h3")[dataset.path].textContent}`,
  ]);
  fillSelect(byId("item-life"), [["", "any"], ...lives]);
  choices(byId("outcome"), OUTCOMES, shown.outcome, (outcome) => choose({ outcome }));
  for (const name of ["before", "after"])
    byId(`item-${name}`).addEventListener("change", ({ target }) => choose({ [name]: Number(target.value) }));
  for (const name of ["group", "life"])
    byId(`item-${name}`).addEventListener("change", ({ target }) => choose({ [name]: target.value }));
  byId("item-text").addEventListener("input", ({ target }) => choose({ text: target.value.trim() }));
  byId("export").addEventListener("click", exportItems);
  itemTable = new ItemTable(byId("item-box"), {
    columns: ITEM_COLUMNS,
    cells: itemCells,
    address: addressOf,
    open: (item) => {
      shown.open = addressOf(item);
      showDetail();
      keepAddress();
    },
    sort: (column) => choose({ order: shown.order === column ? `-${column}` : column }),
  });
  setUpKeys(itemTable, byId("item-text"), (target) => {
    if (target === byId("item-text")) {
      target.blur();
      if (shown.text) choose({ text: "" });
    } else if (shown.open) {
      choose({ open: "" });
      itemTable.step(0);
    }
  });
}

// Buttons of the graph, the heat map and the life lines lead to their items.
function follow({ target }) {
  const { before, after, outcome, group, path, life } = target.closest?.("button")?.dataset ?? {};
  if (before !== undefined) {
    const place = (name) => lineage.checkpoints.indexOf(name);
    const row = group === undefined ? "" : String(lineage.groups.indexOf(group));
    choose({ before: place(before), after: place(after), outcome, group: row, life: "", text: "", open: "" });
  } else if (life !== undefined) {
    const names = lineage.paths[path];
    const ends = { before: names[0], after: names.at(-1) };
    choose({ ...ends, outcome: "", group: "", life: `${path}.${life}`, text: "", open: "" });
  } else return;
  byId("items").scrollIntoView();
}

function setUpHeat() {
  const show = (direction) => {
    for (const name of ["lost", "gained"]) byId(`heat-${name}`).hidden = name !== direction;
  };
  choices(byId("heat-shown"), [["lost", "− lost"], ["gained", "+ gained"]], "lost", show);
  const rows = [...document.querySelectorAll(".heat tbody tr")];
  const find = () => {
    const words = byId("heat-text").value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.firstElementChild.textContent.toLowerCase().includes(words);
    const left = rows.filter((row) => !row.hidden).length / 2; // in the table of gains too
    byId("heat-count").textContent = `${whole(left)} of ${whole(rows.length / 2)}`;
  };
  byId("heat-text").addEventListener("input", find);
  find();
}

async function start() {
  drawAll = drawDescribed;
  setUpTheme();
  setUpHeat();
  lineage = JSON.parse(await unpack(byId("lineage-items")));
  setUpItems();
  const isNamed = readAddress();
  showItems();
  showDetail();
  document.addEventListener("click", follow);
  window.addEventListener("hashchange", () => {
    if (readAddress()) {
      showItems();
      showDetail();
    }
  });
  if (isNamed) byId("items").scrollIntoView();
  await loadPlotly();
  drawAll();
  document.documentElement.dataset.ready = "true";
}

start();
