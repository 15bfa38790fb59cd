// Life lines: along one path, what was lost and gained against the root; one small chart per group.

const CHART = { width: 260, height: 132, left: 34, right: 10, top: 8, bottom: 20 };
const MOST_CHARTS = 24;

// A small chart. `xs` are places; `xTicks` and `yTicks` are [place, text]; lines have a kind, and
// for each x an estimate { value, low, high } or null.
function smallChart(said, { xs, xTicks, yTicks, lines, size = CHART }) {
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const inner = { w: size.width - size.left - size.right, h: size.height - size.top - size.bottom };
  const x = (place) =>
    size.left + (high > low ? ((place - low) / (high - low)) * inner.w : inner.w / 2);
  const top = yTicks.at(-1)[0];
  const y = (share) => size.top + inner.h * (1 - Math.min(1, Math.max(0, share) / top));
  const at = (place, share) => `${x(place).toFixed(1)} ${y(share).toFixed(1)}`;
  const grid = yTicks.flatMap(([share, text]) => [
    shape("line", {
      class: "grid",
      x1: size.left,
      x2: size.width - size.right,
      y1: y(share),
      y2: y(share),
    }),
    shape("text", { x: size.left - 6, y: y(share) + 4, "text-anchor": "end" }, text),
  ]);
  const names = xTicks.map(([place, text], index) => {
    const anchor =
      xTicks.length === 1 || (index > 0 && index < xTicks.length - 1)
        ? "middle"
        : index
          ? "end"
          : "start";
    const edge = anchor === "start" ? -4 : anchor === "end" ? size.right - 2 : 0;
    return shape("text", { x: x(place) + edge, y: size.height - 5, "text-anchor": anchor }, text);
  });
  const drawn = lines.flatMap(({ kind, estimates, notes }) => {
    const known = xs
      .map((place, index) => [place, estimates[index], notes?.[index]])
      .filter(([, found]) => found);
    if (!known.length) return [];
    const band = [
      ...known.map(([p, f]) => at(p, f.high)),
      ...known.map(([p, f]) => at(p, f.low)).reverse(),
    ];
    return [
      shape("path", { class: `band ${kind}`, d: `M${band.join("L")}Z` }),
      shape("path", {
        class: `line ${kind}`,
        d: `M${known.map(([p, f]) => at(p, f.value)).join("L")}`,
      }),
      ...known.map(([place, found, note]) =>
        shape(
          "circle",
          { class: kind, cx: x(place), cy: y(found.value), r: known.length > 30 ? 1.5 : 2.75 },
          shape("title", {}, note ?? ""),
        ),
      ),
    ];
  });
  return shape(
    "svg",
    {
      class: "small",
      viewBox: `0 0 ${size.width} ${size.height}`,
      role: "img",
      "aria-label": said,
    },
    ...grid,
    ...names,
    ...drawn,
  );
}

// --- one path --------------------------------------------------------------------------------------

const NONE = { value: 0, low: 0, high: 0 };
const asEstimate = (found) => ({ value: valueOf(found), low: found.low, high: found.high });

// Where the checkpoints of a path stand: at a number that they carry, else one after the other.
function alongPath(nodes) {
  const run = lineage.runs.find(({ path }) => path.join() === nodes.join());
  const number = ["steps", "tokens"].includes(run?.number) ? run.number : null;
  if (!number) {
    const places = nodes.map((_, place) => place);
    const ends_ = [0, nodes.length - 1].map((place) => [
      place,
      fitted(lineage.nodes[nodes[place]].name, 96, 11),
    ]);
    return { xs: places, xTicks: ends_, word: "stage" };
  }
  const xs = nodes.map((node) => lineage.nodes[node].numbers[number] ?? 0);
  return { xs, xTicks: numberTicks(xs), word: number };
}

const shortNumber = (value) =>
  Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 }).format(value);

// Round numbers inside of what is shown; the axis begins and ends where the data do.
function numberTicks(xs, wanted = 5) {
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  if (high === low) return [[low, shortNumber(low)]];
  const step = roundTicks(high - low, wanted)[1];
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, index) => (first + index) * step).map((tick) => [
    tick,
    shortNumber(tick),
  ]);
}

function pathCharts(nodes) {
  const stages = nodes.slice(1).map(againstRoot);
  const places = [-1, ...groupNames().keys()];
  const rows = places
    .map((place) => ({
      name: place < 0 ? `All ${oldWord().replace("all ", "")}` : titleOf(groupNames()[place]),
      isAll: place < 0,
      isNew: place >= 0 && isTaught(groupNames()[place]),
      cells: stages.map((pair) => (place < 0 ? pair.old : pair[view.by][place])),
    }))
    .filter(({ cells }) => cells.some(Boolean));
  const most = ({ cells }) => Math.max(...cells.map((cell) => (cell ? valueOf(cell.lost) : 0)));
  const order = ({ isAll, isNew }) => (isAll ? 0 : isNew ? 2 : 1);
  return rows.sort(
    (one, two) =>
      order(one) - order(two) || most(two) - most(one) || one.name.localeCompare(two.name),
  );
}

function lineFigure({ name, cells }, nodes, axis, yTicks) {
  const lines = DIRECTIONS.map((direction) => ({
    kind: direction.colour,
    estimates: [NONE, ...cells.map((cell) => (cell ? asEstimate(cell[direction.key]) : null))],
    notes: [
      nameAt(nodes[0]),
      ...cells.map((cell, place) =>
        cell
          ? `${nameAt(nodes[place + 1])}: ${direction.key} ${ends(cell[direction.key])} % (${interval(cell[direction.key])})`
          : "",
      ),
    ],
  }));
  const last = cells.findLast(Boolean);
  const said = `${name}: at the end lost ${ends(last.lost)} %, gained ${ends(last.gained)} %`;
  return make(
    "figure",
    { class: "card life" },
    make(
      "figcaption",
      {},
      make("b", {}, name),
      make("span", {}, ...DIRECTIONS.flatMap((d) => [amount(d, last[d.key]), " "])),
    ),
    smallChart(said, { ...axis, yTicks, lines }),
  );
}

