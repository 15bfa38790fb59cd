// The small forest plot at the top: a table, so that it is there at once and can be read aloud.

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

// Round numbers from 0 to the first one that is not less than the most.
function roundTicks(most, wanted = 4) {
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

function tickRow(ticks) {
  const widest = ticks.at(-1);
  const axisCell = () =>
    make(
      "td",
      { class: "drawn" },
      make(
        "span",
        { class: "ticks" },
        ...ticks.map((tick) => {
          const mark = make("i", {}, points(tick, Number.isInteger(Math.round(tick * 1e6) / 1e4) ? 0 : 1));
          mark.style.left = `${(100 * tick) / widest}%`;
          return mark;
        }),
      ),
    );
  return make("tr", { class: "axis", "aria-hidden": "true" }, make("td"), axisCell(), make("td"), axisCell(), make("td"), make("td"));
}

function forestRow([name, cell], widest, margin) {
  const drawn = (kind, found) =>
    make("td", { class: "drawn" }, rangeBar(found, kind, widest, margin));
  const number = (kind, sign, found) =>
    make(
      "td",
      { class: kind, title: `95 % interval ${interval(found)}` },
      `${Number(points(valueOf(found))) ? sign : ""}${percent(valueOf(found))}`,
    );
  return make(
    "tr",
    { class: isNew(name) ? "new" : "" },
    make("th", { scope: "row" }, brief(name, 40) + groupMark(name)),
    drawn("lost", cell.lost),
    number("lost", "−", cell.lost),
    drawn("won", cell.gained),
    number("won", "+", cell.gained),
    make("td", { class: "text" }, badge(cell, "forgetting")),
  );
}

function showForest() {
  const rows = Object.entries(groupCells).sort(([, one], [, two]) => byLoss("lost")(one, two));
  const old = rows.filter(([name]) => !isNew(name)).slice(0, MOST_ON_TOP);
  const fresh = rows.filter(([name]) => isNew(name)).slice(0, MOST_NEW_ON_TOP);
  const shownRows = [...old, ...fresh];
  const ticks = roundTicks(scaleOf(shownRows));
  const widest = ticks.at(-1);
  const head = (text, more = {}) => make("th", { scope: "col", ...more }, text);
  byId("forest").append(
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          head(groupWord),
          head("lost", { colspan: 2, class: "text" }),
          head("gained", { colspan: 2, class: "text" }),
          head("verdict", { class: "text" }),
        ),
      ),
      make(
        "tbody",
        {},
        ...shownRows.map((row) => forestRow(row, widest, map.settings.margin)),
        tickRow(ticks),
      ),
    ),
  );
  const cut = shownRows.some(([, cell]) => cell.gained.high_end > widest);
  const left = rows.length - shownRows.length;
  byId("forest-note").append(
    unbroken(
      `In %. Full: sure. Pale: possible. Thin line: 95 % interval. Dotted line: the margin of ${percent(map.settings.margin)}.` +
        (cut ? " ▸ goes on beyond the axis, so that losses stay in sight." : "") +
        (left > 0 ? ` ${whole(left)} more below.` : ""),
    ),
  );
}
