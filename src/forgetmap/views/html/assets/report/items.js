// The items: a list with filters, and the chosen one with both answers side by side.

// --- the list ----------------------------------------------------------------------------------

let source = null;
const shown = {
  filter: { transition: "forgotten", task: "", cause: "", text: "" },
  order: "lost",
  open: "", // the address of the opened item
  start: 0,
  asked: 0,
  trail: [],
};
const usual = { ...shown.filter };
const address = ({ task, item }) => `#item/${encodeURIComponent(task)}/${encodeURIComponent(item)}`;

function setUpItems() {
  const counts = countsOf(usual);
  if (!counts.forgotten) usual.transition = "";
  choices(
    byId("transition"),
    [["", "all"], ...Object.entries(TRANSITIONS)],
    usual.transition,
    (value) => showItems({ transition: value }),
  );
  fillSelect(
    byId("item-task"),
    [["", "all tasks"], ...Object.keys(map.tasks).map((name) => [name, brief(name, 50)])],
    "",
  );
  const causes = [
    ...new Set(facts.groups.filter(([, , cause]) => cause !== null).map(([, , cause]) => cause)),
  ].sort();
  fillSelect(
    byId("item-cause"),
    [["", "any"], ...causes.map((cause) => [cause, brief(cause, 40)]), ["-", NO_CAUSE]],
    "",
  );
  byId("item-task").addEventListener("change", (event) => showItems({ task: event.target.value }));
  byId("item-cause").addEventListener("change", (event) =>
    showItems({ cause: event.target.value }),
  );
  let typing = 0;
  byId("item-text").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => showItems({ text: event.target.value.trim() }), 40);
  });
  byId("export").addEventListener("click", () => source?.exportTable(shown.filter, shown.order));
  byId("item-order").addEventListener("change", (event) => {
    shown.order = event.target.value;
    keepAddress();
    showItems({});
  });
  byId("item-order").parentElement.hidden = facts.remote; // a server has the order of its file
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", openAddress);
  readFilters();
  showNotice();
}

function showNotice() {
  const lines = [];
  if (!facts.remote && facts.listed < facts.items)
    lines.push(
      `This file lists ${whole(facts.listed)} of ${whole(facts.items)} items: those that changed first, drawn at random.`,
    );
  if (!facts.remote && facts.with_text < facts.changed)
    lines.push(
      `It holds the texts of ${whole(facts.with_text)} of ${whole(facts.changed)} changed items, drawn at random.`,
    );
  if (lines.length)
    byId("items-notice").append(
      `${lines.join(" ")} `,
      make("code", {}, "forgetmap serve"),
      " shows all.",
    );
  byId("items-notice").hidden = lines.length === 0;
}

// --- the address: the open item, the filters that are not the usual ones, the order ----------------

const ADDRESS = /^#item(?:s|\/([^/?]*)\/([^/?]*))(?:\?(.*))?$/;

function withFilters(start) {
  const changed = Object.entries(shown.filter).filter(([name, value]) => value !== usual[name]);
  if (shown.order !== "lost") changed.push(["order", shown.order]);
  const query = new URLSearchParams(changed).toString();
  return query ? `${start}?${query}` : start;
}

function readFilters() {
  const query = new URLSearchParams(location.hash.match(ADDRESS)?.[3] ?? "");
  for (const [name, value] of Object.entries(usual)) shown.filter[name] = query.get(name) ?? value;
  const orders = [...byId("item-order").options].map(({ value }) => value);
  shown.order = orders.includes(query.get("order")) ? query.get("order") : "lost";
}

// Put what is shown into the address; other places in the page are left alone until a filter is set.
function keepAddress() {
  const wanted = withFilters(shown.open || "#items");
  if (wanted !== "#items" || ADDRESS.test(location.hash)) history.replaceState(null, "", wanted);
}

// Change the filter, put the controls in line with it, and go to the first page.
function showItems(change, jump = false) {
  Object.assign(shown.filter, change);
  if (Object.keys(change).length) keepAddress();
  const { transition, task, cause, text } = shown.filter;
  byId("transition")
    .querySelectorAll("input")
    .forEach((input) => {
      input.checked = input.value === transition;
    });
  byId("item-task").value = task;
  byId("item-cause").value = cause;
  byId("item-order").value = shown.order;
  if (byId("item-text").value.trim() !== text) byId("item-text").value = text;
  shown.trail = [];
  if (jump) byId("items").scrollIntoView();
  return showPage(0);
}

async function showPage(start) {
  const asked = (shown.asked += 1);
  shown.start = start;
  if (!source) return;
  const rows = [];
  let answer = null;
  try {
    do {
      // a search over very many items answers in steps
      answer = await source.page(shown.filter, answer ? answer.next : start, shown.order);
      if (asked !== shown.asked) return; // the filter has changed meanwhile
      rows.push(...answer.rows);
      byId("item-count").textContent = countText(answer, rows.length);
    } while (answer.total === null && answer.next !== null && rows.length < facts.page);
  } catch (error) {
    byId("item-count").textContent = `The items cannot be had: ${error.message}.`;
    return;
  }
  byId("item-list").replaceChildren(...rows.map(listEntry));
  byId("item-list").scrollTop = 0;
  showCounts(answer.counts);
  showPages(answer);
}

