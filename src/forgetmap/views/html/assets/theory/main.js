// Put the page together: sliders, and what is drawn again whenever one moves.

function short(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 0.001 && size < 10000) return String(Number(number.toPrecision(3)));
  const [digits, power] = number.toExponential(0).split("e");
  const raised = String(Number(power)).replace(
    /./g,
    (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)],
  );
  return digits === "1" ? `10${raised}` : `${digits}·10${raised}`;
}

const mass = (share) => (share > 0 && share < 0.0005 ? "<0.1 %" : percent(share));

// --- the sliders -------------------------------------------------------------------------------

const same = (value) => value;
const SLIDERS = [
  {
    id: "delta",
    name: "Separation",
    first: 3,
    low: 0.5,
    high: 8,
    step: 0.1,
    shown: (value) => value.toFixed(1),
    hint: "of the modes, in standard deviations",
  },
  {
    id: "start",
    name: "Start",
    first: 0.2,
    low: 0.01,
    high: 0.99,
    step: 0.01,
    shown: mass,
    hint: "old mass of the model now",
  },
  {
    id: "target",
    name: "Target",
    first: 0.5,
    low: 0.01,
    high: 0.99,
    step: 0.01,
    shown: mass,
    hint: "old mass of reverse KL's target",
  },
  {
    id: "replay",
    name: "Replay share",
    first: 0.1,
    low: 0,
    high: 0.6,
    step: 0.01,
    shown: mass,
    hint: "old samples among the data",
  },
  {
    id: "batch",
    name: "Batch",
    first: 16,
    low: 1,
    high: 256,
    step: 1,
    shown: String,
    hint: "samples of a step",
  },
  {
    id: "temperature",
    name: "Temperature",
    first: 0,
    low: -1,
    high: 1,
    step: 0.02,
    value: (power) => 10 ** power,
    shown: short,
    hint: "KL strength over a reward gap of 1",
  },
];

const sliderOf = ({ id }) => byId(id);
const inputsNow = () =>
  Object.fromEntries(
    SLIDERS.map((one) => [one.id, (one.value ?? same)(Number(sliderOf(one).value))]),
  );

function setUpSliders() {
  for (const { id, name, first, low, high, step, hint } of SLIDERS) {
    const slider = make("input", {
      id,
      type: "range",
      min: low,
      max: high,
      step,
      value: first,
      "aria-describedby": `${id}-hint`,
    });
    const label = make(
      "label",
      { for: id },
      make("span", {}, name),
      make("output", { id: `${id}-shown`, for: id }),
      slider,
    );
    label.append(make("small", { id: `${id}-hint` }, hint));
    byId("inputs").append(label);
    slider.addEventListener("input", redraw);
  }
  const reset = make("button", { type: "reset", class: "quiet" }, "Reset");
  byId("inputs").append(reset);
  byId("inputs").addEventListener("reset", () => setTimeout(redraw));
  byId("inputs").addEventListener("submit", (event) => event.preventDefault());
}

function showInputs(inputs) {
  for (const { id, shown } of SLIDERS) {
    const text = shown(inputs[id]);
    byId(`${id}-shown`).textContent = text;
    byId(id).setAttribute("aria-valuetext", text);
  }
}

// --- legends, tiles, table ---------------------------------------------------------------------

function key(name, text) {
  const swatch = make("i");
  const { colour: shade, dash, width } = look(name);
  swatch.style.color = `var(--${shade})`;
  swatch.style.borderTopWidth = `${width ?? 2}px`;
  swatch.style.borderTopStyle = { dot: "dotted", solid: "solid" }[dash ?? "solid"] ?? "dashed";
  return make("span", { class: "key" }, swatch, text);
}

function caption(id, keys, text) {
  byId(id).replaceChildren(
    make("span", { class: "keys" }, ...keys.map((one) => key(...one))),
    text,
  );
}

function showTiles(inputs, found) {
  const tiles = [
    ["overlap of the modes", short(found.overlap), "Bhattacharyya coefficient"],
    [
      "old taken for new",
      mass(found.misassigned),
      `bound ${found.misassignedBound < 1 ? mass(found.misassignedBound) : "says nothing"}`,
    ],
    [
      "largest drift",
      short(found.drift.inPlace.largest),
      `std. deviations; bound ${short(found.drift.inPlace.bound)}`,
    ],
    [
      "batches without old",
      mass(found.starved),
      `${mass(found.starvedReplayed)} with ${mass(inputs.replay)} replayed`,
    ],
  ];
  byId("tiles").replaceChildren(...tiles.map((words) => tile(...words)));
}

