// The heat map: pairs by categories or tasks. A cell has two halves, so that a gain hides no loss.
// It is drawn by hand: plotly has no split cells, and ten thousand of them must follow a filter.

const HEAT = { gap: 6, heading: 30, least: 4, most: 110, split: 26, between: 26, all: 14 };
const NUMBERS = { both: 76, lost: 46, gained: 46 }; // a cell with its numbers
const SLANTED = 18; // columns this wide have slanted names, others upright ones
const heat = { model: null, at: null, frame: 0 };

const shownDirections = () =>
  DIRECTIONS.filter(({ key }) => state.show === "both" || state.show === key);
const columnWord = () => (state.by === "task" ? "task" : "category");

// --- what is drawn where -----------------------------------------------------------------------

function orderedColumns(list) {
  const names = study.columns[state.by];
  const places = [...names.keys()];
  if (state.columns === "name") return places.sort((a, b) => compare(names[a], names[b]));
  if (state.columns === "cluster") return study.orders[state.by].columns;
  const mean = (place) => {
    const found = list.map((pair) => pair[state.by][place]).filter(Boolean);
    const sum = found.reduce((total, cell) => total + valueOf(cell[state.columns]), 0);
    return found.length ? -sum / found.length : 1;
  };
  const means = places.map(mean);
  return places.sort((a, b) => means[a] - means[b]);
}

// The pairs from the top, with a heading above each group.
function heatRows(list) {
  const ordered = inOrder(list, state.rows);
  if (!attribute(state.group)) return ordered.map((pair) => ({ pair }));
  const groups = new Map();
  for (const pair of ordered) {
    const value = valueIn(pair, state.group);
    groups.set(value, [...(groups.get(value) ?? []), pair]);
  }
  return [...groups]
    .sort(([one], [two]) => compare(one, two))
    .flatMap(([value, members]) => [
      {
        heading: `${brief(state.group, 30)}: ${value === undefined ? "none" : showValue(value)} (${members.length})`,
      },
      ...members.map((pair) => ({ pair })),
    ]);
}

// As wide as fits: slanted names reach over the last columns, so room is left for them.
function columnWidth(room, sizes) {
  const slanted = Math.min(
    room / sizes.length,
    ...sizes.map((size, place) => (room - 0.71 * size - 10) / (place + 0.5)),
  );
  return slanted >= SLANTED ? slanted : room / sizes.length;
}

// Narrow halves would blur into stripes: then what was lost and gained stand side by side instead.
function heatPanels(room, sizes) {
  const directions = shownDirections();
  const least = NUMBERS[state.show] ?? NUMBERS.both;
  const width = columnWidth(room, sizes);
  const wanted = state.size === "numbers" && !(printing && width < least);
  if (wanted || (state.size === "" && width >= least))
    return { panels: [directions], withNumbers: true, width: Math.max(width, least) };
  if (directions.length === 1 || width >= HEAT.split) return { panels: [directions], width };
  const each = columnWidth((room - HEAT.between) / 2, sizes);
  return { panels: directions.map((one) => [one]), width: each };
}

function heatColumns(list, panels, width) {
  const names = study.columns[state.by];
  const order = orderedColumns(list);
  let x = 0;
  return panels.flatMap((directions, panel) => {
    if (panel) x += HEAT.between;
    const first = Math.max(width, HEAT.all);
    const all = {
      name: "All",
      cell: (pair) => pair.old,
      directions,
      x,
      width: first,
      isFirst: true,
    };
    x += first + HEAT.gap;
    const rest = order.map((place) => {
      const column = {
        name: titleOf(names[place]),
        cell: (pair) => pair[state.by][place],
        directions,
        x,
        width,
      };
      x += width;
      return column;
    });
    return [all, ...rest];
  });
}

function placeRows(rows, height) {
  let top = 0;
  for (const row of rows) {
    row.y = top;
    top += row.heading ? HEAT.heading : height;
  }
  return top;
}

