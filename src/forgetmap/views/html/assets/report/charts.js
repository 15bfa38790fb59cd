// The charts of the report.

const DIRECTIONS = [
  { key: "forgetting", word: "forgotten", colour: "lost", symbol: "circle", shift: 0.16 },
  { key: "backward_transfer", word: "gained", colour: "won", symbol: "diamond", shift: -0.16 },
];

const MOST_GROUPS = 30; // more would be a wall, and slow to draw; the tables have all

// Room for the names of rows. Plotly can measure them itself, but slowly where they are many.
const nameRoom = (names) => 16 + 7.6 * Math.max(...names.map((name) => name.length));

// Groups with the total, in the order they are drawn from the top.
function ordered(estimator, sort) {
  const value = (cell, direction) => estimate(cell, direction, estimator)?.value ?? -Infinity;
  const rows = Object.entries(groupCells);
  rows.sort(
    ([one, cellOne], [two, cellTwo]) =>
      (sort === "name" ? 0 : value(cellTwo, sort) - value(cellOne, sort)) || one.localeCompare(two),
  );
  const totals = [["All items", map.total]];
  if (hasCategories) totals.push(["Mean of categories", map.macro]);
  return [...totals, ...rows];
}

function hoverText(name, cell, direction, found) {
  return (
    `${label(name, 60)}<br>${direction.word} ${percent(found.value)} (95 %: ${interval(found)})` +
    `<br>${whole(cell.n)} items, accuracy ${points(cell.accuracy_before)} → ${percent(cell.accuracy_after)}` +
    `<br>verdict: ${cell.verdict.forgetting}, net ${cell.verdict.net}`
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

function forestTrace(direction, rows, estimator) {
  const marks = rows.flatMap(([name, cell, place]) => {
    const found = estimate(cell, direction.key, estimator);
    return found ? [{ name, cell, found, y: place + direction.shift }] : [];
  });
  return {
    type: "scatter",
    mode: "markers",
    name: direction.word,
    x: marks.map(({ found }) => 100 * found.value),
    y: marks.map(({ y }) => y),
    error_x: {
      type: "data",
      symmetric: false,
      thickness: 2,
      width: 0,
      color: colour(direction.colour),
      array: marks.map(({ found }) => 100 * (found.high - found.value)),
      arrayminus: marks.map(({ found }) => 100 * (found.value - found.low)),
    },
    marker: { color: colour(direction.colour), size: 9, symbol: direction.symbol },
    hoverinfo: "text",
    hovertext: marks.map(({ name, cell, found }) => hoverText(name, cell, direction, found)),
  };
}

// The verdict beside each row, and a word where the estimator is not defined.
function forestNotes(rows, estimator) {
  const missing = rows
    .filter(([, cell]) => DIRECTIONS.every(({ key }) => !estimate(cell, key, estimator)))
    .map(([, , place]) => note("not defined here", { x: 0.01, y: place }));
  if (narrow()) return missing; // no room for verdicts; the table has them
  const verdicts = rows.map(([, cell, place]) => {
    const { forgetting, net } = cell.verdict;
    const font = { color: colour(forgetting === "forgot" ? "lost" : "soft"), size: 12 };
    return note(`${forgetting} · ${net}${hinges(cell) ? " *" : ""}`, { x: 1.01, y: place, font });
  });
  const head = note("forgetting · net", { x: 1.01, y: 1, yref: "paper", yanchor: "bottom" });
  return [head, ...verdicts, ...missing];
}

function drawForest(estimator, sort) {
  const totals = hasCategories ? 2 : 1;
  const shown = ordered(estimator, sort).slice(0, totals + MOST_GROUPS);
  const rows = shown.map(([name, cell], index) => [name, cell, shown.length - 1 - index]);
  const names = rows.map(([name]) => label(name, narrow() ? 18 : 34));
  const margin = 100 * map.settings.margin;
  const below = shown.length - totals - 0.5;
  return draw(
    "groups-chart",
    `Forest plot: share forgotten and gained, all items and each ${groupWord}, ` +
      `by the ${estimator} estimator. The table below has the numbers.`,
    DIRECTIONS.map((direction) => forestTrace(direction, rows, estimator)),
    {
      height: 90 + 34 * rows.length,
      margin: { l: nameRoom(names), r: narrow() ? 12 : 160, t: 34, b: 40 },
      xaxis: percentAxis({ zeroline: true }),
      yaxis: {
        tickvals: rows.map(([, , place]) => place),
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
      annotations: forestNotes(rows, estimator),
      legend: legendOnTop,
      showlegend: true,
    },
  );
}

function radarAxes(direction, rows, estimator, domain) {
  const values = rows.map(
    ([, cell]) => 110 * (estimate(cell, direction.key, estimator)?.value ?? 0),
  );
  const places = rows.map((_, place) => String(place));
  return {
    domain,
    bgcolor: "rgba(0,0,0,0)",
    radialaxis: {
      range: [Math.min(0, ...values), Math.max(1, ...values)],
      ticksuffix: " %",
      gridcolor: colour("line"),
      angle: 90,
      tickangle: 90,
      nticks: 4,
      tickfont: { size: 11, color: colour("soft") },
    },
    angularaxis: {
      gridcolor: colour("line"),
      type: "category",
      direction: "clockwise",
      categoryarray: places,
      tickvals: places,
      ticktext: rows.map(
        ([name, cell]) =>
          label(name, 18) + (estimate(cell, direction.key, estimator) ? "" : " (none)"),
      ),
    },
  };
}

function radarTrace(direction, rows, estimator, subplot) {
  const found = rows.map(([, cell]) => estimate(cell, direction.key, estimator));
  const around = [...found.keys(), 0]; // back to the first, so that the line closes
  return {
    type: "scatterpolar",
    subplot,
    name: direction.word,
    mode: "lines+markers",
    r: around.map((place) => (found[place] ? 100 * found[place].value : null)),
    theta: around.map(String),
    connectgaps: false,
    fill: found.every(Boolean) ? "toself" : "none",
    fillcolor: colour(direction.colour, 0.13),
    line: { color: colour(direction.colour), width: 2 },
    marker: { size: 6, symbol: direction.symbol },
    hoverinfo: "text",
    hovertext: around.map((place) =>
      found[place] ? hoverText(...rows[place], direction, found[place]) : "",
    ),
  };
}

function drawRadar(estimator, sort) {
  const rows = ordered(estimator, sort)
    .slice(hasCategories ? 2 : 1)
    .slice(0, MOST_GROUPS);
  const [lost, won] = DIRECTIONS;
  const [first, second] = narrow()
    ? [
        { x: [0, 1], y: [0.56, 0.98] },
        { x: [0, 1], y: [0, 0.42] },
      ]
    : [
        { x: [0.05, 0.43], y: [0, 0.94] },
        { x: [0.57, 0.95], y: [0, 0.94] },
      ];
  return draw(
    "groups-chart",
    `Radar pair: share forgotten and gained in each ${groupWord} ` +
      `by the ${estimator} estimator. The table below has the numbers.`,
    [radarTrace(lost, rows, estimator, "polar"), radarTrace(won, rows, estimator, "polar2")],
    {
      height: narrow() ? 760 : 460,
      margin: { l: 30, r: 30, t: 40, b: 40 },
      polar: radarAxes(lost, rows, estimator, first),
      polar2: radarAxes(won, rows, estimator, second),
      legend: { ...legendOnTop, y: 1.02 },
      showlegend: true,
      annotations: [
        note("each radar has its own scale", {
          yref: "paper",
          x: 1,
          y: 1.02,
          xanchor: "right",
          yanchor: "bottom",
        }),
      ],
    },
  );
}

const OUTCOMES = [
  ["n11", "still right", "kept"],
  ["n01", "gained", "won"],
  ["n10", "forgotten", "lost"],
  ["n00", "still wrong", "never"],
];

function drawBars() {
  const rows = ordered("raw", "forgetting")
    .filter(([, cell]) => cell !== map.macro)
    .slice(0, MOST_GROUPS + 1)
    .reverse();
  const names = rows.map(([name]) => label(name, narrow() ? 18 : 30));
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
    `Stacked bars: share of items still right, gained, forgotten and still wrong, all items and each ${groupWord}.`,
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
        ticktext: ["0 %", "25 %", "50 %", "75 %", "100 %"],
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
  const words = ["still right", "forgotten", "gained", "still wrong"];
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
    `Bars: number of forgotten items by cause: ${rows.map(([cause, count]) => `${brief(cause)} ${whole(count)}`).join(", ")}.`,
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