function showTable({ target, replay, temperature }, { flows, kept, entropic }) {
  const at = (ys, time) => mass(ys[TIMES.findIndex((t) => t > time * 0.999)]);
  const over = (ys) => [at(ys, 10), at(ys, 100)];
  const rows = [
    [key("sft", "SFT, new data only"), ...over(flows.sft), 0, "always"],
    [
      key("replayed", `SFT with ${mass(replay)} replay`),
      ...over(flows.replayed),
      replay,
      "nothing is replayed",
    ],
    [
      key("reverse", `reverse KL, target ${mass(target)} old`),
      ...over(flows.reverse),
      target,
      "never, for the weight",
    ],
    [key("new-only", "reverse KL, new-only target"), ...over(flows.newOnly), 0, "always"],
    ...SYNCS.map((syncs, i) => [
      `KL-regularised RL or OAPL, ${syncs} ${syncs === 1 ? "round" : "rounds"} at ${short(temperature)}`,
      "",
      "",
      kept[i],
      "rounds / temperature grows",
    ]),
    [`TTT-Discover, penalty ${short(temperature)}`, "", "", entropic, "the penalty is 0"],
  ];
  byId("end-table").tBodies[0].replaceChildren(
    ...rows.map(([what, soon, late, end, when]) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, what),
        make("td", {}, soon),
        make("td", {}, late),
        make("td", {}, mass(end)),
        make("td", { class: "text" }, when),
      ),
    ),
  );
}

// --- the charts --------------------------------------------------------------------------------

// How lines look, by name; more than one name may be given, later ones add to the first.
const LOOKS = {
  old: { colour: "lost" },
  new: { colour: "won" },
  sft: { colour: "lost" },
  reverse: { colour: "won" },
  replayed: { colour: "good", dash: "dashdot" },
  "new-only": { colour: "violet", dash: "dash" },
  apart: { colour: "soft", dash: "dot", width: 1.5 },
  bound: { dash: "4px,3px", width: 1.3 },
  thin: { width: 1 },
};
const look = (names) => Object.assign({}, ...names.split(" ").map((name) => LOOKS[name]));

function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const skip = Math.ceil((last - first + 1) / 7);
  const ticks = [];
  for (let power = last; power >= first; power -= skip) ticks.push(10 ** power);
  return ticks;
}

// Charts out of view are drawn when they come into view: a step of a slider must be quick.
const waiting = new Map(); // id -> how to draw it
const inView = new Set();
const drawn = new Map(); // id -> what was drawn, so that the same is not drawn again
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) inView.add(target.id);
    else inView.delete(target.id);
  }
  drawWaiting();
});

function drawWaiting() {
  if (!plotly) return;
  for (const id of printing ? [...waiting.keys()] : inView) {
    waiting.get(id)?.();
    waiting.delete(id);
  }
}

function chart(id, { x, y, lines, dots = [], said, ...more }) {
  const axisOf = (one) => {
    const ticks = one.ticks ?? (one.log ? decades(one.low, one.high) : undefined);
    return { ...one, ticks, texts: ticks?.map(short) };
  };
  const description = {
    x: axisOf(x),
    y: axisOf(y),
    lines: lines.map(({ name, ...line }) => ({ ...line, ...look(name) })),
    dots: dots.map(({ name, ...dot }) => ({ ...dot, ...look(name) })),
    height: 270,
    showlegend: false,
    ...more,
  };
  byId(id).setAttribute("aria-label", said);
  const content = JSON.stringify([description, document.documentElement.dataset.theme, printing]);
  if (drawn.get(id) === content) return;
  drawn.set(id, content);
  waiting.set(id, () => lineChart(id, said, description));
}

// From 0 to a little above the largest share in view.
const masses = (...shares) => ({ low: 0, high: Math.min(1, 1.15 * Math.max(...shares)) });