function heatModel() {
  const list = wantedPairs();
  const rows = heatRows(list);
  const room = printing ? PAPER_WIDTH : byId("map-chart").clientWidth;
  const longest = rows.map(({ pair }) => (pair ? textWidth(brief(pair.name, 160)) : 0));
  const labels = Math.min(Math.max(60, ...longest) + 14, narrow() ? 0.36 * room : 300);
  const sizes = ["All", ...study.columns[state.by].map(titleOf)].map((name) =>
    Math.min(textWidth(brief(name, 60), 12), 170),
  );
  const fit = heatPanels(room - labels - 2 * (HEAT.gap + HEAT.all) - 12, sizes);
  const width = Math.min(Math.max(HEAT.least, fit.width), HEAT.most);
  const columns = heatColumns(list, fit.panels, width);
  const height = fit.withNumbers ? 26 : rows.length > 60 ? 14 : 20;
  const slanted = width >= SLANTED;
  const title = fit.panels.length > 1 ? 24 : 0;
  const end = columns.at(-1).x + width;
  const reach = columns.map(
    ({ x }, place) => x + width / 2 + 0.71 * sizes[place % sizes.length] + 10,
  );
  return {
    ...{ rows, columns, labels, width, height, slanted, title, end },
    withNumbers: Boolean(fit.withNumbers),
    head: Math.max(...sizes) * (slanted ? 0.71 : 1) + 18 + title,
    bottom: placeRows(rows, height),
    right: Math.max(end, slanted ? Math.max(...reach) : 0) + 2,
  };
}

// --- drawing -----------------------------------------------------------------------------------

const box = (x, y, width, height) => `M${x} ${y}h${width}v${height}h${-width}z`;
const font = () => getComputedStyle(document.body).fontFamily;

// All cells of one colour are one path: quick, whatever their number.
function heatPaths(model) {
  const paths = new Map();
  const add = (key, text) => {
    if (paths.has(key)) paths.get(key).push(text);
    else paths.set(key, [text]);
  };
  const gap = model.width > 12 ? 1 : model.width > 7 ? 0.5 : 0.25;
  const line = model.height > 18 ? 2 : 1.2;
  for (const { pair, y } of model.rows) {
    if (!pair) continue;
    for (const column of model.columns) {
      const cell = column.cell(pair);
      if (!cell) {
        add("missing", `M${column.x + 2} ${y + model.height / 2}h${Math.max(column.width - 5, 1)}`);
        continue;
      }
      const { directions } = column;
      const half = (column.width - gap) / directions.length;
      directions.forEach((direction, index) => {
        const depth = depthOf(valueOf(cell[direction.key]), study.steps);
        const part = half - (directions.length > 1 ? gap / 2 : 0);
        const x = column.x + index * half;
        const path = box(x.toFixed(2), y, part.toFixed(2), model.height - gap);
        add(`${direction.hue} ${depth}`, path);
      });
      // Gains alone keep the mark too: they must not hide that something was lost.
      if (cell.forgetting === "lost" && (directions[0] === LOST || state.show === "gained"))
        add(
          "sure",
          box(
            column.x.toFixed(2),
            y + model.height - gap - line,
            (half - gap / 2).toFixed(2),
            line,
          ),
        );
    }
  }
  const fill = (key) => {
    if (key === "sure") return { fill: colour("lost") };
    if (key === "missing")
      return { stroke: colour("never"), "stroke-width": 1, "stroke-dasharray": "2 2" };
    const [hue, depth] = key.split(" ");
    return { fill: depth === "0" ? colour("wash") : heatColour(hue, depth) };
  };
  return [...paths]
    .sort(([one], [two]) => (one === "sure") - (two === "sure"))
    .map(([key, texts]) =>
      shape("path", { d: texts.join(""), "shape-rendering": "crispEdges", ...fill(key) }),
    );
}