// Beside every outcome, how many items the other filters leave.
function showCounts(counts) {
  for (const [name, word] of Object.entries(TRANSITIONS)) {
    const input = byId("transition").querySelector(`input[value="${name}"]`);
    input.nextSibling.textContent = counts ? `${word} ${whole(counts[name] ?? 0)}` : word;
  }
}

function countText({ total, searched }, found) {
  if (total !== null) return total === 1 ? "1 item" : `${whole(total)} items`;
  return searched < 1
    ? `${whole(found)} found, ${percent(searched)} searched`
    : `${whole(found)} found on the last page`;
}

// An id that begins with its task says the task already.
function nameOf({ task, item, item_ref: reference }, most = 60) {
  const id = brief(reference ?? item, most);
  return id.startsWith(task) ? id : `${brief(task, most)} · ${id}`;
}

const rightness = (share) => (share === 1 ? "right" : share === 0 ? "wrong" : percent(share, 0));

// One line of the list: question, target, both outcomes with their answers, the change, the cause.
function listEntry(row) {
  const outcome = (which, share, answer) =>
    make(
      "span",
      { class: `side ${share > 0.5 ? "is-right" : "is-wrong"}` },
      make("span", { class: "what" }, `${which} `),
      `${share > 0.5 ? "✓" : "✗"} ${rightness(share)}`,
      answer ? make("span", { class: "under" }, brief(answer, 60)) : null,
    );
  const change = row.after - row.before;
  const kind = change < 0 ? " lost" : change > 0 ? " won" : "";
  const sign = change < 0 ? "−" : change > 0 ? "+" : "";
  const entry = make(
    "button",
    {
      type: "button",
      "data-address": address(row),
      onclick: () => {
        location.hash = withFilters(address(row));
      },
    },
    make(
      "span",
      { class: "question" },
      row.snippet ? brief(row.snippet, SNIPPET + 2) : null,
      make("span", { class: "under" }, nameOf(row)),
    ),
    make("span", { class: "target" }, row.target ? brief(row.target, 60) : ""),
    outcome("before", row.before, row.answer_before),
    outcome("after", row.after, row.answer_after),
    make("span", { class: `change${kind}` }, `${sign}${percent(Math.abs(change), 0)}`),
    make("span", { class: "cause" }, row.cause ? brief(row.cause, 24) : ""),
  );
  if (shown.open === address(row)) entry.setAttribute("aria-current", "true");
  return make("li", {}, entry);
}

function transitionBadge({ transition, cause }) {
  const kind = { forgotten: " bad", gained: " good" }[transition] ?? "";
  return make(
    "span",
    { class: `badge${kind}` },
    TRANSITIONS[transition] + (cause ? `: ${brief(cause, 20)}` : ""),
  );
}

function showPages({ total, next }) {
  const back = () =>
    showPage(total === null ? shown.trail.pop() : Math.max(0, shown.start - facts.page));
  const forth = () => {
    shown.trail.push(shown.start);
    return showPage(next);
  };
  const parts = [
    make(
      "button",
      {
        type: "button",
        disabled: total === null ? shown.trail.length === 0 : shown.start === 0,
        onclick: back,
      },
      "Previous",
    ),
    make("button", { type: "button", disabled: next === null, onclick: forth }, "Next"),
  ];
  if (total > facts.page) {
    const last = Math.ceil(total / facts.page);
    const input = make("input", {
      type: "number",
      min: 1,
      max: last,
      value: Math.floor(shown.start / facts.page) + 1,
      "aria-label": "Page",
      onchange: (event) =>
        showPage(
          (Math.min(last, Math.max(1, Math.round(event.target.valueAsNumber) || 1)) - 1) *
            facts.page,
        ),
    });
    parts.push(make("span", {}, "page ", input, ` of ${whole(last)}`));
  }
  byId("item-pages").replaceChildren(...parts);
}

// --- keys: j and k walk the list, Enter opens, / searches, Escape goes back --------------------------

const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

function pressed(event) {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return goBack(event.target);
  if (isTyping) return;
  if (event.key === "/") {
    byId("item-text").focus();
    event.preventDefault();
  } else if (STEPS[event.key]) {
    if (event.key.startsWith("Arrow") && !byId("item-list").contains(event.target)) return;
    moveInList(STEPS[event.key]);
    event.preventDefault();
  }
}

function moveInList(step) {
  const entries = [...byId("item-list").querySelectorAll("button")];
  const isHere = (entry) => entry === document.activeElement;
  const isOpen = (entry) => entry.dataset.address === shown.open;
  const here = Math.max(entries.findIndex(isHere), -1);
  const from = here >= 0 ? here : entries.findIndex(isOpen);
  entries[from < 0 ? 0 : from + step]?.focus();
}

