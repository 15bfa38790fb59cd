// Chosen pairs side by side: radars or bars, lost and gained apart.

// More names around a circle would lie on each other.
const mostAxes = () => (narrow() ? 8 : state.as === "bars" ? 40 : 24);

function comparedColumns(chosen) {
  const names = study.columns[state.by];
  const places = orderedColumns(chosen).filter((place) =>
    chosen.some((pair) => pair[state.by][place]),
  );
  return places.slice(0, mostAxes()).map((place) => ({ name: titleOf(names[place]), place }));
}

const percentOf = (found) => (found ? 100 * valueOf(found) : null);

function pairHover(pair, column, cell) {
  return cellWords(pair, column, cell)
    .map((line) => label(line, 160))
    .join("<br>");
}

function radarTrace(pair, index, columns, direction, subplot) {
  const around = [...columns, columns[0]];
  const cells = around.map(({ place }) => pair[state.by][place]);
  return {
    type: "scatterpolar",
    subplot,
    name: label(pair.name, 40),
    legendgroup: String(index),
    showlegend: direction === LOST,
    r: cells.map((cell) => percentOf(cell?.[direction.key])),
    theta: around.map((_, place) => String(place % columns.length)),
    mode: "lines+markers",
    connectgaps: false,
    line: { color: tint(index), width: 2, dash: DASHES[index] },
    marker: { color: tint(index), size: 7, symbol: symbol(index) },
    fill: cells.every(Boolean) ? "toself" : "none",
    fillcolor: tint(index, 0.06),
    hoverinfo: "text",
    hovertext: around.map(({ name }, place) => pairHover(pair, name, cells[place])),
  };
}

// The interval of every mark, along its spoke; none where what others published has none.
function radarIntervals(pair, index, columns, direction, subplot) {
  const found = columns.map(({ place }) => pair[state.by][place]?.[direction.key]);
  const known = found.flatMap((share, place) => (share && hasInterval(share) ? [[share, place]] : []));
  return {
    type: "scatterpolar",
    subplot,
    legendgroup: String(index),
    showlegend: false,
    r: known.flatMap(([{ low, high }]) => [100 * low, 100 * high, null]),
    theta: known.flatMap(([, place]) => [String(place), String(place), null]),
    mode: "lines",
    connectgaps: false,
    line: { color: tint(index, 0.6), width: 3 },
    hoverinfo: "skip",
  };
}

// Two to four round numbers; the last is the rim.
function radialTicks(most) {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((one) => most / one <= 4) ?? 50;
  return Array.from({ length: Math.ceil(most / step) }, (_, place) => step * (place + 1));
}

function radarAxes(columns, domain, most) {
  const places = columns.map((_, place) => String(place));
  return {
    domain,
    bgcolor: "rgba(0,0,0,0)",
    radialaxis: {
      range: [0, radialTicks(most).at(-1)],
      ticksuffix: " %",
      gridcolor: colour("line"),
      linecolor: colour("line"),
      angle: 90,
      tickangle: 90,
      tickvals: radialTicks(most), // none at the centre, where the lines meet
      tickfont: { size: 11, color: colour("soft") },
    },
    angularaxis: {
      gridcolor: colour("line"),
      linecolor: colour("line"),
      type: "category",
      direction: "clockwise",
      categoryarray: places,
      tickvals: places,
      ticktext: columns.map(({ name }) =>
        label(name, narrow() ? 12 : columns.length > 12 ? 14 : 18),
      ),
      tickfont: { size: columns.length > 12 ? 11 : 12 },
    },
  };
}

const directionTitle = (direction, x, y) => ({
  text: `${direction.sign} ${direction.key}`,
  ...{ x, y, xref: "paper", yref: "paper", xanchor: "center", yanchor: "bottom", showarrow: false },
  font: { color: colour(direction.colour), size: 15, weight: 650 }, // markup would need an inline style
});

function drawRadars(chosen, columns) {
  const stacked = narrow();
  const middle = document.documentElement.clientWidth < 500 ? [0.31, 0.69] : [0.25, 0.75];
  const domains = stacked
    ? [
        { x: middle, y: [0.58, 0.9] },
        { x: middle, y: [0.04, 0.36] },
      ]
    : [
        { x: [0.1, 0.4], y: [0.02, 0.86] },
        { x: [0.6, 0.9], y: [0.02, 0.86] },
      ];
  const values = chosen.flatMap((pair) =>
    columns.flatMap(({ place }) =>
      DIRECTIONS.map(({ key }) => {
        const found = pair[state.by][place]?.[key];
        return found ? Math.max(percentOf(found), 100 * (found.high ?? 0)) : 0;
      }),
    ),
  );
  const most = Math.max(1, ...values); // one scale for both, so that they can be compared
  const lines = Math.ceil(chosen.length / (stacked ? 1 : 3));
  return draw(
    "compare-chart",
    `Radars: what ${chosen.length} pairs lost, and what they gained, in each ${columnWord()}. The heat map's table has the numbers.`,
    DIRECTIONS.flatMap((direction, side) =>
      chosen.flatMap((pair, index) =>
        [radarTrace, radarIntervals].map((trace) =>
          trace(pair, index, columns, direction, side ? "polar2" : "polar"),
        ),
      ),
    ),
    {
      height: (stacked ? 640 : 500) + 22 * lines,
      margin: { l: 24, r: 24, t: 22 * lines + 24, b: 36 },
      polar: radarAxes(columns, domains[0], most),
      polar2: radarAxes(columns, domains[1], most),
      annotations: DIRECTIONS.map((direction, side) =>
        directionTitle(
          direction,
          (domains[side].x[0] + domains[side].x[1]) / 2,
          domains[side].y[1] + (stacked ? 0.05 : 0.09),
        ),
      ),
      legend: { ...legendOnTop, y: 1.02 },
      showlegend: true,
    },
  );
}

