// The graph: boxes for checkpoints, lines for steps. Both are links, so a click or Enter chooses them.

const ACROSS_PAGE = {
  box: { along: 138, across: 46 },
  label: { along: 52, across: 36 },
  ...{ gap: 22, between: 14, bend: 10 },
};
const DOWN_PAGE = {
  box: { along: 46, across: 138 },
  label: { along: 22, across: 96 },
  ...{ gap: 14, between: 14, bend: 10 },
};
const MANY = 24; // checkpoints from which on the boxes are smaller
const SMALLER = { box: { along: 116, across: 42 }, gap: 16, between: 10 };
const EDGE = { thin: 2, most: 8, perShare: 30 };
const PAD = 6; // room for the ring of what is chosen
const BOX_PADDING = 24;
const ZOOM = { least: 0.2, most: 1.6, step: 1.25 };

const graph = { zoom: 1, drawn: null };

const isDown = () => !printing && narrow();

function accuracyOf(node) {
  const pair = againstRoot(node);
  if (pair) return pair.old.accuracyAfter;
  return pairs.find(({ before, root }) => root && before === node).old.accuracyBefore;
}

function drawGraph() {
  const down = isDown();
  const usualSize = down ? DOWN_PAGE : ACROSS_PAGE;
  const isMany = !down && lineage.nodes.length >= MANY;
  const size = isMany ? { ...usualSize, ...SMALLER } : usualSize;
  const found = fitting(size, down);
  const point = (along, across) => (down ? [across, along] : [along, across]).map((at) => at + PAD);
  const [width, height] = point(found.along, found.across).map((at) => at + PAD);
  const picture = shape(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": graphWords() },
    ...edges().map((pair, place) => edgeShape(pair, found.ways[place], size, point)),
    ...found.boxes.map((box, node) => nodeShape(node, box, size, point)),
  );
  graph.drawn = { picture, width, height };
  byId("graph-chart").replaceChildren(picture);
  zoomTo(printing ? Math.min(1, PAPER_WIDTH / width) : graph.zoom);
  markChosen();
}

// In one line where the page has room for it, beside what is chosen or above it; else in more lines.
function fitting(size, down) {
  const inOneLine = layOut(lineage.nodes, edges(), size);
  if (down) return inOneLine;
  const explore = byId("graph-box").parentElement;
  const room = () =>
    (printing ? PAPER_WIDTH : byId("graph-box").clientWidth - BOX_PADDING) - 2 * PAD;
  for (const isStacked of [false, true]) {
    explore.classList.toggle("stacked", isStacked);
    if (inOneLine.along <= room()) return inOneLine;
  }
  explore.classList.remove("stacked");
  return layOut(lineage.nodes, edges(), size, room());
}

const graphWords = () =>
  `${lineage.nodes.length} checkpoints and ${edges().length} steps; the table below lists every step`;

function pathOf({ steps }, point) {
  const at = (along, across) =>
    point(along, across)
      .map((place) => place.toFixed(1))
      .join(" ");
  let across = 0;
  return steps
    .map((step) => {
      const last = across;
      across = step.across;
      if (step.kind === "start") return `M${at(step.along, across)}`;
      if (step.kind === "straight") return `L${at(step.along, across)}`;
      if (step.kind === "corners") return `${cornered(step.corners, at)}L${at(step.along, across)}`;
      const middle = (step.from + step.along) / 2;
      return `C${at(middle, last)} ${at(middle, across)} ${at(step.along, across)}`;
    })
    .join("");
}

// Straight lines with round corners.
function cornered(corners, at) {
  const near = ([x, y], [toX, toY]) => {
    const far = Math.hypot(toX - x, toY - y) || 1;
    const part = Math.min(RAIL.corner, far / 2) / far;
    return at(x + (toX - x) * part, y + (toY - y) * part);
  };
  return corners
    .map((corner, place) => {
      const before = corners[place - 1] ?? [corner[0] - 2 * RAIL.corner, corner[1]];
      const after = corners[place + 1] ?? [corner[0] + 2 * RAIL.corner, corner[1]];
      return `L${near(corner, before)}Q${at(...corner)} ${near(corner, after)}`;
    })
    .join("");
}

