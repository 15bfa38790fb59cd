// Put the page together: words and graph first, then what needs the items.

// Change what is shown of the groups, and draw what depends on it.
function setView(change) {
  Object.assign(view, change);
  drawHeat();
  if (["by", "path", "allLines"].some((name) => name in change)) drawLines();
  if ("by" in change) showChosen();
}

// Choose what the address names; other places in the page leave the choice alone.
function follow() {
  const asked = readAddress();
  if (!asked.pair && asked.node === null) return;
  Object.assign(chosen, asked);
  markChosen();
  showInBox();
  showChosen();
  const box = byId("graph-box").getBoundingClientRect();
  if (box.bottom < 0 || box.top > window.innerHeight) byId("graph").scrollIntoView();
}

function showTiles() {
  const most = (list, key) =>
    list.reduce((best, pair) => (valueOf(pair.old[key]) > valueOf(best.old[key]) ? pair : best));
  const amountTile = (what, direction, pair) =>
    tile(
      what,
      `${signed(direction, pair.old[direction.key])}\u00a0%`,
      pairLink(pair, 28),
      direction.colour,
    );
  const judged = edges().filter(({ old }) => old.forgetting === "lost").length;
  const roots = pairs.filter(({ root }) => root);
  byId("tiles").append(
    amountTile("Most lost at one step", LOST, most(edges(), "lost")),
    amountTile("Most lost against the root", LOST, most(roots, "lost")),
    amountTile("Most gained against the root", GAINED, most(roots, "gained")),
    tile(
      "Steps that surely lost",
      `${judged} of ${edges().length}`,
      `more than the margin of ${percent(lineage.margin)}`,
    ),
  );
}

async function start() {
  await openLineage();
  setUpTheme();
  showTiles();
  setUpGraph();
  setUpHeat();
  setUpLines();
  const worst = edges().reduce((best, pair) =>
    valueOf(pair.old.lost) > valueOf(best.old.lost) ? pair : best,
  );
  const asked = readAddress();
  Object.assign(chosen, asked.pair || asked.node !== null ? asked : { pair: worst, node: null });
  drawGraph();
  drawAll = drawGraph; // paper has another width
  showInBox();
  showChosen();
  setView({ path: view.path });
  drawCurves();
  window.addEventListener("hashchange", follow);
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (width === document.documentElement.clientWidth || printing) return;
    width = document.documentElement.clientWidth;
    drawGraph();
  });
  await setUpLineageItems();
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  byId("finding").after(
    notice(`Part of this page could not be shown: ${error.message}. A current browser may help.`),
  );
});
