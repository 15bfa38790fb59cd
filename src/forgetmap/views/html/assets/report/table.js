// The items as a table of which only the rows in sight are in the page, however many there are.

const ITEM_COLUMNS = [
  { name: TASK_ORDER, head: "question" },
  { name: "target", head: "target", fixed: true },
  { name: "before", head: "before" },
  { name: "after", head: "after" },
  { name: "change", head: "change" },
  { name: "cause", head: facts.why ?? "cause" },
];
const SPARE_ROWS = 8; // beyond the rows in sight, above and below

// What the change is a change of.
const CHANGE_OF =
  facts.with_probability === 0
    ? "of right runs"
    : facts.with_probability === facts.items
      ? "of probability"
      : "of probability, else of right runs";

// An id that begins with its task says the task already.
function nameOf({ task, item, item_ref: reference }, most = 60) {
  const id = brief(reference ?? item, most);
  return id.startsWith(task) ? id : `${brief(task, most)} · ${id}`;
}

// What a cell is, for narrow pages, where it has no head above it.
const labelled = (name) => make("span", { class: "label" }, `${name} `);

// "✓ Paris", and below it how probable the right answer was.
function outcomeCell(which, row) {
  const share = row[which];
  const answer = row[`answer_${which}`];
  const word = share === 1 ? "right" : share === 0 ? "wrong" : `${percent(share, 0)} of runs`;
  const isRight = share > 0.5;
  const chance = which === "before" ? chanceBefore(row) : chanceAfter(row);
  const below = hasProbability(row) ? percent(chance) : answer && share % 1 ? word : null;
  return make(
    "td",
    { role: "cell", class: `side ${isRight ? "is-right" : "is-wrong"}` },
    labelled(which),
    make("span", { class: "said" }, `${isRight ? "✓" : "✗"} ${answer ? brief(answer, 60) : word}`),
    below === null ? null : make("span", { class: "under" }, below),
  );
}

function changeCell(row) {
  const change = chanceAfter(row) - chanceBefore(row);
  const text = percent(Math.abs(change), hasProbability(row) ? 1 : 0);
  const isNone = Number.parseFloat(text) === 0;
  const kind = isNone ? "" : change < 0 ? " lost" : " won";
  return make(
    "td",
    { role: "cell", class: `change${kind}` },
    labelled("change"),
    `${isNone ? "" : change < 0 ? "−" : "+"}${text}`,
  );
}

// A table in its own scrolled box. `open(row)` is called with the row that was chosen.
class ItemTable {
  constructor(box, { open, sort }) {
    Object.assign(this, { box, open, list: null, drawn: new Map(), at: -1, opened: "" });
    this.head = make("tr", { role: "row", "aria-rowindex": 1 });
    this.body = make("tbody", { role: "rowgroup", id: "item-list" });
    this.table = make(
      "table",
      { role: "table", "aria-label": "Items" },
      make("thead", { role: "rowgroup" }, this.head),
      this.body,
    );
    for (const { name, head, fixed } of ITEM_COLUMNS) {
      const can = !fixed && !facts.remote; // a server has the order of its file
      const what = can ? make("button", { type: "button", onclick: () => sort(name) }, head) : head;
      const more = name === "change" ? make("span", { class: "under" }, CHANGE_OF) : null;
      this.head.append(make("th", { role: "columnheader", scope: "col", class: name, "data-column": name }, what, more));
    }
    box.append(this.table);
    let waiting = false;
    const later = () => {
      if (!waiting) requestAnimationFrame(() => { waiting = false; this.draw(); });
      waiting = true;
    };
    box.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(() => this.measure()).observe(box);
    this.height = 0;
  }

