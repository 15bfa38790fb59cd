// What is chosen in the graph: one pair of checkpoints, or one checkpoint and the way to it.

function showChosen() {
  const panel = byId("chosen");
  panel.replaceChildren(...(chosen.pair ? pairPanel(chosen.pair) : nodePanel(chosen.node)));
  panel.scrollTop = 0;
  byId("go").value = chosen.node === null ? "" : String(chosen.node);
}

const both = (cell) =>
  make(
    "div",
    { class: "both" },
    ...DIRECTIONS.map((direction) =>
      make(
        "div",
        {},
        make("span", { class: "what" }, direction.key),
        make("b", { class: "much" }, amount(direction, cell[direction.key])),
        make("span", { class: "more" }, ...within(cell[direction.key]).filter(Boolean)),
      ),
    ),
  );

const fact = (name, value) => [make("dt", {}, name), make("dd", {}, value)];

function pairPanel(pair) {
  const kinds = ["forgotten", "gained"];
  const rest = { forgotten: "lost", gained: "gained" };
  return [
    make("p", { class: "what" }, pair.edge ? "One step" : "Against the root"),
    make("h3", {}, nodeLink(pair.before), " → ", nodeLink(pair.after)),
    make(
      "p",
      {},
      verdictBadge(pair.old),
      pair.would_decide ? make("span", { class: "under" }, pair.would_decide) : null,
    ),
    both(pair.old),
    make(
      "dl",
      { class: "facts" },
      ...fact(
        oldWord(),
        `${whole(pair.old.n)} items, ${points(pair.old.accuracyBefore)} → ${percent(pair.old.accuracyAfter)} right`,
      ),
      ...(pair.new
        ? fact(
            "new skills",
            `${whole(pair.new.n)} items, ${points(pair.new.accuracyBefore)} → ${percent(pair.new.accuracyAfter)} right`,
          )
        : []),
    ),
    make(
      "p",
      { class: "links" },
      ...kinds.map((kind, side) =>
        pair.flipped[side]
          ? make(
              "button",
              { type: "button", onclick: () => showPairItems(pair, { transition: kind }) },
              `${whole(pair.flipped[side])} items ${rest[kind]}`,
            )
          : null,
      ),
      pair.edge && !pair.root
        ? make("a", { href: pairAddress(againstRoot(pair.after)) }, "against the root")
        : null,
    ),
    ...groupForest(pair),
  ];
}

// Every group of a pair, the most lost first; a name leads to its lost items.
function groupForest(pair) {
  const names = groupNames();
  const rows = names
    .map((name, place) => ({ key: name, cell: pair[view.by][place], isNew: isTaught(name) }))
    .filter(({ cell }) => cell)
    .sort((one, two) => one.isNew - two.isNew || valueOf(two.cell.lost) - valueOf(one.cell.lost))
    .map((row) => ({
      ...row,
      name: make(
        "button",
        {
          type: "button",
          class: "link",
          onclick: () => showPairItems(pair, { task: row.key, transition: "" }),
        },
        titleOf(row.key),
      ),
      verdict: verdictBadge(row.cell),
    }));
  if (rows.length < 2) return [];
  const most = rows.flatMap(({ cell, isNew }) => [cell.lost.high, isNew ? 0 : cell.gained.high]);
  const ticks = roundTicks(Math.max(1.25 * lineage.margin, 0.01, ...most), 1);
  return [
    scrolled(`Lost and gained by ${view.by}`, forestTable(view.by, rows, ticks, lineage.margin)),
    make("p", { class: "note" }, unbroken(forestNote(rows, ticks, lineage.margin))),
  ];
}

function nodePanel(node) {
  const { name, model, harness, items, missing, numbers, parents, way } = lineage.nodes[node];
  const pair = againstRoot(node);
  const children = edges().filter(({ before }) => before === node);
  const steps = way.slice(1).map((after, place) => pairOf(way[place], after));
  const list = (nodes) => nodes.flatMap((one, place) => [place ? ", " : "", nodeLink(one, 30)]);
  return [
    make("p", { class: "what" }, parents.length ? "Checkpoint" : "The root"),
    make("h3", {}, brief(name, 200)),
    make(
      "dl",
      { class: "facts" },
      ...fact("accuracy", `${percent(accuracyOf(node))} of ${oldWord()}`),
      ...fact("items", `${whole(items)} scored${missing ? `, ${whole(missing)} missing` : ""}`),
      ...fact("model", `${brief(model, 80)} (${brief(harness, 30)})`),
      ...Object.entries(numbers).flatMap(([word, value]) =>
        fact(word.replaceAll("_", " "), value.toLocaleString("en-US")),
      ),
      ...(parents.length ? fact("made from", make("span", {}, ...list(parents))) : []),
      ...(children.length
        ? fact(
            "went into",
            make(
              "span",
              {},
              ...list(children.slice(0, 12).map(({ after }) => after)),
              children.length > 12 ? ` and ${children.length - 12} more` : "",
            ),
          )
        : []),
    ),
    ...(pair
      ? [
          make("h4", {}, `On the way from ${nameAt(way[0], 40)}`),
          both(pair.old),
          scrolled(
            "Steps of the way",
            table(
              ["step", "lost %", "gained %"],
              [
                ...steps.map((step) => [
                  pairLink(step, 24),
                  ...DIRECTIONS.map((d) => amount(d, step.old[d.key])),
                ]),
                [
                  make("a", { href: pairAddress(pair) }, "from the root to here"),
                  ...DIRECTIONS.map((d) => amount(d, pair.old[d.key])),
                ],
              ],
            ),
          ),
          make(
            "p",
            { class: "note" },
            "Steps do not add up: what one loses another may bring back.",
          ),
          make(
            "p",
            { class: "links" },
            make("button", { type: "button", onclick: () => showPath(node) }, "Its life lines"),
            make(
              "button",
              { type: "button", onclick: () => showPairItems(pair, { transition: "forgotten" }) },
              `${whole(pair.flipped[0])} items lost`,
            ),
          ),
        ]
      : []),
  ];
}