// The numbers of the cells inside a window; all of them where there is no window.
function heatNumbers(model, view) {
  const inside = ({ y }) => !view || (y + model.height > view.top && y < view.bottom);
  const seen = model.columns.filter(
    ({ x, width }) => !view || (x + width > view.left && x < view.right),
  );
  const texts = [];
  for (const row of model.rows.filter((one) => one.pair && inside(one))) {
    for (const column of seen) {
      const cell = column.cell(row.pair);
      if (!cell) continue;
      column.directions.forEach((direction, index) => {
        const x = column.x + (column.width / column.directions.length) * (index + 0.5) - 0.5;
        texts.push(
          shape(
            "text",
            {
              x,
              y: row.y + model.height / 2 + 4,
              "font-weight": direction === LOST && cell.forgetting === "lost" ? 650 : null,
            },
            signed(direction, cell[direction.key]),
          ),
        );
      });
    }
  }
  return shape(
    "g",
    {
      "font-size": model.width < 86 && state.show === "both" ? 11 : 12,
      "font-family": font(),
      fill: colour("ink"),
      "text-anchor": "middle",
    },
    ...texts,
  );
}

function columnTexts(model) {
  const stride = model.slanted ? 1 : Math.ceil(13 / model.width);
  const panel = model.columns.length / (model.title ? 2 : 1);
  const titles = model.columns
    .filter(({ isFirst }) => isFirst && model.title)
    .map(({ x, directions: [direction] }) =>
      shape(
        "text",
        { x, y: 14, "font-size": 13, "font-weight": 650, fill: colour(direction.colour) },
        `${direction.sign} ${direction.key}`,
      ),
    );
  return shape(
    "g",
    { "font-size": 12, "font-family": font(), fill: colour("ink") },
    ...titles,
    ...model.columns.flatMap((column, place) => {
      const index = place % panel;
      if (index && (index - (model.slanted ? 0 : stride)) % stride) return [];
      const x = column.x + column.width / 2 + (model.slanted ? 0 : 4);
      const text = shape(
        "text",
        {
          transform: `translate(${x} ${model.head - 8}) rotate(${model.slanted ? -45 : -90})`,
          "font-weight": index ? null : 650,
        },
        fitted(column.name, 170, 12),
      );
      text.append(shape("title", {}, brief(column.name, 160)));
      return [text];
    }),
  );
}

function rowTexts(model, linked = true) {
  return shape(
    "g",
    { "font-family": font(), fill: colour("ink") },
    ...model.rows.map(({ pair, heading, y }) => {
      if (heading)
        return shape(
          "text",
          { x: 0, y: y + HEAT.heading - 9, "font-size": 13, "font-weight": 650 },
          fitted(heading, model.labels - 4),
        );
      const size = model.height < 16 ? 11 : 13;
      const chosen = state.pair.includes(pair.name);
      const text = shape(
        "text",
        {
          x: 0,
          y: y + model.height / 2 + size / 3,
          "font-size": size,
          "font-weight": chosen ? 650 : null,
        },
        fitted(pair.name, model.labels - 12, size),
      );
      text.append(shape("title", {}, brief(pair.name, 160)));
      if (!linked || !pair.page) return text;
      text.setAttribute("fill", colour("accent"));
      return shape("a", { href: pair.page, tabindex: -1 }, text);
    }),
  );
}

// What the colours mean, with numbers.
function heatLegend(width) {
  const scale = ["0", ...study.steps.map((step) => points(step, step < 0.01 ? 1 : 0))];
  const swatch = narrow() ? 34 : 44;
  const group = (direction, left, top) =>
    shape(
      "g",
      { transform: `translate(${left} ${top})` },
      shape(
        "text",
        { x: 0, y: 15, "font-size": 13, "font-weight": 650, fill: colour(direction.colour) },
        `${direction.key} %`,
      ),
      ...scale.map((from, depth) =>
        shape(
          "g",
          {},
          shape("path", {
            d: box(72 + depth * swatch, 0, swatch - 2, 20),
            fill: depth ? heatColour(direction.hue, depth) : colour("wash"),
          }),
          shape(
            "text",
            {
              x: 71 + (depth + 0.5) * swatch,
              y: 14.5,
              "font-size": 11,
              "text-anchor": "middle",
              fill: colour("ink"),
            },
            depth ? `${direction.sign}${from}` : "0",
          ),
        ),
      ),
    );
  const one = 72 + scale.length * swatch + 28;
  const beside = width >= 2 * one;
  const groups = shownDirections().map((direction, index) =>
    beside ? group(direction, index * one, 2) : group(direction, 0, 2 + index * 26),
  );
  const height = beside ? 30 : 4 + 26 * groups.length;
  return { part: shape("g", { "font-family": font() }, ...groups), height };
}

