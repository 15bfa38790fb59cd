// Losses along a number that grows: size, examples, steps. With slopes, and by category.

const scales = () =>
  study.attributes
    .filter(
      ({ name, numeric, values }) =>
        numeric && name !== "seed" && values.filter((value) => value > 0).length > 1,
    )
    .map(({ name }) => name);
const scaleAlong = () =>
  scales().includes(state.along)
    ? state.along
    : (["size", ...scales()].find((name) => scales().includes(name)) ?? "");
const slopeOf = (name) =>
  study.answers.slopes.find((slope) => slope.attribute === name && slope.within === null);

// The line of a slope through the mean of all pairs, and its band, turned about that mean.
function slopeTraces(slope, found) {
  const logs = found.map(({ x }) => Math.log2(x));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middle, level] = [mean(logs), mean(found.map(({ y }) => y))];
  const [first, last] = [Math.min(...logs), Math.max(...logs)];
  const places = Array.from({ length: 21 }, (_, step) => first + ((last - first) * step) / 20);
  const line = (rise) => places.map((place) => Math.max(0, level + 100 * rise * (place - middle)));
  const xs = places.map((place) => 2 ** place);
  const { value, low, high } = slope.per_doubling;
  const [one, two] = [line(low), line(high)];
  const plain = { type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false };
  return [
    { ...plain, x: xs, y: one.map((y, index) => Math.min(y, two[index])), line: { width: 0 } },
    {
      ...plain,
      x: xs,
      y: one.map((y, index) => Math.max(y, two[index])),
      line: { width: 0 },
      fill: "tonexty",
      fillcolor: colour("lost", 0.14),
    },
    {
      ...plain,
      x: xs,
      y: line(value),
      name: "slope of the loss",
      showlegend: true,
      line: { color: colour("lost"), width: 2 },
    },
  ];
}

function scaleTicks(values) {
  const distinct = [...new Set(values)].sort((one, two) => one - two);
  const room = (printing ? PAPER_WIDTH : byId("scale-chart").clientWidth) - 90;
  const [first, last] = [Math.log(distinct[0]), Math.log(distinct.at(-1))];
  const kept = [];
  for (const value of distinct) {
    const at = last > first ? (room * (Math.log(value) - first)) / (last - first) : 0;
    const half = textWidth(showValue(value)) / 2 + 6;
    if (!kept.length || at - half > kept.at(-1).end) kept.push({ value, end: at + half });
  }
  return {
    tickvals: kept.map(({ value }) => value),
    ticktext: kept.map(({ value }) => showValue(value)),
  };
}

function drawScale() {
  const name = scaleAlong();
  byId("scale-x").value = name;
  drawDoses();
  if (!plotly) return;
  if (!name) {
    showInstead(
      "scale",
      "Not available: no attribute is a number with two or more values, such as size, examples or steps.",
    );
    return;
  }
  const list = wantedPairs().filter((pair) => valueIn(pair, name) > 0);
  if (!list.length) {
    showInstead("scale", "No pair fits the filters.");
    return;
  }
  showAgain("scale");
  const trace = (direction) => ({
    type: "scatter",
    mode: "markers",
    name: direction.key,
    x: list.map((pair) => valueIn(pair, name)),
    y: list.map((pair) => 100 * valueOf(pair.old[direction.key])),
    marker: {
      size: 9,
      symbol: direction === LOST ? "circle" : "diamond-open",
      color: colour(direction.colour, direction === LOST ? 0.85 : 1),
      line: { color: colour(direction === LOST ? "card" : "won"), width: 1 },
    },
    customdata: list.map(({ place }) => place),
    hoverinfo: "text",
    hovertext: list.map((pair) =>
      [...cellWords(pair, "old skills", pair.old), `${name}: ${valueText(pair, name)}`]
        .map((line) => label(line, 160))
        .join("<br>"),
    ),
  });
  const slope = slopeOf(name);
  const every = pairs
    .filter((pair) => valueIn(pair, name) > 0)
    .map((pair) => ({ x: valueIn(pair, name), y: 100 * valueOf(pair.old.lost) }));
  draw(
    "scale-chart",
    `Scatter: what each pair lost and gained along ${brief(name)}. The leaderboard has the numbers.`,
    [...(slope ? slopeTraces(slope, every) : []), trace(LOST), trace(GAINED)],
    {
      height: 420,
      margin: { l: 64, r: 24, t: 40, b: 52 },
      xaxis: {
        type: "log",
        ...apart(),
        title: { text: label(name), standoff: 12 },
        ...scaleTicks(list.map((pair) => valueIn(pair, name))),
        gridcolor: colour("line"),
        fixedrange: true,
      },
      yaxis: percentAxis({ rangemode: "tozero", title: { text: "share of items", standoff: 10 } }),
      legend: { ...legendOnTop, y: 1.02 },
      showlegend: true,
      hovermode: "closest",
    },
  );
  openOnClick("scale-chart");
  byId("scale-caption").replaceChildren(
    `What each pair lost and gained along ${brief(name)} (logarithmic), in percent.` +
      (slope
        ? ` Line: the loss changes by ${estimateText(slope.per_doubling, 2)} points each time ${brief(name)} doubles, over all pairs whatever the filters (${brief(slope.unit, 60)} are taken as independent); the band is the 95 % interval of the slope, turned about the mean.`
        : " There is no slope: it takes four kinds of training and three values."),
  );
}

