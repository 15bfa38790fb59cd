// The small forest plot at the top.

const MOST_ON_TOP = 9; // groups above the fold; "Where it lost and gained" has the others
const MOST_NEW_ON_TOP = 3;

const isNew = (name) => groupMark(name) === " (new)";

// What the old groups need, and every loss: a new skill's gain must not make losses look small.
function scaleOf(rows, measure = "lost") {
  const most = rows.flatMap(([name, cell]) => [
    measured(cell, "lost", measure)?.high ?? 0,
    isNew(name) ? 0 : (measured(cell, "gained", measure)?.high ?? 0),
  ]);
  return Math.max(1.25 * map.settings.margin, 0.01, ...most);
}

function showForest() {
  const rows = Object.entries(groupCells).sort(([, one], [, two]) => byLoss("lost")(one, two));
  const old = rows.filter(([name]) => !isNew(name)).slice(0, MOST_ON_TOP);
  const fresh = rows.filter(([name]) => isNew(name)).slice(0, MOST_NEW_ON_TOP);
  const onTop = [...old, ...fresh];
  const { margin } = map.settings;
  const ticks = roundTicks(scaleOf(onTop));
  const drawn = onTop.map(([name, cell]) => ({
    name: brief(name, 40) + groupMark(name),
    cell,
    verdict: verdictBadge(cell, "forgetting"),
    isNew: isNew(name),
  }));
  byId("forest").append(forestTable(groupWord, drawn, ticks, margin));
  const left = rows.length - onTop.length;
  byId("forest-note").append(
    unbroken(forestNote(drawn, ticks, margin) + (left > 0 ? ` ${whole(left)} more below.` : "")),
  );
}