function svgOf(width, height, properties, ...children) {
  return shape(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, ...properties },
    ...children,
  );
}

function drawHeat() {
  const target = byId("map-chart");
  const model = heatModel();
  heat.model = model;
  const legend = heatLegend(printing ? PAPER_WIDTH : target.clientWidth);
  byId("map-legend").replaceChildren(
    svgOf(
      printing ? PAPER_WIDTH : target.clientWidth,
      legend.height,
      { "aria-hidden": "true" },
      legend.part,
    ),
  );
  const hidden = { "aria-hidden": "true" };
  const cells = svgOf(
    model.right,
    Math.max(model.bottom, 1),
    { ...hidden, class: "cells" },
    ...heatPaths(model),
  );
  cells.append(
    shape("g", { class: "numbers" }),
    shape("rect", { class: "here", visibility: "hidden" }),
  );
  target.replaceChildren(
    make(
      "div",
      { class: "grid" },
      make("div", { class: "corner" }),
      make("div", { class: "heads" }, svgOf(model.right, model.head, hidden, columnTexts(model))),
      make(
        "div",
        { class: "names" },
        svgOf(model.labels, Math.max(model.bottom, 1), {}, rowTexts(model)),
      ),
      cells,
    ),
  );
  target.firstChild.style.gridTemplateColumns = `${model.labels}px ${model.right}px`;
  target.setAttribute(
    "aria-label",
    `Heat map: what ${wantedPairs().length} pairs lost and gained in each ${columnWord()}. ` +
      "Arrow keys go from cell to cell, Enter opens the page of the pair. The table below has the numbers.",
  );
  heat.at = null;
  hideTip();
  showNumbers();
  byId("map-caption").replaceChildren(heatCaption(model));
  if (!model.rows.length) target.replaceChildren(notice("No pair fits the filters."));
  if (byId("map-numbers").open) showHeatTable();
}

function heatCaption(model) {
  const shown = wantedPairs().length;
  const halves = {
    both: model.title
      ? "lost (−) on the left, gained (+) on the right"
      : "left half lost (−), right half gained (+)",
    lost: "lost (−) alone",
    gained: "gained (+) alone",
  };
  const skipped =
    !model.slanted && model.width < 13
      ? " Not every name is written; point at a cell to read it."
      : "";
  const range = pairs.some((pair) => isRange(pair.old.lost))
    ? " Where only single runs are known, a number is the most that it can be."
    : "";
  const sure = pairs.some((pair) => pair.old.forgetting)
    ? ` An orange line at the foot of a cell: surely lost more than ${percent(study.margin)}, corrected over all pairs.`
    : " There are no verdicts, since there are no items behind the numbers.";
  return (
    `Share of items lost and gained by ${shown} of ${pairs.length} pairs (rows) in each ${columnWord()} (columns): ${halves[state.show]}, in percent.` +
    sure +
    " A dashed line: not compared." +
    range +
    skipped
  );
}

function showNumbers() {
  const { model } = heat;
  const place = byId("map-chart").querySelector(".numbers");
  if (!place) return;
  if (!model.withNumbers) return place.replaceChildren();
  const target = byId("map-chart");
  const few = model.rows.length * model.columns.length <= 800 || printing;
  const view = {
    left: target.scrollLeft - 200,
    right: target.scrollLeft + target.clientWidth + 200,
    top: target.scrollTop - 300,
    bottom: target.scrollTop + Math.max(target.clientHeight, 0) + 300,
  };
  return place.replaceChildren(heatNumbers(model, few ? null : view));
}

