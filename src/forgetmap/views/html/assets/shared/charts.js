// The charts of all pages, drawn by plotly. It reads some markup in labels, so names are escaped.

const label = (text, most = 34) =>
  brief(text, most).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
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
        font,
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
  ticksuffix: "\u00a0%",
  gridcolor: colour("line"),
  zerolinecolor: colour("kept"),
  fixedrange: true,
  ...more,
});
const legendOnTop = { orientation: "h", x: 0, y: 1, yanchor: "bottom", traceorder: "normal" };

// --- lines -------------------------------------------------------------------------------------

// One line: name, colour, xs, ys; where given, the interval of each point (lows, highs), what to
// say of it (notes), how it is drawn (dash, width, isFilled).
function lineTrace({ name, colour: shade, xs, ys, lows, highs, notes, dash, width, isFilled }) {
  return {
    type: "scatter",
    mode: lows ? "lines+markers" : "lines",
    name,
    x: xs,
    y: ys,
    line: { color: colour(shade), dash, width: width ?? 2, simplify: false },
    marker: { size: 8 },
    error_y: lows && {
      type: "data",
      symmetric: false,
      array: highs.map((high, index) => high - ys[index]),
      arrayminus: lows.map((low, index) => ys[index] - low),
      color: colour(shade, 0.55),
      thickness: 2,
      width: 4,
    },
    fill: isFilled ? "tozeroy" : "none",
    fillcolor: colour(shade, 0.2),
    hoverinfo: notes ? "text" : "skip",
    hovertext: notes?.map((note) => label(note, 160)),
  };
}

const dotTrace = ({ colour: shade, x, y }) => ({
  type: "scatter",
  mode: "markers",
  x: [x],
  y: [y],
  marker: { size: 9, color: colour(shade), line: { color: colour("card"), width: 1.5 } },
  cliponaxis: false,
  hoverinfo: "skip",
});

const markerLine = (x) => ({
  type: "line",
  x0: x,
  x1: x,
  yref: "paper",
  y0: 0,
  y1: 1,
  line: { color: colour("soft"), dash: "dot", width: 1 },
});

// On a narrow screen only some ticks have room for their texts; the last always has one.
function thinned(texts) {
  const every = narrow() ? Math.ceil(texts.length / 2) : 1;
  return texts.map((text, place) => ((texts.length - 1 - place) % every ? "" : text));
}

// An axis: name, range (low, high), log, ticks and their texts, all but the name optional.
function axis({ name, low, high, log, ticks, texts, unit }) {
  const end = log ? Math.log10 : (value) => value;
  return {
    title: name && { text: label(name), font: { size: 12, color: colour("soft") }, standoff: 8 },
    type: log ? "log" : "linear",
    range: low === undefined ? undefined : [end(low), end(high)],
    tickvals: ticks ?? undefined,
    ticktext: texts?.map((text) => label(text, 18)),
    ticksuffix: unit,
    ticklabelstandoff: 4,
    tickfont: { size: 12, color: colour("soft") },
    gridcolor: colour("line"),
    zerolinecolor: colour("kept"),
    fixedrange: true,
  };
}

// With `thin`, texts leave the x axis where they would meet.
function lineChart(id, said, { x, y, thin = false, lines, dots = [], markers = [], height = 300, ...more }) {
  return draw(id, said, [...lines.map(lineTrace), ...dots.map(dotTrace)], {
    height,
    margin: { l: 56, r: 20, t: more.showlegend ? 40 : 12, b: 48 },
    xaxis: { ...axis(thin ? { ...x, texts: thinned(x.texts) } : x), showgrid: false, zeroline: false },
    yaxis: { ...axis(y), rangemode: "tozero" },
    shapes: markers.map(markerLine),
    legend: legendOnTop,
    ...more,
  });
}

// --- flows -------------------------------------------------------------------------------------

const WAYS = [
  { from: 0, to: 0, colour: "kept" },
  { from: 0, to: 1, colour: "lost" },
  { from: 1, to: 0, colour: "won" },
  { from: 1, to: 1, colour: "never" },
];

