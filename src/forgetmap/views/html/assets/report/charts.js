// The charts, drawn by plotly. It reads some markup in labels, so names are escaped for it.

const label = (text, most = 34) =>
  brief(text, most).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const narrow = () => document.documentElement.clientWidth < 800;

const PAPER_WIDTH = 680; // A4 and Letter, with usual margins
let printing = false;

let plotly = null;
async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = await unpack(byId("plotly")); // runs because the policy knows its hash
  document.head.append(script);
  byId("plotly").remove();
  plotly = window.Plotly;
}

function draw(id, said, traces, layout) {
  const target = byId(id);
  target.setAttribute("role", "img");
  target.setAttribute("aria-label", said);
  if (printing) plotly.purge(target); // drawn anew there is no transition, which paper would catch half-way
  const font = {
    family: getComputedStyle(document.body).fontFamily,
    size: 13,
    color: colour("ink"),
  };
  return plotly.react(
    target,
    traces,
    {
      font,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 8, r: 8, t: 8, b: 36 },
      hoverlabel: {
        font: { ...font, color: colour("ink") },
        bgcolor: colour("card"),
        bordercolor: colour("line"),
        align: "left",
      },
      dragmode: false,
      ...(printing ? { width: PAPER_WIDTH } : {}),
      ...layout,
    },
    { displayModeBar: false, responsive: true, scrollZoom: false },
  );
}

const percentAxis = (more = {}) => ({
  ticksuffix: " %",
  gridcolor: colour("line"),
  zerolinecolor: colour("kept"),
  fixedrange: true,
  ...more,
});

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
    `<b>${label(name, 60)}</b><br>${direction.word} ${percent(found.value)} (95 %: ${interval(found)})` +
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
const legendOnTop = { orientation: "h", x: 0, y: 1, yanchor: "bottom" };

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
        ticktext: names.map((name, index) => (index < totals ? `<b>${name}</b>` : name)),
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
    fillcolor: `${colour(direction.colour)}22`,
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
        `<b>${label(name, 60)}</b><br>${word}: ${whole(cell.counts[count])} of ${whole(cell.n)} (${percent(cell.counts[count] / cell.n)})`,
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
        ticktext: names.map((name, index) => (index === rows.length - 1 ? `<b>${name}</b>` : name)),
        fixedrange: true,
      },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", traceorder: "normal" },
    },
  );
}

function drawFlow(name) {
  const cell = name === "" ? map.total : groupCells[name];
  const { n00, n01, n10, n11 } = cell.counts;
  const share = (count) => `${whole(count)} (${percent(count / cell.n)})`;
  const ends = ["right before", "wrong before", "right after", "wrong after"];
  const sums = [n10 + n11, n00 + n01, n01 + n11, n00 + n10];
  const middle = (sum) => Math.max(0.001, (0.46 * sum) / cell.n); // a node's own half of 92 % of the height
  const links = [
    [0, 2, n11, "still right", "kept"],
    [0, 3, n10, "forgotten", "lost"],
    [1, 2, n01, "gained", "won"],
    [1, 3, n00, "still wrong", "never"],
  ];
  return draw(
    "flow-chart",
    `Flow of ${name === "" ? "all items" : brief(name)}: ${links.map(([, , count, word]) => `${word} ${share(count)}`).join(", ")}.`,
    [
      {
        type: "sankey",
        arrangement: "fixed",
        node: {
          label: ends.map((end, index) => `${end}<br>${share(sums[index])}`),
          x: [0.001, 0.001, 0.999, 0.999],
          y: sums.map((sum, index) => (index % 2 ? 1 - middle(sum) : middle(sum))),
          color: [colour("kept"), colour("never"), colour("kept"), colour("never")],
          line: { width: 0 },
          pad: 24,
          thickness: 12,
          hoverinfo: "none",
        },
        link: {
          source: links.map((link) => link[0]),
          target: links.map((link) => link[1]),
          value: links.map((link) => link[2]),
          color: links.map((link) => `${colour(link[4])}99`),
          label: links.map((link) => link[3]),
          customdata: links.map((link) => `${link[3]}: ${share(link[2])}`),
          hovertemplate: "%{customdata}<extra></extra>",
        },
      },
    ],
    { height: 340, margin: { l: 4, r: 4, t: 16, b: 16 } },
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
