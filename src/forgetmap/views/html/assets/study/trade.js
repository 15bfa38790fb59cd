// What was lost against what was gained, or learned.

const canLearn = () => pairs.some((pair) => pair.new);
const tradeAgainst = () =>
  state.against === "learned" && canLearn()
    ? "learned"
    : state.against === "gained" || !canLearn()
      ? "gained"
      : "learned";

// The pairs by the value of an attribute: [value, pairs], in the order of the values.
function byValue(list, name) {
  const groups = new Map();
  for (const pair of list) {
    const value = valueIn(pair, name);
    groups.set(value, [...(groups.get(value) ?? []), pair]);
  }
  return [...groups].sort(([one], [two]) => compare(one, two));
}

const MOST_VALUES = 12; // colours and shapes that can be told apart
const tintable = () =>
  study.attributes.filter(({ values }) => values.length > 1 && values.length <= MOST_VALUES);
const tintBy = () => {
  const names = tintable().map(({ name }) => name);
  if (state.tint === "-") return "";
  if (names.includes(state.tint)) return state.tint;
  return ["method", "stage", "family"].find((name) => names.includes(name)) ?? "";
};
// The same value has the same colour whatever the filters leave.
const placeOfValue = (name, value) => (name ? (attribute(name)?.values.indexOf(value) ?? 0) : 0);

function pairTrace(value, members, name, x, xInterval) {
  const place = placeOfValue(name, value);
  const few = members.length <= 40;
  const bars = (found) =>
    few && found.every((one) => one && hasInterval(one))
      ? {
          type: "data",
          symmetric: false,
          thickness: 1,
          width: 0,
          color: tint(place, 0.45),
          array: found.map((one) => 100 * one.high - 100 * valueOf(one)),
          arrayminus: found.map((one) => 100 * valueOf(one) - 100 * one.low),
        }
      : undefined;
  return {
    type: "scatter",
    mode: "markers",
    name: name ? label(value === undefined ? "none" : showValue(value), 40) : "pairs",
    x: members.map(x),
    y: members.map((pair) => 100 * valueOf(pair.old.lost)),
    error_y: bars(members.map((pair) => pair.old.lost)),
    error_x: xInterval ? bars(members.map(xInterval)) : undefined,
    marker: {
      size: 10,
      color: tint(place, 0.9),
      symbol: symbol(place),
      line: { color: colour("card"), width: 1 },
    },
    customdata: members.map((pair) => pair.place),
    hoverinfo: "text",
    hovertext: members.map((pair) =>
      [
        ...cellWords(pair, "old skills", pair.old),
        ...(pair.new ? [`learned: ${plusMinus(pair.new.change)} points on the new tasks`] : []),
      ]
        .map((line) => label(line, 160))
        .join("<br>"),
    ),
  };
}

const openOnClick = (id) => {
  const target = byId(id);
  if (target.dataset.opens) return;
  target.dataset.opens = "true";
  target.on("plotly_click", ({ points: [point] }) => {
    if (point.customdata !== undefined) openPair(pairs[point.customdata]);
  });
};

// A front for each start: trainings of other models, or on other tasks, are no rivals.
function frontTraces(list, x, against) {
  const tradeOff = study.answers.trade_off;
  const means = tradeOff?.learned_by === "gained" ? "gained" : "learned";
  const ours = pairs.filter(({ standing }) => standing?.pareto).map(({ name }) => name);
  const told = tradeOff ? Object.values(tradeOff.fronts ?? {}) : [ours];
  const fronts = tradeOff && !told.length ? [tradeOff.front] : told;
  if (tradeOff ? means !== against : against !== (canLearn() ? "learned" : "gained")) return [];
  return fronts
    .map((front) =>
      list.filter(({ name }) => front.includes(name)).sort((one, two) => x(one) - x(two)),
    )
    .filter((members) => members.length)
    .map((members, place) => ({
      type: "scatter",
      mode: "lines",
      name: "nobody lost less and got more",
      legendgroup: "front",
      showlegend: place === 0,
      x: members.map(x),
      y: members.map((pair) => 100 * valueOf(pair.old.lost)),
      line: { color: colour("ink"), width: 1.5, dash: "dash", shape: "hv" },
      hoverinfo: "skip",
    }));
}

// The curves that the study fitted: what each method lost along what it learned.
function curveTraces(against, name) {
  const tradeOff = study.answers.trade_off;
  if (!tradeOff || tradeOff.attribute !== name) return [];
  if ((tradeOff.learned_by === "gained" ? "gained" : "learned") !== against) return [];
  const drawn = tradeOff.curves.filter(({ fitted: line }) => line.length > 1);
  return drawn.map(({ value, fitted: line }) => ({
    type: "scatter",
    mode: "lines",
    showlegend: false,
    x: line.map(([learned]) => 100 * learned),
    y: line.map(([, lost]) => 100 * lost),
    line: { color: tint(placeOfValue(name, value), 0.6), width: 2 },
    hoverinfo: "skip",
  }));
}

