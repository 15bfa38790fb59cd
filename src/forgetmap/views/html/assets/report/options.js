// The options of an item: how probable each was before and after, which is right, which was chosen.

const letter = (place) => String.fromCharCode(65 + (place % 26)) + (place < 26 ? "" : Math.floor(place / 26));

// The option that a side chose, so far as the log tells: the right one where every run was right,
// the likeliest where every run was wrong and another one is the likeliest; else none is sure.
function chosenOption(options, right, share) {
  const likeliest = options.indexOf(Math.max(...options));
  if (share === 1) return right;
  return share === 0 && likeliest !== right ? likeliest : -1;
}

// The texts that are known: of the right option, and of those that were chosen.
function optionText(place, row, chosen) {
  if (place === row.right_option) return row.target;
  if (place === chosen.before) return row.answer_before;
  return place === chosen.after ? row.answer_after : null;
}

function probabilityBar(share, kind) {
  const bar = make("i", { class: kind });
  bar.style.width = `${100 * share}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, bar);
}

function optionsTable(row) {
  const { options_before: before, options_after: after, right_option: right } = row;
  const chosen = {
    before: chosenOption(before, right, row.before),
    after: chosenOption(after, right, row.after),
  };
  const line = (place) => {
    const isRight = place === right;
    const change = after[place] - before[place];
    const text = optionText(place, row, chosen);
    const marks = [
      isRight ? make("span", { class: "badge" }, "✓ right") : null,
      ...["before", "after"].map((side) =>
        place === chosen[side] ? make("span", { class: `badge ${isRight ? "good" : "bad"}` }, `chosen ${side}`) : null,
      ),
    ];
    const isNone = points(change) === points(0);
    const kind = !isRight || isNone ? "" : change < 0 ? "lost" : "won";
    const isTaken = !isRight && [chosen.before, chosen.after].includes(place);
    return make(
      "tr",
      { class: isRight ? "right" : isTaken ? "taken" : "" },
      make("th", { scope: "row" }, letter(place), text ? make("span", { class: "text" }, ` ${brief(text, 60)}`) : null, ...marks),
      make("td", {}, percent(before[place]), probabilityBar(before[place], "was")),
      make("td", {}, percent(after[place]), probabilityBar(after[place], "is")),
      make("td", { class: kind }, `${isNone ? "" : change < 0 ? "−" : "+"}${percent(Math.abs(change))}`),
    );
  };
  const head = ["option", "probability before", "after", "change"];
  return make(
    "div",
    { class: "scroll options", tabindex: "0", role: "region", "aria-label": "Options" },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...before.map((_, place) => line(place))),
    ),
  );
}
