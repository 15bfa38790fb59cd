// The charts of the report.

const PALE = 0.35; // what may be lost or gained, beyond what is sure

const MOST_GROUPS = 30; // more would be a wall, and slow to draw; the tables have all

// Room for the names of rows. Plotly can measure them itself, but slowly where they are many.
const nameRoom = (names) => 16 + 7.6 * Math.max(...names.map((name) => name.length));

// Groups below the totals, in the order they are drawn from the top: [name, cell, mark].
function ordered(measure, sort) {
  const rows = Object.entries(groupCells).map(([name, cell]) => [name, cell, groupMark(name)]);
  rows.sort(
    ([one, cellOne], [two, cellTwo]) =>
      (sort === "name" ? 0 : byLoss(sort, measure)(cellOne, cellTwo)) || one.localeCompare(two),
  );
  return [...totals.map(([name, cell]) => [name, cell, ""]), ...rows];
}
const shownName = ([name, , mark], most) => label(name, most) + mark;

function hoverText([name, cell, mark], direction, found) {
  return (
    `${label(name, 60)}${mark}<br>${direction.key} ${ends(found)} % (95 %: ${interval(found)})` +
    `<br>${whole(cell.n)} items, accuracy ${points(cell.accuracy_before)} → ${percent(cell.accuracy_after)}` +
    `<br>verdict: ${verdictWord(cell, "forgetting")}, net ${verdictWord(cell, "net")}`
  );
}

const note = (text, more) => ({
  text,
  xref: "paper",
  xanchor: "left",
  showarrow: false,
  font: { color: colour("soft"), size: 12 },
  ...more,
});
const line = (more, style) => ({ type: "line", line: { width: 1, ...style }, ...more });

// Bars that are full up to the low end and pale up to the high end, with the interval as a line.
function barTraces(direction, rows, measure) {
  const marks = rows.flatMap((row, index) => {
    const found = measured(row[1], direction.key, measure);
    const y = rows.length - 1 - index + direction.shift;
    return found ? [{ found, y, said: hoverText(row, direction, found) }] : [];
  });
  const bars = (name, from, to, alpha) => ({
    type: "bar",
    orientation: "h",
    name,
    y: marks.map(({ y }) => y),
    base: marks.map(({ found }) => 100 * from(found)),
    x: marks.map(({ found }) => 100 * (to(found) - from(found))),
    width: 0.27,
    marker: { color: colour(direction.colour, alpha) },
    hoverinfo: "text",
    hovertext: marks.map(({ said }) => said),
  });
  const low = ({ low_end: end }) => end;
  const high = ({ high_end: end }) => end;
  const full = bars(direction.key, () => 0, low, 1);
  const pale = bars(`maybe ${direction.key}`, low, high, PALE);
  const lines = {
    type: "scatter",
    mode: "markers",
    showlegend: false,
    x: marks.map(({ found }) => 100 * high(found)),
    y: marks.map(({ y }) => y),
    error_x: {
      type: "data",
      symmetric: false,
      thickness: 1.5,
      width: 3,
      color: colour("ink"),
      array: marks.map(({ found }) => 100 * (found.high - high(found))),
      arrayminus: marks.map(({ found }) => 100 * (high(found) - found.low)),
    },
    marker: { color: colour(direction.colour), size: 8, opacity: 0 },
    hoverinfo: "text",
    hovertext: marks.map(({ said }) => said),
  };
  return marks.some(({ found }) => isRange(found)) ? [full, pale, lines] : [full, lines];
}

// The verdict beside each row, and a word where the measure is not defined.
function barNotes(rows, measure) {
  const place = (index) => rows.length - 1 - index;
  const missing = rows.flatMap(([, cell], index) =>
    measured(cell, "lost", measure)
      ? []
      : [note("not defined here", { x: 0.01, y: place(index) })],
  );
  if (narrow()) return missing; // no room for verdicts; the table has them
  const verdicts = rows.map(([, cell], index) => {
    const shade = cell.verdict.forgetting === "lost" ? "lost" : "soft";
    const words = `${verdictWord(cell, "forgetting")} · ${verdictWord(cell, "net")}`;
    const font = { color: colour(shade), size: 12 };
    return note(words + (hinges(cell) ? " *" : ""), { x: 1.01, y: place(index), font });
  });
  const head = note("verdict · net", { x: 1.01, y: 1, yref: "paper", yanchor: "bottom" });
  return [head, ...verdicts, ...missing];
}

// Where one gain would crush the rest, the axis ends before it; null where it need not.
function axisLimit(rows, measure) {
  const groups = rows.slice(totals.length);
  const limit = 115 * scaleOf(groups, measure);
  const most = Math.max(...rows.map(([, cell]) => measured(cell, "gained", measure)?.high ?? 0));
  return 100 * most > 1.5 * limit ? limit : null;
}

// The number of every bar that is longer than the axis, at its end.
function cutNotes(rows, measure, limit) {
  const { shift } = DIRECTIONS[1];
  return rows.flatMap(([, cell], index) => {
    const found = measured(cell, "gained", measure);
    if (!found || 100 * found.high_end <= limit) return [];
    const font = { color: colour("won"), size: 12 };
    const place = { x: 1, xanchor: "right", y: rows.length - 1 - index + shift };
    return [note(`+${percent(valueOf(found))} ▸`, { ...place, font, bgcolor: colour("paper") })];
  });
}

