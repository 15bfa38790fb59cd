// What is chosen: all of it is in the address, so that a link shows the same, and Back goes back.

const SECTIONS = [
  "summary",
  "map",
  "compare",
  "trade",
  "scale",
  "board",
  "findings",
  "items",
  "drift",
  "notes",
];
const DEFAULTS = {
  find: "", // part of a name
  by: "category",
  show: "both",
  size: "",
  rows: "cluster",
  columns: "cluster",
  group: "",
  as: "radar",
  against: "",
  tint: "",
  along: "",
  sort: "rank",
  down: "",
  task: "",
  text: "",
  page: "1",
  item: "",
};
const ALLOWED = {
  by: ["category", "task"],
  show: ["both", "lost", "gained"],
  size: ["", "numbers", "fit"],
  columns: ["cluster", "lost", "gained", "name"],
  as: ["radar", "bars"],
};
let state = { ...DEFAULTS, pair: [], filters: new Map() };
let section = ""; // the place in the page that the address names

function readAddress() {
  const [place, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const given = new URLSearchParams(query);
  const next = { ...DEFAULTS, pair: [], filters: new Map() };
  for (const [name, value] of given) {
    if (Object.hasOwn(DEFAULTS, name)) next[name] = value;
    else if (name === "pair") next.pair.push(value);
    else if (name.startsWith("f."))
      next.filters.set(name.slice(2), [...(next.filters.get(name.slice(2)) ?? []), value]);
  }
  for (const [name, values] of Object.entries(ALLOWED))
    if (!values.includes(next[name])) next[name] = DEFAULTS[name];
  if (!study.columns[next.by].length) next.by = next.by === "task" ? "category" : "task";
  return { next, place: SECTIONS.includes(place) ? place : "" };
}

function addressOf(chosen, place) {
  const query = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS))
    if (chosen[name] !== usual) query.set(name, chosen[name]);
  for (const name of chosen.pair) query.append("pair", name);
  for (const [name, values] of chosen.filters)
    for (const value of values) query.append(`f.${name}`, value);
  const text = query.toString();
  return `#${place}${text ? `?${text}` : ""}`;
}

// Choose something: the address follows, then what is on screen, then the rest.
function choose(change, { quietly = false } = {}) {
  state = { ...state, ...change };
  const address = addressOf(state, section);
  if (address !== location.hash)
    history[quietly ? "replaceState" : "pushState"](
      null,
      "",
      address === "#" ? "#summary" : address,
    );
  drawPage();
}

function followAddress() {
  const { next, place } = readAddress();
  const moved = place && place !== section;
  const same = addressOf(next, "") === addressOf(state, "");
  [state, section] = [next, place];
  if (!same) drawPage();
  if (moved) goTo(place);
}

function goTo(place) {
  byId(place)?.scrollIntoView();
}

function setUpAddress() {
  window.addEventListener("popstate", followAddress);
  document.querySelector(".top nav").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    section = link.hash.slice(1);
    history.pushState(null, "", addressOf(state, section));
    goTo(section);
  });
  ({ next: state, place: section } = readAddress());
}

// --- which pairs -------------------------------------------------------------------------------

const filterValue = (value) => String(value);

function isWanted(pair) {
  const text = state.find.trim().toLowerCase();
  if (text && !pair.name.toLowerCase().includes(text)) return false;
  return [...state.filters].every(([name, values]) =>
    values.includes(filterValue(valueIn(pair, name) ?? "")),
  );
}
const wantedPairs = () => pairs.filter(isWanted);

const ORDERS = {
  lost: (pair) => -valueOf(pair.old.lost),
  gained: (pair) => -valueOf(pair.old.gained),
  name: (pair) => pair.name.toLowerCase(),
};
const compare = (one, two) => {
  if (one === two) return 0;
  if (one === undefined) return 1;
  if (two === undefined) return -1;
  if (typeof one !== typeof two) return typeof one === "number" ? -1 : 1;
  return one < two ? -1 : 1;
};

