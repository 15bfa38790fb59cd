// Change of behaviour by capability, for pairs that have scores.

const DRIFT_WORDS = { undecided: "can't tell", equivalent: "equal" };

function driftColumns() {
  const groups = new Map(); // group -> codes
  for (const { drift } of pairs)
    for (const [code, cell] of Object.entries(drift?.capabilities ?? {})) {
      const codes = groups.get(cell.group) ?? new Map();
      codes.set(code, cell.name);
      groups.set(cell.group, codes);
    }
  return [...groups].flatMap(([group, codes]) => [
    { head: group, name: "all of it", cell: (drift) => drift.groups[group], isGroup: true },
    ...[...codes].map(([code, name]) => ({
      head: code,
      name,
      cell: (drift) => drift.capabilities[code],
    })),
  ]);
}

// A mean over capabilities can hide one that got worse, so the group names it.
function worseIn(drift, group) {
  const codes = Object.entries(drift.capabilities)
    .filter(([, cell]) => cell.group === group && cell.verdict === "worse")
    .map(([code]) => code);
  return codes.length ? `but ${brief(codes.join(", "), 30)} worse` : "";
}

// How a cell looks: its text, its verdict in words, its colour, and what to say of it.
function driftLook(cell) {
  if (!cell) return { text: "–", word: "", hue: "", depth: 0, isSure: true, said: "not available" };
  const found = cell.relative ?? cell.change;
  const why = brief(cell.withheld ?? "", 160);
  if (!found) return { text: "withheld", word: "", hue: "", depth: 0, isSure: true, said: why };
  const [down, up] = cell.two_sided ? ["to-lower", "to-higher"] : ["to-worse", "to-better"];
  const isSure = cell.verdict !== "undecided";
  const depth = depthOf(Math.abs(found.value), study.steps);
  const kind = cell.relative ? "relative" : "of the range";
  return {
    text: `${plusMinus(found.value)}${cell.relative ? "" : " abs."}`,
    word: DRIFT_WORDS[cell.verdict] ?? cell.verdict,
    hue: found.value < 0 ? down : up,
    depth: isSure ? depth : Math.min(depth, 2),
    isSure,
    said: `${estimateText(found)} ${kind}, p ${pValue(cell.p_adjusted)}${why ? `; ${why}` : ""}`,
  };
}

function driftCell(cell, isGroup, worse) {
  const { text, word, hue, depth, isSure, said } = driftLook(cell);
  const names = [
    isGroup ? "group" : "",
    isSure ? "" : "unsure",
    hue,
    hue ? `depth-${depth}` : "soft",
  ];
  return make(
    "td",
    { class: names.filter(Boolean).join(" "), title: said },
    text,
    make("small", {}, word),
    worse && cell?.verdict !== "worse" ? make("small", {}, worse) : null,
  );
}

// The same as one picture.
function driftPicture() {
  const columns = driftColumns();
  const list = driftPairs();
  const size = { label: 220, width: 92, height: 46, head: 44 };
  const text = (words, x, y, more) =>
    shape("text", { x, y, "font-size": 12, fill: colour("ink"), ...more }, words);
  const middle = { "text-anchor": "middle" };
  const heads = columns.flatMap(({ head, name }, place) => {
    const x = size.label + (place + 0.5) * size.width;
    return [
      text(fitted(head, 86, 12), x, 16, { ...middle, "font-weight": 650 }),
      text(fitted(name, 86, 11), x, 32, { ...middle, "font-size": 11, fill: colour("soft") }),
    ];
  });
  const rows = list.flatMap((pair, row) => {
    const y = size.head + row * size.height;
    const cells = columns.flatMap(({ head, cell, isGroup }, place) => {
      const look = driftLook(cell(pair.drift));
      const worse = isGroup ? worseIn(pair.drift, head) : "";
      const x = size.label + place * size.width;
      const fill = look.hue && look.depth ? heatColour(look.hue, look.depth) : colour("wash");
      return [
        shape("rect", {
          ...{ x, y, width: size.width - 2, height: size.height - 2, fill },
          ...(look.isSure ? {} : { stroke: colour("soft"), "stroke-dasharray": "3 3" }),
        }),
        text(look.text, x + size.width / 2, y + 14, middle),
        text(look.word, x + size.width / 2, y + 27, { ...middle, "font-size": 10 }),
        text(fitted(worse, 88, 10), x + size.width / 2, y + 39, { ...middle, "font-size": 10 }),
      ];
    });
    return [text(fitted(pair.name, size.label - 20), 12, y + 20, { "font-size": 13 }), ...cells];
  });
  return {
    inner: textOf(shape("g", { "font-family": font() }, ...heads, ...rows)),
    width: size.label + columns.length * size.width + 12,
    height: size.head + list.length * size.height + 4,
  };
}

const driftPairs = () =>
  inOrder(wantedPairs(), state.rows).filter(({ drift }) => drift && !drift.failure);

function setUpDrift() {
  if (byId("drift-table")) setUpSaving("drift", driftPicture);
}

function drawDrift() {
  if (!byId("drift-table")) return;
  const columns = driftColumns();
  const list = inOrder(wantedPairs(), state.rows);
  const with_ = driftPairs();
  byId("drift-table").replaceChildren(
    make(
      "table",
      { class: "capabilities" },
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, "pair"),
          ...columns.map(({ head, name }) =>
            make(
              "th",
              { scope: "col" },
              brief(head, 20),
              make("span", { class: "under" }, brief(name, 40)),
            ),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        ...with_.map((pair) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, pairLink(pair, 50)),
            ...columns.map(({ head, cell, isGroup }) =>
              driftCell(cell(pair.drift), isGroup, isGroup && worseIn(pair.drift, head)),
            ),
          ),
        ),
      ),
    ),
  );
  const failed = list.filter(({ drift }) => drift?.failure);
  byId("drift-caption").replaceChildren(
    `${with_.length} of ${list.length} pairs have scores. Percent of the score before; orange is worse, blue better, purple lower and green higher where neither is better. ` +
      "A change that cannot be told from none is pale, with a dashed border. p is corrected over all pairs (Holm)." +
      failed
        .map(
          ({ name, drift }) => ` ${brief(name, 60)}: not available, ${brief(drift.failure, 200)}.`,
        )
        .join(""),
  );
}
