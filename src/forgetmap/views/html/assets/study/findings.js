// What the pairs tell together: claims, published findings, factors, means by attribute, replicates.

const saidYes = (claimed) =>
  badge(claimed ? "yes" : "can't tell", claimed ? "held" : "undecided");
const nothing = (text) => make("p", { class: "note" }, text);

function claimsPart({ claims }) {
  if (!claims.length)
    return [
      nothing(
        study.source
          ? "Not available: the study made no statements about published numbers."
          : "Not available: it takes attributes that differ, each value in two or more pairs, or a number such as size with three values or more.",
      ),
    ];
  const told = claims.filter(({ claimed }) => claimed).length;
  return [
    nothing(
      `${told} of ${claims.length} statements can be claimed; the others may be chance. Intervals are 95 %, in points; p is corrected over all statements (Holm).`,
    ),
    textTable(
      "Statements",
      ["claimed", "statement", "points", "p", "taken as independent"],
      claims.map((claim) => [
        saidYes(claim.claimed),
        brief(claim.text, 200),
        estimateText(claim.estimate, 2),
        pValue(claim.p_adjusted),
        brief(claim.unit, 80),
      ]),
      [0, 1, 4],
    ),
  ];
}

function publishedPart({ stages }) {
  if (!stages) return [nothing("Not available: no pair names its stage of post-training.")];
  const kinds = { holds: "held", "does not hold": "lost" };
  const unknown = Object.entries(stages.unknown);
  return [
    textTable(
      "Published findings",
      ["here", "finding", "points", "p", "what was compared"],
      stages.findings.map((finding) => [
        badge(finding.verdict, kinds[finding.verdict]),
        make(
          "span",
          {},
          brief(finding.text, 200),
          make("span", { class: "under" }, brief(finding.source, 80)),
        ),
        estimateText(finding.estimate, 2),
        orNot(finding.p_adjusted, pValue),
        make(
          "span",
          {},
          brief(finding.why, 300),
          finding.unit
            ? make("span", { class: "under" }, `independent: ${brief(finding.unit, 80)}`)
            : null,
        ),
      ]),
      [0, 1, 4],
    ),
    make("h3", {}, "By stage of post-training"),
    textTable(
      "Stages",
      ["stage", "pairs", "kinds of training", "lost %", "gained %"],
      stages.stages.map((stage) => [
        brief(stage.name, 60),
        whole(stage.pairs.length),
        whole(stage.units),
        stage.lost_interval
          ? shareText(stage.lost_interval)
          : `${points(stage.lost)} (no interval)`,
        stage.gained_interval
          ? shareText(stage.gained_interval)
          : `${points(stage.gained)} (no interval)`,
      ]),
    ),
    ...(unknown.length
      ? [
          nothing(
            `Stages that are not known: ${unknown.map(([name, count]) => `${brief(name, 40)} (${count})`).join(", ")}.`,
          ),
        ]
      : []),
  ];
}

function factorsPart({ factors }) {
  if (!factors) return [nothing("Not available: no model was fitted.")];
  if (!factors.models.length)
    return [nothing(`Not available: ${brief(factors.note ?? "no model was fitted", 300)}`)];
  const widest = Math.max(
    0.001,
    ...factors.models.flatMap(({ effects }) =>
      effects.flatMap(({ estimate }) => [Math.abs(estimate.low), Math.abs(estimate.high)]),
    ),
  );
  const left = Object.entries(factors.left_out);
  return [
    ...factors.models.flatMap((model) => [
      make(
        "h4",
        { class: model.of === "lost" ? "lost" : "won" },
        `What explains what was ${model.of}`,
      ),
      make("p", {}, brief(model.summary, 400)),
      textTable(
        `Effects on what was ${model.of}`,
        ["claimed", "attribute", "value", "points", "", "p"],
        model.effects.map((effect) => [
          saidYes(effect.claimed),
          brief(effect.attribute, 40),
          effect.value === null
            ? "each doubling"
            : `${showValue(effect.value)} instead of ${effect.reference === null ? "the rest" : showValue(effect.reference)}`,
          estimateText(effect.estimate, 2),
          effectBar(effect.estimate, widest, model.of),
          pValue(effect.p_adjusted),
        ]),
        [0, 1, 2],
      ),
      nothing(
        `Explained by the attributes: ${orNot(model.marginal_r2, percent)} of the variance; with pairs, tasks and families: ${orNot(model.conditional_r2, percent)}. ` +
          `${whole(model.cells)} cells of ${whole(model.pairs)} pairs; ${brief(model.method, 100)}; independent: ${brief(model.unit, 80)}. ` +
          model.notes.map((text) => brief(text, 200)).join(" "),
      ),
    ]),
    ...(left.length
      ? [
          nothing(
            `Left out: ${left.map(([name, why]) => `${brief(name, 40)} (${brief(why, 160)})`).join("; ")}.`,
          ),
        ]
      : []),
  ];
}

// An effect as a small picture: to the right is more.
function effectBar({ value, low, high }, widest, of) {
  const part = (name, from, to) => {
    const element = make("i", { class: name });
    element.style.left = `${50 + (50 * from) / widest}%`;
    element.style.width = `${(50 * (to - from)) / widest}%`;
    return element;
  };
  return make(
    "span",
    { class: `span effect of-${of === "lost" ? "lost" : "won"}`, "aria-hidden": "true" },
    part("most", Math.min(0, value), Math.max(0, value)),
    part("interval", low, high),
  );
}

function levelsPart({ levels }) {
  if (!levels.length)
    return [nothing("Not available: no value of an attribute is in two or more pairs.")];
  return [
    textTable(
      "Means by attribute",
      ["attribute", "value", "pairs", "kinds of training", "lost %", "gained %"],
      levels.map((level) => [
        brief(level.attribute, 40),
        showValue(level.value),
        whole(level.pairs),
        whole(level.units),
        level.interval ? shareText(level.interval) : `${points(level.lost)} (no interval)`,
        points(level.gained),
      ]),
      [0, 1],
    ),
    nothing(
      "Means over kinds of training; seeds of one kind are one. Pairs that differ in one attribute may differ in others too.",
    ),
  ];
}

function replicatesPart({ replicates }) {
  if (!replicates.length)
    return [nothing("Not available: no two pairs differ in their seed alone.")];
  return [
    textTable(
      "Replicates",
      ["attributes", "seeds", "lost %", "gained %", "sd of lost"],
      replicates.map((group) => [
        Object.entries(group.attributes)
          .map(([name, value]) => `${brief(name, 20)} ${showValue(value)}`)
          .join(", ") || "all",
        whole(group.pairs.length),
        shareText(group.lost),
        shareText(group.gained),
        points(group.deviation),
      ]),
    ),
    nothing("The same but for the seed; intervals are over trainings and items."),
  ];
}

function setUpFindings() {
  const { answers } = study;
  const parts = [
    ["Statements", claimsPart],
    ["Published findings, tested here", publishedPart],
    ["Factors, all else equal", factorsPart],
    ["Means by attribute", levelsPart],
    ["Replicates", replicatesPart],
  ];
  byId("findings-content").append(
    ...parts.flatMap(([title, part]) => [make("h3", {}, title), ...part(answers)]),
  );
}