function inOrder(list, order) {
  const place = new Map(study.orders[state.by].pairs.map((pair, index) => [pair, index]));
  const key =
    ORDERS[order] ??
    (order.startsWith("a.")
      ? (pair) => valueIn(pair, order.slice(2))
      : (pair) => place.get(pair.place));
  return [...list].sort((one, two) => compare(key(one), key(two)) || compare(one.name, two.name));
}

// The pairs that are set side by side: those chosen, else the least and the most lost on screen.
function comparedPairs() {
  const chosen = state.pair
    .map((name) => pairs.find((pair) => pair.name === name))
    .filter(Boolean)
    .slice(0, MOST_CHOSEN);
  if (chosen.length) return chosen;
  const ordered = inOrder(wantedPairs(), "lost");
  return ordered.length > 1 ? [ordered.at(-1), ordered[0]] : ordered;
}

function togglePair(name) {
  const chosen = state.pair.includes(name)
    ? state.pair.filter((one) => one !== name)
    : [...state.pair, name];
  if (chosen.length > MOST_CHOSEN) {
    say(`${MOST_CHOSEN} pairs at most`);
    return false;
  }
  choose({ pair: chosen });
  return true;
}

// --- the bar of filters ------------------------------------------------------------------------

function setUpFilters() {
  const find = make("input", {
    id: "find",
    type: "search",
    autocomplete: "off",
    placeholder: "part of a name",
    oninput: (event) => choose({ find: event.target.value }, { quietly: true }),
  });
  const picks = study.attributes
    .filter(({ values }) => values.length > 1)
    .map(({ name, values }) => pick(name, values));
  byId("filters").append(
    make("label", {}, "Find ", find),
    ...picks,
    make("button", { id: "reset", type: "button", onclick: resetFilters }, "Show all"),
    make("span", { class: "count", id: "filter-count", role: "status" }),
    make(
      "p",
      { class: "note", id: "filter-claims" },
      `The filters choose which pairs you see. Statements, slopes, ranks, factors and stages stay those of all ${whole(pairs.length)} pairs.`,
    ),
  );
  document.addEventListener("click", (event) => closePicks(event.target));
  byId("filters").addEventListener("keydown", (event) => {
    const open = event.target.closest("details[open]");
    if (event.key !== "Escape" || !open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
}

const resetFilters = () => choose({ find: "", filters: new Map() });

function closePicks(except = null) {
  for (const one of byId("filters").querySelectorAll("details[open]"))
    if (!one.contains(except)) one.open = false;
}

// A list of values to tick, behind one button.
function pick(name, values) {
  const boxes = values.map((value) =>
    make(
      "label",
      {},
      make("input", {
        type: "checkbox",
        value: filterValue(value),
        onchange: (event) => tick(name, event.target),
      }),
      ` ${showValue(value)}`,
    ),
  );
  return make(
    "details",
    { class: "pick", "data-attribute": name },
    make("summary", {}, brief(name, 30)),
    make("div", { class: "boxes", role: "group", "aria-label": brief(name, 30) }, ...boxes),
  );
}

function tick(name, box) {
  const before = state.filters.get(name) ?? [];
  const values = box.checked
    ? [...before, box.value]
    : before.filter((value) => value !== box.value);
  const filters = new Map(state.filters);
  if (values.length) filters.set(name, values);
  else filters.delete(name);
  choose({ filters });
}

function showFilters() {
  if (byId("find").value !== state.find) byId("find").value = state.find;
  for (const one of byId("filters").querySelectorAll("details.pick")) {
    const name = one.dataset.attribute;
    const values = state.filters.get(name) ?? [];
    for (const box of one.querySelectorAll("input")) box.checked = values.includes(box.value);
    const shown =
      values.length === 1 ? showValue(known(name, values[0])) : `${values.length} values`;
    one.querySelector("summary").textContent =
      `${brief(name, 30)}: ${values.length ? shown : "all"}`;
    one.classList.toggle("active", values.length > 0);
  }
  const shown = wantedPairs().length;
  byId("filter-count").textContent = `${whole(shown)} of ${whole(pairs.length)} pairs`;
  byId("reset").disabled = !state.find && !state.filters.size;
}

const known = (name, text) =>
  attribute(name)?.values.find((value) => filterValue(value) === text) ?? text;