function drawLines() {
  const path = lineage.paths[view.path];
  const rows = pathCharts(path.nodes);
  const listed = rows.slice(0, view.allLines ? rows.length : MOST_CHARTS);
  const ofOld = listed.filter(({ isNew }) => !isNew).flatMap(({ cells }) => cells.filter(Boolean));
  const most = Math.max(0.01, ...ofOld.flatMap((cell) => [cell.lost.high, cell.gained.high]));
  const ticksOf = (high) => roundTicks(high, 3).map((tick) => [tick, tickText(tick)]);
  const ofNew = listed
    .filter(({ isNew }) => isNew)
    .flatMap(({ cells }) => cells.filter(Boolean).map(({ gained }) => gained.high));
  const axis = alongPath(path.nodes);
  byId("lines-charts").replaceChildren(
    ...listed.map((row) =>
      lineFigure(row, path.nodes, axis, ticksOf(row.isNew ? Math.max(most, ...ofNew) : most)),
    ),
  );
  byId("lines-more").replaceChildren(
    ...(listed.length < rows.length
      ? [
          make(
            "button",
            { type: "button", onclick: () => setView({ allLines: true }) },
            `All ${whole(rows.length)} charts`,
          ),
        ]
      : []),
  );
  byId("lines-note").textContent = unbroken(
    `In % of the items of each ${view.by}, against ${nameAt(path.nodes[0], 40)}, along ${axis.word === "stage" ? "the stages" : axis.word}. − lost, + gained. Pale: the 95 % interval. All charts have one scale${ofNew.length ? ", but for new skills" : ""}.`,
  );
  drawKinds(path);
  drawRun(path);
}

// --- what became of the items, and the run in numbers ------------------------------------------------

const CHANGED_KINDS = { "lost for good": "lost", "learned and lost": "lost", learned: "won" };

function drawKinds({ counts, items, nodes }) {
  const row = ([kind, count, stages]) => {
    const bar = make("i", { class: CHANGED_KINDS[kind] ?? "" });
    bar.style.width = `${(100 * count) / items}%`;
    const isListed = !["kept", "never known", "incomplete"].includes(kind);
    const pair = againstRoot(nodes.at(-1));
    return [
      isListed
        ? make(
            "button",
            {
              type: "button",
              class: "link",
              onclick: () => showPairItems(pair, { transition: "", cause: kind }),
            },
            kind,
          )
        : kind,
      whole(count),
      make(
        "span",
        {},
        percent(count / items),
        make("span", { class: "part", "aria-hidden": "true" }, bar),
      ),
      lineage.meanings[kind],
      brief(stages, 300),
    ];
  };
  byId("kinds").replaceChildren(
    table(["life line", "items", "share", "meaning", "where"], counts.map(row), [0, 3, 4]),
  );
}

function drawRun({ nodes }) {
  const run = lineage.runs.find(({ path }) => path.join() === nodes.join());
  byId("run").hidden = !run;
  if (!run) return;
  const recovered = (found) =>
    found ? `${points(found[0])} (${points(found[1])} to ${points(found[2])})` : "–";
  const rows = nodes.slice(1).map((node, place) => {
    const { old } = againstRoot(node);
    const dose = run.number ? lineage.nodes[node].numbers[run.number] : place + 1;
    return [
      nodeLink(node, 40),
      dose.toLocaleString("en-US"),
      points(old.accuracyAfter),
      ...DIRECTIONS.map((d) =>
        make(
          "span",
          {},
          amount(d, old[d.key]),
          make("span", { class: "under" }, interval(old[d.key])),
        ),
      ),
      `${whole(run.lost_before[place])}`,
      recovered(run.recovered[place]),
    ];
  });
  byId("run-table").replaceChildren(
    table(
      [
        "checkpoint",
        run.number ?? "stage",
        "right %",
        "lost %",
        "gained %",
        "lost before",
        "recovered of these %",
      ],
      rows,
    ),
  );
  const times = run.times_forgotten.map(
    ([often, count]) =>
      `${whole(count)} items ${often === 0 ? "never" : often === 1 ? "once" : `${often} times`}`,
  );
  byId("run-events").textContent = `Forgotten: ${times.join(", ")}.`;
}

function setUpLines() {
  const name = ({ nodes }) =>
    `${nameAt(nodes[0], 24)} → ${nameAt(nodes.at(-1), 30)} (${nodes.length} checkpoints)`;
  const worst = (path) => valueOf(againstRoot(path.nodes.at(-1)).old.lost);
  const { paths } = lineage;
  const places = [...paths.keys()].sort(
    (one, two) =>
      paths[two].nodes.length - paths[one].nodes.length || worst(paths[two]) - worst(paths[one]),
  );
  view.path = places[0];
  fillSelect(
    byId("path"),
    places.map((place) => [String(place), name(lineage.paths[place])]),
    String(view.path),
  );
  byId("path").addEventListener("change", ({ target }) => setView({ path: Number(target.value) }));
}

// Show a path that goes through a checkpoint.
function showPath(node) {
  const place = lineage.paths.findIndex(({ nodes }) => nodes.includes(node));
  byId("path").value = String(place);
  setView({ path: place });
  byId("lines").scrollIntoView();
}
