// The items: a list with filters, and the chosen one with both answers side by side.

// --- the list ----------------------------------------------------------------------------------

let source = null;
const shown = {
  filter: { transition: "forgotten", task: "", cause: "", text: "" },
  start: 0,
  asked: 0,
  trail: [],
};
const address = ({ task, item }) => `#item/${encodeURIComponent(task)}/${encodeURIComponent(item)}`;

function setUpItems() {
  const counts = new Map();
  for (const [, transition, , count] of facts.groups)
    counts.set(transition, (counts.get(transition) ?? 0) + count);
  if (!counts.get("forgotten")) shown.filter.transition = "";
  choices(
    byId("transition"),
    [
      ["", "all", false],
      ...Object.entries(TRANSITIONS).map(([value, label]) => [
        value,
        `${label} ${whole(counts.get(value) ?? 0)}`,
        !counts.get(value),
      ]),
    ],
    shown.filter.transition,
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
  byId("export").addEventListener("click", () => source?.exportTable(shown.filter));
  byId("item-list").addEventListener("keydown", moveInList);
  window.addEventListener("hashchange", openAddress);
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

// Change the filter, put the controls in line with it, and go to the first page.
function showItems(change, jump = false) {
  Object.assign(shown.filter, change);
  const { transition, task, cause, text } = shown.filter;
  byId("transition")
    .querySelectorAll("input")
    .forEach((input) => {
      input.checked = input.value === transition;
    });
  byId("item-task").value = task;
  byId("item-cause").value = cause;
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
      answer = await source.page(shown.filter, answer ? answer.next : start);
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
  showPages(answer);
}

function countText({ total, searched }, found) {
  if (total !== null) return total === 1 ? "1 item" : `${whole(total)} items`;
  return searched < 1
    ? `${whole(found)} found, ${percent(searched)} searched`
    : `${whole(found)} found on the last page`;
}

function listEntry(row) {
  const entry = make(
    "button",
    {
      type: "button",
      "data-address": address(row),
      onclick: () => {
        location.hash = address(row);
      },
    },
    make(
      "span",
      { class: "line" },
      make("span", {}, `${brief(row.task, 40)} · ${brief(row.item_ref ?? row.item, 24)}`),
      transitionBadge(row),
    ),
    row.snippet ? make("span", { class: "snippet" }, brief(row.snippet, SNIPPET)) : null,
  );
  if (location.hash === address(row)) entry.setAttribute("aria-current", "true");
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

function moveInList(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const entries = [...byId("item-list").querySelectorAll("button")];
  entries[entries.indexOf(document.activeElement) + step]?.focus();
  event.preventDefault();
}

// --- one item ----------------------------------------------------------------------------------

// Open the item that the address names; true if it names one.
async function openAddress() {
  const [, task, item] = location.hash.match(/^#item\/([^/]*)\/([^/]*)$/) ?? [];
  if (item === undefined || !source) return false;
  let found = null;
  try {
    found = await source.find(decodeURIComponent(task), decodeURIComponent(item));
  } catch (error) {
    say(`The item cannot be had: ${error.message}.`);
  }
  byId("item-list")
    .querySelectorAll("button")
    .forEach((entry) => {
      if (entry.dataset.address === location.hash) entry.setAttribute("aria-current", "true");
      else entry.removeAttribute("aria-current");
    });
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
  const pair = (title, before, after) => {
    const [left, second] = compared(before, after);
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
        `${brief(row.task, 80)} · ${brief(row.item_ref ?? row.item, 60)}`,
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
    parts.push(...pair("Prompt, different", row.prompt_before, row.prompt_after));
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
