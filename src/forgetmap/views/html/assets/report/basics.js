// Small things that everything else uses. Text from logs reaches the page only as text nodes.

const byId = (id) => document.getElementById(id);
const map = JSON.parse(byId("map").textContent);
const facts = JSON.parse(byId("facts").textContent);

const TRANSITIONS = {
  forgotten: "forgotten",
  gained: "gained",
  retained: "still right",
  never: "still wrong",
};
const NO_CAUSE = "not classified";

// An element with properties and children; strings become text, never markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Characters that would hide, turn around or break text are shown by their number instead.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
function visible(text) {
  return String(text).replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A name or value on one line, not endless.
function brief(text, most = 60) {
  const line = visible(String(text).slice(0, 4 * most)).replace(/\s+/g, " ");
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

const whole = (number) => Math.round(number).toLocaleString("en-US");
function points(share, digits = 1) {
  const text = (100 * share).toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}
const percent = (share) => `${points(share)} %`;
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

// Unpack base64 of gzip.
async function unpack(element) {
  const binary = atob(element.textContent);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

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