// Out of the search, else out of the opened item.
function goBack(target) {
  if (target === byId("item-text")) {
    target.blur();
    if (shown.filter.text) showItems({ text: "" });
  } else if (shown.open) {
    const entry = byId("item-list").querySelector("[aria-current]");
    shown.open = "";
    keepAddress();
    markOpen();
    noItem();
    entry?.focus();
  }
}

// --- one item ----------------------------------------------------------------------------------

function noItem() {
  byId("item-detail").replaceChildren(
    make(
      "p",
      { class: "faint" },
      "Choose an item to see both answers side by side. Keys: j and k walk, Enter opens, / searches, Escape goes back.",
    ),
  );
}

function markOpen() {
  byId("item-list")
    .querySelectorAll("button")
    .forEach((entry) => {
      if (entry.dataset.address === shown.open) entry.setAttribute("aria-current", "true");
      else entry.removeAttribute("aria-current");
    });
}

// Show the filters and open the item that the address names; true if it names one.
async function openAddress() {
  const [, task, item, query] = location.hash.match(ADDRESS) ?? [];
  if (!source) return false;
  shown.open = item === undefined ? "" : location.hash.split("?")[0];
  if (query !== undefined && location.hash !== withFilters(shown.open || "#items")) {
    readFilters();
    await showItems({});
  }
  if (item === undefined) return false;
  let found = null;
  try {
    found = await source.find(decodeURIComponent(task), decodeURIComponent(item));
  } catch (error) {
    say(`The item cannot be had: ${error.message}.`);
  }
  markOpen();
  byId("item-detail").replaceChildren(
    ...(found
      ? detail(found)
      : [
          make(
            "p",
            { class: "faint" },
            "No such item is listed here. Large reports list a sample; forgetmap serve has all.",
          ),
        ]),
  );
  byId("item-detail").scrollTop = 0;
  if (narrow()) byId("item-detail").scrollIntoView();
  return true;
}

function detail(row) {
  const right = (share) =>
    share === 1 ? "right" : share === 0 ? "wrong" : `right in ${percent(share)} of runs`;
  const side = (which, part) => make("div", {}, make("h4", {}, which), part);
  const kinds = { forgotten: ["right", "wrong"], gained: ["wrong", "right"] }[row.transition];
  const pair = (title, before, after, sides = kinds) => {
    const [left, second] = compared(before, after, sides);
    return [
      make("h3", {}, title),
      make("div", { class: "sides" }, side("before", left), side("after", second)),
    ];
  };
  const parts = [
    make(
      "header",
      {},
      make(
        "span",
        { class: "where" },
        nameOf(row, 80),
      ),
      transitionBadge(row),
      make(
        "button",
        { type: "button", onclick: () => copy(location.href.split("#")[0] + address(row), "link") },
        "Copy link",
      ),
      make("button", { type: "button", onclick: () => copy(asText(row), "item") }, "Copy item"),
    ),
    make(
      "p",
      { class: "faint" },
      `${right(row.before)} before, ${right(row.after)} after; ${row.k ? `${row.k} options` : "open answer"}` +
        statusText(row) +
        `; item ${brief(row.item, 40)}`,
    ),
  ];
  if (TEXTS.every((name) => row[name] === null)) {
    parts.push(make("p", { class: "faint" }, whyNoTexts(row)));
    return parts;
  }
  if (row.target !== null)
    parts.push(make("h3", {}, "Target"), make("pre", { tabindex: "0" }, visible(row.target)));
  parts.push(...pair("Extracted answer", row.answer_before, row.answer_after));
  if (row.response_before !== null || row.response_after !== null)
    parts.push(...pair("Response", row.response_before, row.response_after));
  if (row.prompt_before !== null && row.prompt_before === row.prompt_after) {
    parts.push(
      make("h3", {}, "Prompt, the same on both sides"),
      make("pre", { tabindex: "0" }, visible(row.prompt_before)),
    );
  } else if (row.prompt_before !== null || row.prompt_after !== null)
    parts.push(...pair("Prompt, different", row.prompt_before, row.prompt_after, ["other", "other"]));
  return parts;
}

function whyNoTexts({ before, after }) {
  if (before === after) return "The item did not change; its texts are not kept.";
  if (facts.remote || facts.with_text === facts.changed) return "The log holds no texts of it.";
  return "Its texts are not in this file, which holds a sample; forgetmap serve has all.";
}

function statusText({ status_before: before, status_after: after }) {
  return (before ?? "ok") === "ok" && (after ?? "ok") === "ok"
    ? ""
    : `; status ${brief(before, 20)} → ${brief(after, 20)}`;
}

function asText(row) {
  return CSV_COLUMNS.filter((name) => row[name] !== null && row[name] !== undefined)
    .map((name) => `${name}: ${row[name]}`)
    .join("\n");
}