function drawModes({ delta, start }, { overlap: shared }) {
  const xs = spaced(121, -3.5, delta + 3.5);
  const bell = (at) => (x) => Math.exp(-((x - at) ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const old = xs.map((x) => start * bell(0)(x));
  const fresh = xs.map((x) => (1 - start) * bell(delta)(x));
  const both = old.map((value, i) => value + fresh[i]);
  chart("modes-chart", {
    x: { name: "position", low: xs[0], high: xs.at(-1) },
    y: { low: 0, high: Math.max(0.2, ...both) * 1.08 },
    lines: [
      { name: "old", xs, ys: old, isFilled: true },
      { name: "new", xs, ys: fresh, isFilled: true },
      { name: "apart", xs, ys: both },
    ],
    said: `Densities of the old and the new mode, ${delta.toFixed(1)} standard deviations apart; overlap ${short(shared)}.`,
  });
  caption(
    "modes-note",
    [
      ["old", "old"],
      ["new", "new"],
      ["apart", "the model now"],
    ],
    "Everything that blurs the modes is gated by their overlap, exp(−δ²/8).",
  );
}

function drawFlows({ start, target, replay }, { flows }) {
  const names = {
    apart: "apart",
    sft: "sft",
    newOnly: "new-only",
    replayed: "replayed",
    reverse: "reverse",
  };
  const ends = { sft: 0, newOnly: 0, replayed: replay, reverse: target };
  const last = TIMES.at(-1);
  chart("flows-chart", {
    x: { name: "time", low: TIMES[0], high: last, log: true },
    y: masses(start, target, replay),
    lines: Object.entries(names).map(([id, name]) => ({ name, xs: TIMES, ys: flows[id] })),
    dots: Object.entries(ends).map(([id, y]) => ({ name: names[id], x: last, y })),
    said: `Old mass over time. At the end: fine-tuning ${mass(flows.sft.at(-1))}, with replay ${mass(flows.replayed.at(-1))}, reverse KL ${mass(flows.reverse.at(-1))}, reverse KL to a new-only target ${mass(flows.newOnly.at(-1))}.`,
  });
  caption(
    "flows-note",
    [
      ["sft", "SFT"],
      ["replayed", "SFT + replay"],
      ["reverse", "reverse KL"],
      ["new-only", "reverse KL, new-only target"],
      ["apart", "SFT, modes far apart"],
    ],
    "Dots: the limits. Fine-tuning in the logit loses old mass like 1/time.",
  );
}

function drawFixed({ target, replay }, { slopes: found }) {
  const names = { sft: "sft", newOnly: "new-only", replayed: "replayed", reverse: "reverse" };
  const held = [-0.02, ...found.sft, ...found.replayed, ...found.reverse]; // the fourth may leave
  chart("fixed-chart", {
    x: { name: "old weight", low: 0, high: 1 },
    y: { low: 1.1 * Math.min(...held), high: 1.1 * Math.max(...held) },
    lines: [
      { name: "apart", xs: [0, 1], ys: [0, 0] },
      ...Object.entries(names).map(([id, name]) => ({ name, xs: WEIGHTS, ys: found[id] })),
    ],
    dots: [
      { name: "sft", x: 0, y: 0 },
      { name: "replayed", x: replay, y: 0 },
      { name: "reverse", x: target, y: 0 },
    ],
    said: `Slope of each loss against the old weight. It vanishes at 0 for new-only targets, at ${mass(replay)} with replay, at ${mass(target)} for reverse KL.`,
  });
  caption(
    "fixed-note",
    [
      ["sft", "SFT"],
      ["replayed", "SFT + replay"],
      ["reverse", "reverse KL"],
      ["new-only", "reverse KL, new-only target"],
    ],
    "Slope of the loss in the logit: above zero the old weight falls, below it rises; it stops at the dots.",
  );
}

function drawDrift(inputs, { drift: { inPlace, halfWay } }) {
  const ends = [0, DRIFT_TIMES.at(-1)];
  const bounded = ({ oldMean, largest, bound }) => (oldMean.includes(largest) ? bound : -bound);
  const bounds = [bounded(inPlace), bounded(halfWay)];
  const held = [0, ...bounds, ...inPlace.oldMean, ...halfWay.oldMean].map((value) => 1.1 * value);
  const level = (name, value) => ({ name, xs: ends, ys: [value, value] });
  chart("drift-chart", {
    x: { name: "time", low: 0, high: ends[1] },
    y: { low: Math.min(...held), high: Math.max(...held) },
    lines: [
      level("reverse bound", bounds[0]),
      level("sft bound", bounds[1]),
      { name: "reverse", xs: DRIFT_TIMES, ys: inPlace.oldMean },
      { name: "sft", xs: DRIFT_TIMES, ys: halfWay.oldMean },
    ],
    said: `Position of the old mode over time under reverse KL. Largest drift ${short(inPlace.largest)} when the new mode is in place, ${short(halfWay.largest)} when it starts half-way.`,
  });
  caption(
    "drift-note",
    [
      ["reverse", "new mode in place"],
      ["sft", "new mode half-way"],
      ["apart bound", "bounds"],
    ],
    "In standard deviations. Reverse KL moves the old mode only through overlap, and back again. A new mode that starts half-way opens the gate wider.",
  );
}

function drawBatches({ start, replay, batch }, found) {
  const xs = spaced(65, 0, 256);
  const line = (name, share) => ({
    name,
    xs,
    ys: xs.map((size) => starvation(start, size, share)),
  });
  chart("batches-chart", {
    x: { name: "batch", low: 0, high: 256, ticks: [0, 64, 128, 192, 256] },
    y: { low: 1e-6, high: 1, log: true },
    lines: [line("sft", 0), line("replayed", replay)],
    dots: [
      { name: "sft", x: batch, y: found.starved },
      { name: "replayed", x: batch, y: found.starvedReplayed },
    ],
    markers: [batch],
    said: `Chance that a batch holds no old sample: ${mass(found.starved)} at size ${batch}, ${mass(found.starvedReplayed)} with replay.`,
  });
  caption(
    "batches-note",
    [
      ["sft", "on-policy"],
      ["replayed", `${mass(replay)} replayed`],
    ],
    `For a risk of 1 %: a batch of ${found.smallestBatch.toLocaleString("en-US")}, or ${mass(found.smallestReplay)} replayed with importance weights, which leave the objective as it is.`,
  );
}

function drawTemperatures({ start, temperature }, found) {
  const rounds = SYNCS.map((syncs, i) => ({
    name: ["reverse", "reverse thin", "reverse bound"][i],
    xs: TEMPERATURES,
    ys: TEMPERATURES.map((each) => tilted(start, (syncs * REWARD_GAP) / each)),
  }));
  const entropic = TEMPERATURES.map((each) => entropicKept(start, each));
  chart("temperatures-chart", {
    x: { name: "temperature", low: TEMPERATURES[0], high: TEMPERATURES.at(-1), log: true },
    y: masses(start),
    lines: [...rounds, { name: "replayed", xs: TEMPERATURES, ys: entropic }],
    dots: [
      ...found.kept.map((y) => ({ name: "reverse", x: temperature, y })),
      { name: "replayed", x: temperature, y: found.entropic },
    ],
    markers: [temperature],
    said: `Old mass kept against temperature. At ${short(temperature)}: ${SYNCS.map((n, i) => `${mass(found.kept[i])} after ${n}`).join(", ")} rounds; entropic utility ${mass(found.entropic)}.`,
  });
  caption(
    "temperatures-note",
    [
      ["reverse", "1 round"],
      ["reverse thin", "5 rounds"],
      ["reverse bound", "20 rounds"],
      ["replayed", "entropic utility"],
    ],
    "Each refresh of the reference multiplies the odds of the old mode by exp(−gap/temperature): count refreshes, not steps.",
  );
}

function redraw() {
  const inputs = inputsNow();
  const found = compute(inputs);
  showInputs(inputs);
  showTiles(inputs, found);
  for (const drawOne of [drawModes, drawFlows, drawFixed, drawDrift, drawBatches, drawTemperatures])
    drawOne(inputs, found);
  showTable(inputs, found);
  drawWaiting();
}

// --- start --------------------------------------------------------------------------------------

async function start() {
  setUpTheme();
  setUpSliders();
  redraw();
  document.querySelectorAll("figure .chart").forEach((element) => watcher.observe(element));
  window.theoryLab = { compute, inputsNow, TIMES, DRIFT_TIMES, WEIGHTS, SYNCS }; // for the console
  await loadPlotly();
  drawAll = redraw;
  drawWaiting();
  document.documentElement.dataset.ready = "true";
}

start();