// The whole map as one picture.
function heatPicture() {
  const { model } = heat;
  const width = Math.max(model.labels + model.right + 24, 520);
  const legend = heatLegend(width - 24);
  const move = (x, y, ...parts) => shape("g", { transform: `translate(${x} ${y})` }, ...parts);
  const top = legend.height + 20;
  const svg = shape(
    "g",
    {},
    move(12, 10, legend.part),
    move(12 + model.labels, top, columnTexts(model)),
    move(12, top + model.head, rowTexts(model, false)),
    move(12 + model.labels, top + model.head, ...heatPaths(model)),
  );
  if (model.withNumbers)
    svg.append(move(12 + model.labels, top + model.head, heatNumbers(model, null)));
  return { inner: textOf(svg), width, height: top + model.head + model.bottom + 4 };
}

function showHeatTable() {
  const model = heat.model;
  const columns = model.columns.slice(0, model.columns.length / (model.title ? 2 : 1));
  const both = (cell) => (cell ? `−${ends(cell.lost)} / +${ends(cell.gained)}` : "not compared");
  byId("map-numbers")
    .querySelector("div")
    .replaceChildren(
      table(
        ["pair", ...columns.map(({ name }) => brief(name, 40))],
        model.rows
          .filter(({ pair }) => pair)
          .map(({ pair }) => [pairLink(pair), ...columns.map(({ cell }) => both(cell(pair)))]),
      ),
    );
}

// --- pointing and keys -------------------------------------------------------------------------

function cellAt(event) {
  const cells = byId("map-chart").querySelector(".cells");
  if (!cells) return null;
  const frame = cells.getBoundingClientRect();
  const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
  const { model } = heat;
  const row = model.rows.findIndex((one) => one.pair && y >= one.y && y < one.y + model.height);
  const column = model.columns.findIndex((one) => x >= one.x && x < one.x + one.width);
  return row < 0 || column < 0 || y < 0 ? null : { row, column };
}

function pointAtCell(at, { spoken = false, withLink = false } = {}) {
  const { model } = heat;
  const here = byId("map-chart").querySelector(".here");
  heat.at = at;
  if (!here) return;
  here.setAttribute("visibility", at ? "visible" : "hidden");
  if (!at) {
    hideTip();
    return;
  }
  const [row, column] = [model.rows[at.row], model.columns[at.column]];
  for (const [name, value] of Object.entries({
    x: column.x - 0.5,
    y: row.y - 0.5,
    width: column.width,
    height: model.height,
    fill: "none",
    stroke: colour("ink"),
    "stroke-width": 1.5,
  }))
    here.setAttribute(name, value);
  const words = cellWords(row.pair, column.name, column.cell(row.pair));
  showTip(words, row.pair, here.getBoundingClientRect(), withLink);
  if (spoken) byId("map-said").textContent = words.join("; ");
}

function moveInHeat(event) {
  const { model, at } = heat;
  const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  if (event.key === "Escape") return pointAtCell(null);
  if (event.key === "Enter" && at) return openPair(model.rows[at.row].pair);
  const step = steps[event.key];
  if (!step || !model.rows.length) return undefined;
  event.preventDefault();
  const last = model.rows.length - 1;
  let row = at ? at.row + step[0] : 0;
  while (row >= 0 && row <= last && model.rows[row].heading) row += step[0] || 1;
  if (row < 0 || row > last) row = at.row;
  const column = Math.min(Math.max(at ? at.column + step[1] : 0, 0), model.columns.length - 1);
  pointAtCell({ row, column });
  byId("map-chart").querySelector(".here").scrollIntoView({ block: "nearest", inline: "nearest" });
  return pointAtCell({ row, column }, { spoken: true });
}

function openPair(pair, inNewTab = false) {
  if (pair.page && inNewTab) window.open(pair.page, "_blank", "noopener");
  else if (pair.page) location.assign(pair.page);
  else say("This pair has no page: it was not written, or there are no logs.");
}