// Items that pass from stage to stage. `ends`: for each stage what to call the known and the not
// known items; `steps`: between two stages the counts of WAYS; `words`: what to call these.
function flowChart(id, said, { ends, steps, words, width }) {
  const total = steps[0].reduce((sum, count) => sum + count, 0);
  const share = (count) => `${whole(count)} (${percent(count / total)})`;
  const known = [steps[0][0] + steps[0][1], ...steps.map((step) => step[0] + step[2])];
  const sums = known.flatMap((count) => [count, total - count]);
  const middle = (sum) => Math.max(0.001, (0.46 * sum) / total); // a node's own half of 92 % of the height
  const links = steps.flatMap((step, stage) =>
    WAYS.map((way, kind) => ({ ...way, stage, value: step[kind], word: words[kind] })),
  );
  const node = {
    label: ends.flat().map((end, index) => `${label(end)}<br>${share(sums[index])}`),
    x: sums.map((_, index) =>
      Math.min(Math.max(Math.floor(index / 2) / steps.length, 0.001), 0.999),
    ),
    y: sums.map((sum, index) => (index % 2 ? 1 - middle(sum) : middle(sum))),
    color: sums.map((_, index) => colour(index % 2 ? "never" : "kept")),
    line: { width: 0 },
    pad: 24,
    thickness: 12,
    hoverinfo: "none",
  };
  const link = {
    source: links.map(({ stage, from }) => 2 * stage + from),
    target: links.map(({ stage, to }) => 2 * (stage + 1) + to),
    value: links.map(({ value }) => value),
    color: links.map((way) => colour(way.colour, 0.6)),
    label: links.map(({ word }) => word),
    customdata: links.map(({ word, value }) => `${word}: ${share(value)}`),
    hovertemplate: "%{customdata}<extra></extra>",
  };
  return draw(id, said, [{ type: "sankey", arrangement: "fixed", node, link }], {
    height: 340,
    width: printing ? PAPER_WIDTH : width,
    margin: { l: 4, r: 4, t: 16, b: 16 },
    annotations: flowNumbers(steps, known, total),
  });
}

// Where along its band each of WAYS has its number: the two that cross keep apart.
const NUMBER_AT = [0.5, 0.34, 0.66, 0.5];

// The share of every band, on it.
function flowNumbers(steps, known, total) {
  const scale = 0.92 / total;
  // Heights from the top: known items hang from it, the others stand on the ground.
  const bottomStart = (stage) => 1 - (total - known[stage]) * scale;
  return steps.flatMap((step, stage) => {
    const [kept, lost, won, never] = step.map((count) => count * scale);
    const [left, right] = [bottomStart(stage), bottomStart(stage + 1)];
    const middles = [
      [kept / 2, kept / 2],
      [kept + lost / 2, right + lost / 2],
      [left + won / 2, kept + won / 2],
      [left + won + never / 2, right + lost + never / 2],
    ];
    return step.flatMap((count, kind) => {
      if (!count) return [];
      const [from, to] = middles[kind];
      const along = NUMBER_AT[kind];
      const turned = along === 0.5 ? 0.5 : along < 0.5 ? 0.216 : 0.784; // how far the curve has come
      return [
        {
          text: percent(count / total),
          xref: "paper",
          yref: "paper",
          x: (stage + along) / steps.length,
          y: 1 - (from + turned * (to - from)),
          showarrow: false,
          font: { size: 12 },
          bgcolor: colour("card", 0.75),
        },
      ];
    });
  });
}

// --- charts that a page describes as data --------------------------------------------------------

const KINDS = { lines: lineChart };

function drawDescribed() {
  if (!plotly) return;
  for (const element of document.querySelectorAll("script.description")) {
    const { kind, ...description } = JSON.parse(element.textContent);
    const id = element.dataset.chart;
    KINDS[kind](id, byId(id).getAttribute("aria-label"), description);
  }
}