function barTrace(pair, index, columns, direction, axis_) {
  const cells = columns.map(({ place }) => pair[state.by][place]);
  const shares = cells.map((cell) => cell?.[direction.key] ?? null);
  const known = shares.some((found) => found && hasInterval(found));
  return {
    type: "bar",
    orientation: "h",
    xaxis: axis_,
    name: label(pair.name, 40),
    legendgroup: String(index),
    showlegend: direction === LOST,
    x: shares.map(percentOf),
    y: columns.map((_, place) => place),
    marker: { color: tint(index, 0.85) },
    error_x: known && {
      type: "data",
      symmetric: false,
      thickness: 1.2,
      width: 2,
      color: colour("ink"),
      array: shares.map((found) => (found ? 100 * found.high - percentOf(found) : 0)),
      arrayminus: shares.map((found) => (found ? percentOf(found) - 100 * found.low : 0)),
    },
    hoverinfo: "text",
    hovertext: columns.map(({ name }, place) => pairHover(pair, name, cells[place])),
  };
}

function drawBars(chosen, columns) {
  const lines = Math.ceil(chosen.length / (narrow() ? 1 : 3));
  const names = columns.map(({ name }) => label(name, narrow() ? 12 : 28));
  const room = 24 + Math.max(...names.map((name) => textWidth(name, 13)));
  const top = 22 * lines + 40;
  const height = columns.length * (12 + 13 * chosen.length) + top + 44;
  return draw(
    "compare-chart",
    `Bars: what ${chosen.length} pairs lost, and what they gained, in each ${columnWord()}. The heat map's table has the numbers.`,
    DIRECTIONS.flatMap((direction, side) =>
      chosen.map((pair, index) => barTrace(pair, index, columns, direction, side ? "x2" : "x")),
    ),
    {
      height,
      barmode: "group",
      bargap: 0.25,
      margin: { l: room, r: 16, t: top, b: 40 },
      xaxis: percentAxis({ domain: [0, 0.48], rangemode: "tozero", nticks: narrow() ? 3 : 6 }),
      xaxis2: percentAxis({
        domain: [0.52, 1],
        rangemode: "tozero",
        matches: "x",
        nticks: narrow() ? 3 : 6,
      }),
      yaxis: {
        tickvals: columns.map((_, place) => place),
        ticktext: names,
        range: [columns.length - 0.5, -0.5],
        ...apart(),
        fixedrange: true,
        showgrid: false,
        zeroline: false,
      },
      annotations: DIRECTIONS.map((direction, side) =>
        directionTitle(direction, side ? 0.76 : 0.24, 1),
      ),
      legend: { ...legendOnTop, y: 1 + 26 / (height - top - 40), tracegroupgap: 0 },
      showlegend: true,
    },
  );
}

function showComparedPairs(chosen) {
  const isChosen = state.pair.length > 0;
  byId("compare-pairs").replaceChildren(
    ...chosen.map((pair) =>
      make(
        "li",
        {},
        pairLink(pair, 40),
        isChosen
          ? make(
              "button",
              {
                class: "quiet",
                type: "button",
                "aria-label": `Leave out ${brief(pair.name, 60)}`,
                onclick: () => togglePair(pair.name),
              },
              "×",
            )
          : null,
      ),
    ),
  );
  const free = inOrder(wantedPairs(), "name").filter((pair) => !state.pair.includes(pair.name));
  fillSelect(
    byId("compare-add"),
    [["", "choose…"], ...free.map(({ name }) => [name, brief(name, 60)])],
    "",
  );
  byId("compare-add").disabled = state.pair.length >= MOST_CHOSEN;
  for (const input of byId("compare-as").querySelectorAll("input"))
    input.checked = input.value === state.as;
}

function drawCompare() {
  const chosen = comparedPairs();
  showComparedPairs(chosen);
  if (!plotly) return;
  const columns = comparedColumns(chosen);
  if (!chosen.length || !columns.length) return showInstead("compare", "No pair fits the filters.");
  showAgain("compare");
  const few = columns.length < 3;
  if (state.as === "bars" || few) drawBars(chosen, columns);
  else drawRadars(chosen, columns);
  const all = study.columns[state.by].length;
  byId("compare-caption").replaceChildren(
    `Share of items lost and gained in each ${columnWord()}, in percent, on one scale.` +
      (state.pair.length
        ? ""
        : " Until you choose some, these are the pairs that lost least and most.") +
      (columns.length < all
        ? ` The first ${columns.length} of ${all} in the order of the heat map are drawn.`
        : "") +
      (few && state.as !== "bars" ? " A radar takes three or more." : "") +
      (pairs.some((pair) => hasInterval(pair.old.lost))
        ? " Lines are 95 % intervals over items."
        : ""),
  );
  return undefined;
}

function setUpCompare() {
  choices(
    byId("compare-as"),
    [
      ["radar", "radar"],
      ["bars", "bars"],
    ],
    state.as,
    (value) => choose({ as: value }),
  );
  byId("compare-add").addEventListener(
    "change",
    (event) => event.target.value && togglePair(event.target.value),
  );
  setUpSaving("compare", plotlyPicture);
}