function edgeShape(pair, way, size, point) {
  const { old } = pair;
  const d = pathOf(way, point);
  const isSure = old.forgetting === "lost";
  const width = isSure
    ? Math.min(EDGE.most, EDGE.thin + EDGE.perShare * valueOf(old.lost))
    : EDGE.thin;
  const [x, y] = point((way.label.start + way.label.end) / 2, way.label.at);
  const [w, h] = isDown()
    ? [size.label.across, size.label.along]
    : [size.label.along, size.label.across];
  const text = (direction, dx, dy) =>
    shape(
      "text",
      { class: direction.colour, x: x + dx, y: y + dy, "text-anchor": "middle" },
      signed(direction, old[direction.key]),
    );
  return shape(
    "a",
    {
      href: pairAddress(pair),
      class: `edge ${old.forgetting}`,
      "aria-label": pairWords(pair),
      "data-pair": pair.place,
    },
    shape("title", {}, pairWords(pair)),
    shape("path", { class: "reach", d }),
    shape("path", { class: "line", d, "stroke-width": width }),
    shape("rect", { class: "pill", x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 7 }),
    ...(isDown()
      ? [text(LOST, -w / 4, 4), text(GAINED, w / 4, 4)]
      : [text(LOST, 0, -3), text(GAINED, 0, 12)]),
  );
}

function nodeShape(node, box, size, point) {
  const [x, y] = point(box.start, box.at - box.across / 2);
  const [w, h] = isDown() ? [size.box.across, size.box.along] : [size.box.along, size.box.across];
  const share = accuracyOf(node);
  const line = (kind, dy, words, from) =>
    shape(
      "text",
      { class: kind, x: x + 11, y: y + dy },
      fitted(words, w - 20, from, kind === "name" ? 600 : 400),
    );
  return shape(
    "a",
    {
      href: nodeAddress(node),
      class: lineage.nodes[node].parents.length ? "node" : "node root",
      "aria-label": `${nameAt(node)}: ${percent(share)} right`,
      "data-node": node,
    },
    shape("title", {}, nameAt(node, 200)),
    shape("rect", { class: "box", x, y, width: w, height: h, rx: 9 }),
    shape("rect", {
      class: "known",
      x: x + 11,
      y: y + h - 6,
      width: Math.max(1, (w - 22) * share),
      height: 2.5,
      rx: 1,
    }),
    line("name", 17, lineage.nodes[node].name, 13),
    line("note", 31, `${percent(share)} right`, 11.5),
  );
}

// --- zoom, and what is chosen ------------------------------------------------------------------------

function zoomTo(zoom) {
  const { picture, width, height } = graph.drawn;
  picture.setAttribute("width", Math.round(width * zoom));
  picture.setAttribute("height", Math.round(height * zoom));
  byId("zoom-out").disabled = zoom <= ZOOM.least;
  byId("zoom-in").disabled = zoom >= ZOOM.most;
  byId("zoom-one").disabled = zoom === 1;
}

function setZoom(zoom) {
  graph.zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, zoom));
  zoomTo(graph.zoom);
  showInBox();
}

function wholeGraph() {
  const { width, height } = graph.drawn;
  const box = byId("graph-box");
  setZoom(Math.min(1, (box.clientWidth - 2) / width, (box.clientHeight - 2) / height));
}

function markChosen() {
  const way = chosen.node === null ? [] : lineage.nodes[chosen.node].way;
  const isOn = ({ before, after }) => {
    const place = way.indexOf(after);
    return place > 0 && way[place - 1] === before;
  };
  for (const link of graph.drawn.picture.querySelectorAll("a")) {
    const pair = pairs[link.dataset.pair];
    const isChosen = pair ? pair === chosen.pair : Number(link.dataset.node) === chosen.node;
    link.classList.toggle("on-way", Boolean(pair) && isOn(pair));
    if (isChosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// Scroll what is chosen into the box, and nothing but the box.
function showInBox() {
  const link = graph.drawn.picture.querySelector("[aria-current]");
  if (!link) return;
  const part = link.querySelector(".pill, .box").getBoundingClientRect();
  const box = byId("graph-box");
  const frame = box.getBoundingClientRect();
  const beyond = (low, high, from, to) =>
    low < from || high > to ? (low + high - from - to) / 2 : 0;
  box.scrollLeft += beyond(part.left, part.right, frame.left, frame.right);
  box.scrollTop += beyond(part.top, part.bottom, frame.top, frame.bottom);
}

function setUpGraph() {
  byId("zoom-out").addEventListener("click", () => setZoom(graph.zoom / ZOOM.step));
  byId("zoom-in").addEventListener("click", () => setZoom(graph.zoom * ZOOM.step));
  byId("zoom-one").addEventListener("click", () => setZoom(1));
  byId("zoom-all").addEventListener("click", wholeGraph);
  fillSelect(
    byId("go"),
    [
      ["", "a checkpoint …"],
      ...lineage.nodes.map(({ name }, node) => [String(node), brief(name, 60)]),
    ],
    "",
  );
  byId("go").addEventListener("change", ({ target }) => {
    if (target.value) location.hash = nodeAddress(Number(target.value));
  });
}
