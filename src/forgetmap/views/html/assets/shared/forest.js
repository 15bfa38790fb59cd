// Groups with what each lost and gained, as bars in a table: there at once, and read aloud.

function tickRow(ticks) {
  const axisCell = () =>
    make(
      "td",
      { class: "drawn" },
      make(
        "span",
        { class: "ticks" },
        ...ticks.map((tick) => {
          const mark = make("i", {}, tickText(tick));
          mark.style.left = `${(100 * tick) / ticks.at(-1)}%`;
          return mark;
        }),
      ),
    );
  const cells = [make("td"), axisCell(), make("td"), axisCell(), make("td"), make("td")];
  return make("tr", { class: "axis", "aria-hidden": "true" }, ...cells);
}

function forestRow({ name, cell, verdict, isNew }, widest, margin) {
  const drawn = (direction) => {
    const found = cell[direction.key];
    const kind = direction.colour;
    const says = hasInterval(found) ? `95 % interval ${interval(found)}` : null;
    return [
      make("td", { class: "drawn" }, rangeBar(found, kind, widest, margin)),
      make("td", { class: kind, title: says }, `${signed(direction, found)}\u00a0%`),
    ];
  };
  return make(
    "tr",
    { class: isNew ? "new" : "" },
    make("th", { scope: "row" }, name),
    ...DIRECTIONS.flatMap(drawn),
    make("td", { class: "text" }, verdict),
  );
}

// Rows are { name, cell, verdict, isNew }; name and verdict may be elements.
function forestTable(word, rows, ticks, margin) {
  const head = (text, more = {}) => make("th", { scope: "col", ...more }, text);
  const wide = { colspan: 2, class: "text" };
  return make(
    "table",
    { class: "forest" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        head(word),
        head("lost", wide),
        head("gained", wide),
        head("verdict", { class: "text" }),
      ),
    ),
    make("tbody", {}, ...rows.map((row) => forestRow(row, ticks.at(-1), margin)), tickRow(ticks)),
  );
}

// What the bars mean.
const forestNote = (rows, ticks, margin) =>
  `In %. Full: sure. Pale: possible. Thin line: 95 % interval. Dotted line: the margin of ${percent(margin)}.` +
  (rows.some(({ cell }) => cell.gained.high_end > ticks.at(-1))
    ? " ▸ goes on beyond the axis, so that losses stay in sight."
    : "");