function setUpHeat() {
  const fixed = (id, entries, name) =>
    choices(byId(id), entries, state[name], (value) => choose({ [name]: value }));
  const hasCategories = study.columns.category.length > 0;
  const hasTasks = study.columns.task.length > 0;
  fixed(
    "map-by",
    [
      ["category", "categories", !hasCategories],
      ["task", "tasks", !hasTasks],
    ],
    "by",
  );
  fixed(
    "map-show",
    [
      ["both", "both"],
      ["lost", "− lost"],
      ["gained", "+ gained"],
    ],
    "show",
  );
  fixed(
    "map-size",
    [
      ["", "as fits"],
      ["numbers", "with numbers"],
      ["fit", "overview"],
    ],
    "size",
  );
  const target = byId("map-chart");
  const on = (name, react) => target.addEventListener(name, react);
  on("pointermove", (event) => event.pointerType === "mouse" && pointAtCell(cellAt(event)));
  on("pointerleave", (event) => event.pointerType === "mouse" && pointAtCell(null));
  on("keydown", moveInHeat);
  document.addEventListener("wheel", hideTip, { passive: true });
  on("blur", () => pointAtCell(null));
  on("click", (event) => {
    const at = cellAt(event);
    if (!at || event.target.closest("a")) return;
    const apart_ = event.ctrlKey || event.metaKey;
    if (event.pointerType === "mouse") openPair(heat.model.rows[at.row].pair, apart_);
    else pointAtCell(at, { withLink: true }); // a finger cannot point first: the note has the link
  });
  on("scroll", () => {
    cancelAnimationFrame(heat.frame);
    heat.frame = requestAnimationFrame(showNumbers);
  });
  byId("map-numbers").addEventListener("toggle", () => byId("map-numbers").open && showHeatTable());
  const attributes = study.attributes.map(({ name }) => [`a.${name}`, brief(name, 30)]);
  const follow = (id, name, entries) => {
    fillSelect(byId(id), entries, state[name]);
    byId(id).addEventListener("change", (event) => choose({ [name]: event.target.value }));
  };
  const usual = [
    ["cluster", "alike together"],
    ["lost", "most lost"],
    ["gained", "most gained"],
    ["name", "name"],
  ];
  follow("map-rows", "rows", [...usual, ...attributes]);
  follow("map-columns", "columns", usual);
  follow("map-group", "group", [
    ["", "nothing"],
    ...study.attributes.map(({ name }) => [name, brief(name, 30)]),
  ]);
  setUpSaving("map", heatPicture);
}

function showHeatChoices() {
  for (const [id, name] of [
    ["map-by", "by"],
    ["map-show", "show"],
    ["map-size", "size"],
  ])
    for (const input of byId(id).querySelectorAll("input"))
      input.checked = input.value === state[name];
  for (const [id, name] of [
    ["map-rows", "rows"],
    ["map-columns", "columns"],
    ["map-group", "group"],
  ])
    byId(id).value = state[name];
}

// --- the note beside what is pointed at --------------------------------------------------------

function showTip(lines, pair, frame, withLink) {
  const tip = byId("tip");
  const [title, ...rest] = lines;
  tip.replaceChildren(
    make("b", {}, title),
    ...rest.map((line) =>
      make(
        "div",
        { class: line.startsWith("lost") ? "lost" : line.startsWith("gained") ? "won" : "" },
        line,
      ),
    ),
    pair.page
      ? withLink
        ? make("a", { href: pair.page }, "Open its report")
        : make("div", { class: "soft" }, "A click opens its report.")
      : make("div", { class: "soft" }, "There is no page for this pair."),
  );
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = Math.min(
    Math.max(8, frame.left + frame.width / 2 - size.width / 2),
    room - size.width - 8,
  );
  const below = frame.bottom + 10;
  const fits = below + size.height < window.innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${fits ? below : Math.max(8, frame.top - size.height - 10)}px`;
}
const hideTip = () => {
  byId("tip").hidden = true;
};
