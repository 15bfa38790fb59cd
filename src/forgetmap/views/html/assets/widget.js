// The items that changed, in a notebook: search, filter, both answers side by side.
// Texts come from models, so they are only ever set as text.

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function fits(row, kind, words) {
  if (kind !== "all" && row.transition !== kind) return false;
  const text = Object.values(row).join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function details(row) {
  const cell = element("td", undefined, "fm-details");
  cell.colSpan = 6;
  for (const [title, name] of [
    ["question", "prompt_before"],
    ["before", "response_before"],
    ["after", "response_after"],
  ]) {
    if (!row[name]) continue;
    cell.append(element("h4", title), element("pre", row[name]));
  }
  if (!cell.childElementCount) cell.textContent = "the log holds no texts of this item";
  const line = element("tr");
  line.append(cell);
  return line;
}

function tableRow(row) {
  const lost = row.transition === "forgotten";
  const line = element("tr", undefined, lost ? "fm-lost" : "fm-gained");
  line.tabIndex = 0;
  const cells = [
    lost ? "− lost" : "+ gained",
    row.task,
    row.item_ref ?? "",
    row.answer_before ?? row.before,
    row.answer_after ?? row.after,
    row.cause ?? "",
  ];
  line.append(...cells.map((text) => element("td", String(text ?? ""))));
  const toggle = () => {
    const open = line.nextSibling?.querySelector?.(".fm-details");
    if (open) line.nextSibling.remove();
    else line.after(details(row));
  };
  line.addEventListener("click", toggle);
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") toggle();
  });
  return line;
}

const PAGE = 50;

function render({ model, el }) {
  const search = element("input");
  search.type = "search";
  search.placeholder = "search";
  search.setAttribute("aria-label", "search the items");
  const kind = element("select");
  kind.setAttribute("aria-label", "which items");
  for (const [value, text] of [
    ["all", "lost and gained"],
    ["forgotten", "lost"],
    ["gained", "gained"],
  ]) {
    const option = element("option", text);
    option.value = value;
    kind.append(option);
  }
  const count = element("span", undefined, "fm-count");
  const more = element("button", "show more");
  const table = element("table");
  const head = element("tr");
  head.append(
    ...["", "task", "item", "before", "after", "cause"].map((text) => element("th", text)),
  );
  const body = element("tbody");
  const top = element("thead");
  top.append(head);
  table.append(top, body);
  let shown = PAGE;

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = model.get("rows").filter((row) => fits(row, kind.value, words));
    body.replaceChildren(...rows.slice(0, shown).map(tableRow));
    const left = model.get("left_out");
    const hidden = left ? `; ${left} more are in .flips` : "";
    count.textContent = `${rows.length} items${hidden}`;
    more.hidden = rows.length <= shown;
  }
  function again() {
    shown = PAGE;
    draw();
  }
  search.addEventListener("input", again);
  kind.addEventListener("change", again);
  more.addEventListener("click", () => {
    shown += PAGE;
    draw();
  });
  const bar = element("div", undefined, "fm-bar");
  bar.append(search, kind, count);
  el.classList.add("forgetmap-items");
  el.append(bar, table, more);
  draw();
}

export default { render };