function drawForest(measure, sort) {
  const rows = ordered(measure, sort).slice(0, totals.length + MOST_GROUPS);
  const names = rows.map((row) => shownName(row, narrow() ? 14 : 34));
  const margin = 100 * map.settings.margin;
  const below = rows.length - totals.length - 0.5;
  const limit = axisLimit(rows, measure);
  return draw(
    "groups-chart",
    `Bars: share of items lost and gained side by side, in total and in each ${groupWord}. ` +
      "The table below has the numbers.",
    DIRECTIONS.flatMap((direction) => barTraces(direction, rows, measure)),
    {
      height: 100 + 38 * rows.length,
      barmode: "overlay",
      margin: { l: nameRoom(names), r: narrow() ? 12 : 165, t: narrow() ? 56 : 34, b: 40 },
      xaxis: percentAxis({ zeroline: true, range: limit ? [0, limit] : undefined, rangemode: "tozero" }),
      yaxis: {
        tickvals: rows.map((_, index) => rows.length - 1 - index),
        ticktext: names,
        range: [-0.6, rows.length - 0.4],
        fixedrange: true,
        showgrid: false,
        zeroline: false,
      },
      shapes: [
        line(
          { x0: margin, x1: margin, yref: "paper", y0: 0, y1: 1 },
          { color: colour("soft"), dash: "dot" },
        ),
        line({ xref: "paper", x0: 0, x1: 1, y0: below, y1: below }, { color: colour("line") }),
      ],
      annotations: [...barNotes(rows, measure), ...(limit ? cutNotes(rows, measure, limit) : [])],
      legend: legendOnTop,
      showlegend: true,
    },
  );
}

// The outcomes as counted: with the noise of the runs, so these are not what was lost and gained.
const OUTCOMES = [
  ["n11", "still right", "kept"],
  ["n01", "wrong → right", "won"],
  ["n10", "right → wrong", "lost"],
  ["n00", "still wrong", "never"],
];

function drawBars() {
  const rows = ordered("raw", "lost")
    .filter(([, cell]) => cell !== map.macro)
    .slice(0, MOST_GROUPS + totals.length)
    .reverse();
  const names = rows.map((row) => shownName(row, narrow() ? 14 : 30));
  const traces = OUTCOMES.map(([count, word, shade]) => ({
    type: "bar",
    orientation: "h",
    name: word,
    marker: { color: colour(shade) },
    x: rows.map(([, cell]) => (100 * cell.counts[count]) / cell.n),
    y: rows.map((_, index) => index),
    hoverinfo: "text",
    hovertext: rows.map(
      ([name, cell]) =>
        `${label(name, 60)}<br>${word}: ${whole(cell.counts[count])} of ${whole(cell.n)} (${percent(cell.counts[count] / cell.n)})`,
    ),
  }));
  return draw(
    "flow-bars",
    `Stacked bars: share of items still right, from wrong to right, from right to wrong and still wrong, in total and in each ${groupWord}.`,
    traces,
    {
      height: 90 + 30 * rows.length,
      barmode: "stack",
      bargap: 0.35,
      margin: { l: nameRoom(names), r: 24, t: 34, b: 36 },
      xaxis: percentAxis({
        range: [0, 100],
        showgrid: false,
        tickvals: [0, 25, 50, 75, 100],
        ticktext: ["0", "25", "50", "75", "100\u00a0%"],
      }),
      yaxis: {
        tickvals: rows.map((_, index) => index),
        ticktext: names,
        fixedrange: true,
      },
      legend: legendOnTop,
    },
  );
}

function drawFlow(name) {
  const cell = name === "" ? map.total : groupCells[name];
  const { n00, n01, n10, n11 } = cell.counts;
  const counts = [n11, n10, n01, n00];
  const words = ["still right", "right → wrong", "wrong → right", "still wrong"];
  const shares = words.map(
    (word, kind) => `${word} ${whole(counts[kind])} (${percent(counts[kind] / cell.n)})`,
  );
  return flowChart(
    "flow-chart",
    `Flow of ${name === "" ? "all items" : brief(name)}: ${shares.join(", ")}.`,
    {
      ends: [
        ["right before", "wrong before"],
        ["right after", "wrong after"],
      ],
      steps: [counts],
      words,
    },
  );
}

function drawCauses(rows) {
  const shown = [...rows].reverse();
  return draw(
    "causes-chart",
    `Bars: items right less often than before, by cause: ${rows.map(([cause, count]) => `${brief(cause)} ${whole(count)}`).join(", ")}.`,
    [
      {
        type: "bar",
        orientation: "h",
        x: shown.map((row) => row[1]),
        y: shown.map((_, index) => index),
        marker: { color: shown.map((row) => colour(row[0] === NO_CAUSE ? "kept" : "lost")) },
        text: shown.map((row) => whole(row[1])),
        textposition: "outside",
        cliponaxis: false,
        hoverinfo: "none",
      },
    ],
    {
      height: 50 + 34 * shown.length,
      bargap: 0.4,
      margin: { l: 8, r: 60, t: 8, b: 8 },
      xaxis: { visible: false, fixedrange: true },
      yaxis: {
        tickvals: shown.map((_, index) => index),
        ticktext: shown.map((row) => label(row[0])),
        automargin: true,
        fixedrange: true,
      },
    },
  );
}
