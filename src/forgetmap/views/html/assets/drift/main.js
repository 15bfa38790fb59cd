// What each capability lost and gained, as bars; the tables below are there without a script.

function showForest() {
  const place = byId("forest-data");
  if (!place) return;
  const rows = JSON.parse(place.textContent).map(({ name, code, verdict, cell }) => ({
    name: make("a", { href: `#capability-${code}` }, brief(name, 48)),
    verdict: badge(...verdict),
    cell,
  }));
  const most = rows.flatMap(({ cell }) => [cell.lost.high, cell.gained.high]);
  const ticks = roundTicks(Math.max(0.01, ...most));
  byId("forest").append(forestTable("capability", rows, ticks));
  byId("forest-note").append(
    unbroken(
      "In % of the score. Full: at least, the net or what single metrics surely lost. " +
        "Pale: at most, all that moved, because single runs can't tell luck from loss. " +
        "Thin line: 95 % interval. Where neither direction is better, see below.",
    ),
  );
}

showForest();
setUpTheme();
document.documentElement.dataset.ready = "true";
