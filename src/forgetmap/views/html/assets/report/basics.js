// What the report shows, and small things that all of its parts use.

const map = JSON.parse(byId("map").textContent);
const facts = JSON.parse(byId("facts").textContent);

const TRANSITIONS = {
  forgotten: "forgotten",
  gained: "gained",
  retained: "still right",
  never: "still wrong",
};
const NO_CAUSE = "not classified";

const interval = (estimate) => `${points(estimate.low)} to ${points(estimate.high)}`;
const pValue = (p) => (p < 0.001 ? "<0.001" : p.toFixed(3));
const optionCounts = (cell) => (cell.k ? Object.keys(cell.k).join(", ") : "open");

function estimate(cell, direction, name) {
  return cell[direction][name] ?? null;
}
const forgot = (cell) => estimate(cell, "forgetting", cell.headline) ?? cell.forgetting.raw;
const gained = (cell) =>
  estimate(cell, "backward_transfer", cell.headline) ?? cell.backward_transfer.raw;

// Leaving one task out would change the value by more than half.
const hinges = (cell) =>
  cell.influence !== null && Math.abs(cell.influence.change) > Math.abs(forgot(cell).value) / 2;

const GOOD = new Set(["kept", "better", "equivalent"]);
const BAD = new Set(["forgot", "worse"]);
function badge(word) {
  return make(
    "span",
    { class: `badge${GOOD.has(word) ? " good" : BAD.has(word) ? " bad" : ""}` },
    word,
  );
}

// What the charts and lists are about: categories where there are some, else tasks.
const hasCategories = Object.keys(map.categories).length > 0;
const groupCells = hasCategories ? map.categories : map.tasks;
const groupWord = hasCategories ? "category" : "task";

// Radio buttons that look like a row of chips; entries are [value, label, disabled].
function choices(fieldset, entries, chosen, changed) {
  for (const [value, label, disabled] of entries) {
    const input = make("input", {
      type: "radio",
      name: fieldset.id,
      value,
      checked: value === chosen,
      disabled,
      onchange: () => changed(value),
    });
    fieldset.append(make("label", { class: "choice" }, input, make("span", {}, label)));
  }
}

function fillSelect(select, entries, chosen) {
  select.replaceChildren(
    ...entries.map(([value, label]) =>
      make("option", { value, selected: value === chosen }, label),
    ),
  );
}

let saidTimer = 0;
function say(text) {
  byId("said").textContent = text;
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => byId("said").replaceChildren(), 2500);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    const area = make("textarea", { "aria-hidden": "true" });
    area.value = text; // where the clipboard is closed to pages, the old way
    document.body.append(area);
    area.select();
    say(
      document.execCommand("copy") ? `${what} copied` : "the browser does not let this page copy",
    );
    area.remove();
  }
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
