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

function driftCell(cell, isGroup, worse) {
  if (!cell) return make("td", { class: "soft" }, "–");
  const kind = isGroup ? "group " : "";
  const found = cell.relative ?? cell.change;
  if (!found)
    return make("td", { class: `${kind}soft`, title: brief(cell.withheld ?? "", 200) }, "withheld");
  const [down, up] = cell.two_sided ? ["to-lower", "to-higher"] : ["to-worse", "to-better"];
  const sure = cell.verdict !== "undecided";
  const depth = sure ? depthOf(Math.abs(found.value)) : Math.min(depthOf(Math.abs(found.value)), 2);
  return make(
    "td",
    {
      class: `${kind}${sure ? "" : "unsure "}${found.value < 0 ? down : up} depth-${depth}`,
      title: `${estimateText(found)} ${cell.relative ? "relative" : "of the range"}, p ${pValue(cell.p_adjusted)}${cell.withheld ? `; ${brief(cell.withheld, 160)}` : ""}`,
    },
    `${plusMinus(found.value)}${cell.relative ? "" : " abs."}`,
    make("small", {}, DRIFT_WORDS[cell.verdict] ?? cell.verdict),
    worse && cell.verdict !== "worse" ? make("small", {}, worse) : null,
  );
}

function drawDrift() {
  if (!byId("drift-table")) return;
  const columns = driftColumns();
  const list = inOrder(wantedPairs(), state.rows);
  const with_ = list.filter(({ drift }) => drift && !drift.failure);
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
  byId("drift-note").replaceChildren(
    `${with_.length} of ${list.length} pairs have scores. Percent of the score before; orange is worse, blue better, purple lower and green higher where neither is better. ` +
      "A change that cannot be told from none is pale, with a dashed border. p is corrected over all pairs (Holm)." +
      failed
        .map(
          ({ name, drift }) => ` ${brief(name, 60)}: not available, ${brief(drift.failure, 200)}.`,
        )
        .join(""),
  );
}