const WITHIN = { "": "all pairs", family: "families together", kind: "pairs alike in all texts" };

function withinWords({ within, held }) {
  const where = WITHIN[within ?? ""] ?? brief(within, 40);
  return held.length ? `${where}, ${brief(held.join(", "), 80)} held equal` : where;
}

function showSlopes() {
  const { slopes } = study.answers;
  if (!slopes.length) return;
  byId("scale-slopes").append(
    textTable(
      "Slopes",
      ["along", "within", "points per doubling", "p", "kinds of training", "independent"],
      slopes.map((slope) => [
        brief(slope.attribute, 40),
        withinWords(slope),
        estimateText(slope.per_doubling, 2),
        pValue(slope.p_value),
        whole(slope.units),
        brief(slope.unit, 60),
      ]),
      [0, 1, 5],
    ),
  );
}

// --- doses by category -------------------------------------------------------------------------

function drawDoses() {
  const name = scaleAlong();
  const doses = study.answers.doses.filter((dose) => dose.attribute === name);
  byId("dose-table").replaceChildren();
  if (!plotly) return;
  if (!doses.length) {
    showInstead(
      "dose",
      `Not available: there are no curves by category along ${name ? brief(name) : "any number"}. They take categories and four kinds of training with three values.`,
    );
    return;
  }
  showAgain("dose");
  const lines = Math.ceil(doses.length / (narrow() ? 2 : 5));
  const values = doses.flatMap(({ points: all }) => all.map(({ dose }) => dose));
  draw(
    "dose-chart",
    `Lines: the mean loss of each category along ${brief(name)}. The table below has the slopes.`,
    doses.map((dose, place) => ({
      type: "scatter",
      mode: "lines+markers",
      name: label(dose.category, 28),
      x: dose.points.map((point) => point.dose),
      y: dose.points.map(({ lost }) => 100 * lost),
      line: {
        color: tint(place),
        width: dose.claimed ? 3 : 1.5,
        dash: dose.claimed ? "solid" : "dot",
      },
      marker: { color: tint(place), size: 7, symbol: symbol(place) },
      hoverinfo: "text",
      hovertext: dose.points.map(
        (point) =>
          `${label(dose.category, 60)}<br>${label(name)} ${showValue(point.dose)}: lost −${points(point.lost)} %<br>${whole(point.units)} kinds of training`,
      ),
    })),
    {
      height: 400 + 22 * lines,
      margin: { l: 64, r: 24, t: 18 + 22 * lines, b: 52 },
      xaxis: {
        type: "log",
        ...apart(),
        title: { text: label(name), standoff: 12 },
        ...scaleTicks(values),
        gridcolor: colour("line"),
        fixedrange: true,
      },
      yaxis: percentAxis({
        rangemode: "tozero",
        title: { text: "lost", standoff: 10, font: { color: colour("lost") } },
      }),
      legend: { ...legendOnTop, y: 1.02 },
      showlegend: true,
      hovermode: "closest",
    },
  );
  byId("dose-caption").replaceChildren(
    `The mean loss of each category along ${brief(name)} (logarithmic), in percent, over all pairs whatever the filters. A thick line surely rises or falls; a dotted one may be chance.`,
  );
  byId("dose-table").append(
    textTable(
      "Slopes by category",
      ["category", "points per doubling", "p corrected", "can be claimed", "independent"],
      doses.map((dose) => [
        brief(dose.category, 60),
        estimateText(dose.per_doubling, 2),
        pValue(dose.p_adjusted),
        dose.claimed ? "yes" : "can't tell",
        brief(dose.unit, 60),
      ]),
      [0, 3, 4],
    ),
  );
}

function setUpScale() {
  fillSelect(
    byId("scale-x"),
    scales().length ? scales().map((name) => [name, brief(name, 30)]) : [["", "no number"]],
    scaleAlong(),
  );
  byId("scale-x").disabled = !scales().length;
  byId("scale-x").addEventListener("change", (event) => choose({ along: event.target.value }));
  showSlopes();
  setUpSaving("scale", plotlyPicture);
  setUpSaving("dose", plotlyPicture);
}