  // Show another list from its top.
  show(list, order) {
    this.list = list;
    this.at = -1;
    this.clear();
    this.box.scrollTop = 0;
    const column = order.replace("-", "");
    for (const head of this.head.children) {
      if (head.dataset.column === column && !facts.remote)
        head.setAttribute("aria-sort", order.startsWith("-") ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.draw();
  }

  clear() {
    this.body.replaceChildren();
    this.drawn.clear();
  }

  // How high a row is depends on the width of the page.
  measure() {
    const height = Number.parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) *
      Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    if (height === this.height && this.box.clientHeight === this.seen) return;
    Object.assign(this, { height, seen: this.box.clientHeight });
    this.clear();
    this.draw();
  }

  draw() {
    if (!this.list || !this.height) return;
    const { size } = this.list;
    this.table.setAttribute("aria-rowcount", this.list.total === null ? -1 : size + 1);
    this.body.style.height = `${Math.max(size, 1) * this.height}px`;
    const top = Math.floor(this.box.scrollTop / this.height);
    const first = Math.max(0, top - SPARE_ROWS);
    const last = top + Math.ceil(this.box.clientHeight / this.height) + SPARE_ROWS;
    for (const [index, row] of this.drawn) if (index < first || index >= last) this.drop(index, row);
    this.fill(first, Math.min(last, size));
    this.bring(first, last);
  }

  drop(index, row) {
    if (row.contains(document.activeElement)) this.box.focus({ preventScroll: true });
    row.remove();
    this.drawn.delete(index);
  }

  fill(first, last) {
    for (let index = first; index < last; index += 1) {
      const known = this.drawn.get(index);
      if (known?.dataset.whole) continue;
      const row = this.rowAt(index);
      if (known) {
        const hadFocus = known.contains(document.activeElement);
        known.replaceWith(row);
        if (hadFocus) row.querySelector("button")?.focus({ preventScroll: true });
      } else {
        const after = this.drawn.get(index - 1);
        if (after) after.after(row); // in the page as in the list, for those who tab or listen
        else this.body.prepend(row);
      }
      this.drawn.set(index, row);
    }
  }

  // Bring what is in sight; a search may then have found more.
  async bring(first, last) {
    const { list } = this;
    const lacks = list.total === null && last > list.size;
    if (!lacks && [...this.drawn.values()].every((row) => row.dataset.whole)) return;
    await list.load(first, last);
    if (list !== this.list) return;
    this.grown?.(list);
    this.fill(first, Math.min(last, list.size));
    if (lacks) this.body.style.height = `${Math.max(list.size, 1) * this.height}px`;
  }

  rowAt(index) {
    const row = this.list.at(index);
    const line = make("tr", { role: "row", "aria-rowindex": index + 2 });
    line.style.top = `${index * this.height}px`;
    if (row === null) {
      line.append(make("td", { role: "cell", class: "faint" }, "…"));
      return line;
    }
    if (row.whole) line.dataset.whole = "true";
    const button = make(
      "button",
      {
        type: "button",
        "data-address": address(row),
        onclick: () => this.open(row),
        onfocus: () => { this.at = index; },
      },
      row.snippet ? brief(withoutCue(row.snippet), SNIPPET + 2) : nameOf(row, 80),
    );
    if (this.opened === address(row)) button.setAttribute("aria-current", "true");
    line.append(
      make(
        "td",
        { role: "cell", class: "question" },
        button,
        row.snippet ? make("span", { class: "under" }, nameOf(row)) : null,
      ),
      make("td", { role: "cell", class: "target" }, row.target ? labelled("target") : null, brief(row.target ?? "", 60)),
      outcomeCell("before", row),
      outcomeCell("after", row),
      changeCell(row),
      make("td", { role: "cell", class: "cause" }, row.cause ? brief(row.cause, 24) : ""),
    );
    return line;
  }

  mark(opened) {
    this.opened = opened;
    for (const button of this.body.querySelectorAll("button[data-address]")) {
      if (button.dataset.address === opened) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  // Walk some rows up or down.
  step(by) {
    if (!this.list?.size) return;
    this.box.scrollIntoView({ block: "nearest" });
    this.reach(this.at < 0 && by > 0 ? 0 : this.at + by);
    this.drawn.get(this.at)?.querySelector("button")?.focus({ preventScroll: true });
  }

  // Scroll a row into sight, no further than needed.
  reach(index) {
    this.at = Math.min(Math.max(index, 0), this.list.size - 1);
    const top = this.at * this.height;
    const head = this.head.offsetHeight;
    const room = this.box.clientHeight - head;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.height > this.box.scrollTop + room) this.box.scrollTop = top + this.height - room;
    this.draw();
  }
}