function drawTrade() {
  const against = tradeAgainst();
  const name = tintBy();
  for (const input of byId("trade-x").querySelectorAll("input"))
    input.checked = input.value === against;
  byId("trade-tint").value = name || "-";
  if (!plotly) return;
  const list = wantedPairs().filter((pair) => against === "gained" || pair.new);
  const without = wantedPairs().length - list.length;
  if (!list.length) {
    showInstead(
      "trade",
      wantedPairs().length
        ? "None of these pairs names new tasks, so what they learned is not available."
        : "No pair fits the filters.",
    );
    return;
  }
  showAgain("trade");
  const x =
    against === "gained"
      ? (pair) => 100 * valueOf(pair.old.gained)
      : (pair) => 100 * learnedBy(pair);
  const groups = name ? byValue(list, name) : [[undefined, list]];
  const fronts = frontTraces(list, x, against);
  const curves = curveTraces(against, name);
  const most =
    1.05 *
    Math.min(
      Math.max(...list.map((pair) => 100 * valueOf(pair.old.lost))),
      Math.max(...list.map(x)),
    );
  const even = {
    type: "line",
    x0: 0,
    y0: 0,
    x1: most,
    y1: most,
    line: { color: colour("kept"), width: 1, dash: "dot" },
    layer: "below",
  };
  const legendLines = Math.ceil((groups.length + Math.min(fronts.length, 1)) / (narrow() ? 1 : 4));
  draw(
    "trade-chart",
    `Scatter: what each of ${list.length} pairs lost against what it ${against}. The leaderboard has the numbers.`,
    [
      ...curves,
      ...fronts,
      ...groups.map(([value, members]) =>
        pairTrace(value, members, name, x, against === "gained" ? (pair) => pair.old.gained : null),
      ),
    ],
    {
      height: 440 + 22 * legendLines,
      margin: { l: 64, r: 16, t: 16 + 22 * legendLines, b: 52 },
      xaxis: percentAxis({
        ...apart(),
        title: {
          text:
            against === "gained" ? "gained of the old skills" : "learned: change on the new tasks",
          standoff: 12,
        },
        rangemode: "tozero",
      }),
      yaxis: percentAxis({
        title: { text: "lost of the old skills", standoff: 10, font: { color: colour("lost") } },
        rangemode: "tozero",
      }),
      shapes: against === "gained" ? [even] : [],
      legend: { ...legendOnTop, y: 1.02 },
      showlegend: groups.length > 1 || fronts.length > 0,
      hovermode: "closest",
    },
  );
  openOnClick("trade-chart");
  byId("trade-caption").replaceChildren(
    `What each pair lost (up) against what it ${against} (to the right), in percent; low and right is best.` +
      (against === "gained"
        ? " On the dotted line the average does not move, however much was lost."
        : "") +
      (fronts.length > 1
        ? " The dashed lines join the pairs that no other from the same start beats in both."
        : fronts.length
          ? " The dashed line joins the pairs that no other beats in both."
          : "") +
      (curves.length
        ? ` Lines are the curves of each ${brief(name, 30)} from each model it started from.`
        : "") +
      (list.length <= 40 && hasInterval(list[0].old.lost)
        ? " Thin lines are 95 % intervals over items."
        : "") +
      (without ? ` ${without} pairs without new tasks are left out.` : ""),
  );
}

function showEqualLearning() {
  const tradeOff = study.answers.trade_off;
  const target = byId("trade-equal");
  if (!tradeOff) return;
  if (tradeOff.note)
    target.append(
      make(
        "p",
        { class: "note" },
        `Methods at equal learning: not available, ${brief(tradeOff.note, 300)}.`,
      ),
    );
  if (!tradeOff.equal.length) return;
  const what = tradeOff.learned_by === "gained" ? "gained" : "learned";
  target.append(
    make("h3", {}, `Lost at equal learning, by ${brief(tradeOff.attribute ?? "method", 30)}`),
    textTable(
      "Lost at equal learning",
      [`${what} %`, "start", brief(tradeOff.attribute ?? "method", 30), "lost %", "why not"],
      tradeOff.equal.flatMap(({ learned, start: from, methods }) =>
        methods.map(({ value, lost, interval: found, why }, index) => [
          index ? "" : points(learned),
          index ? "" : brief(from, 60),
          showValue(value),
          lost === null ? NOT_KNOWN : found ? shareText(found) : points(lost),
          brief(why ?? "", 200),
        ]),
      ),
      [1, 2, 4],
    ),
    make("p", { class: "note" }, `Intervals: ${brief(tradeOff.unit, 200)}.`),
  );
}

function setUpTrade() {
  choices(
    byId("trade-x"),
    [
      ["learned", "learned", !canLearn()],
      ["gained", "gained"],
    ],
    tradeAgainst(),
    (value) => choose({ against: value }),
  );
  fillSelect(
    byId("trade-tint"),
    [["-", "nothing"], ...tintable().map(({ name }) => [name, brief(name, 30)])],
    tintBy() || "-",
  );
  byId("trade-tint").addEventListener("change", (event) => choose({ tint: event.target.value }));
  showEqualLearning();
  setUpSaving("trade", plotlyPicture);
}
