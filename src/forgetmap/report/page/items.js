// The items: a list with filters, and the chosen one with both answers side by side.

const TEXTS = [
  "target",
  "answer_before",
  "answer_after",
  "status_before",
  "status_after",
  "prompt_before",
  "prompt_after",
  "response_before",
  "response_after",
];
const CSV_COLUMNS = [
  "task",
  "item",
  "item_ref",
  "k",
  "transition",
  "before",
  "after",
  ...TEXTS,
  "cause",
];
const SNIPPET = 160;

// --- where items come from ---------------------------------------------------------------------

// Items inside the file. The list is there at once; texts are unpacked in parts.
async function embeddedItems() {
  const listing = JSON.parse(await unpack(byId("listing")));
  byId("listing").remove();
  const groups = [];
  let start = 0;
  for (const [task, transition, cause, count] of listing.groups) {
    groups.push({ task, transition, cause, start, end: start + count });
    start += count;
  }
  const partOf = new Map(); // row -> [part, place in it]
  listing.texts.forEach((rows, part) =>
    rows.forEach((row, place) => partOf.set(row, [part, place])),
  );
  const elements = [...document.querySelectorAll("script.texts")];
  const parts = new Map();
  const part = (number) => {
    if (!parts.has(number)) parts.set(number, unpack(elements[number]).then(JSON.parse));
    return parts.get(number);
  };
  const haystacks = new Map(); // row -> its words in small letters
  let reading = null;
  const allTexts = () =>
    (reading ??= (async () => {
      for (let number = 0; number < elements.length; number += 1) {
        const contents = await part(number);
        contents.forEach((texts, place) =>
          haystacks.set(
            listing.texts[number][place],
            texts
              .filter((text, column) => text && !TEXTS[column].startsWith("status"))
              .join("\n")
              .toLowerCase(),
          ),
        );
      }
    })());

  const groupOf = (row) => {
    let [low, high] = [0, groups.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (groups[middle].start <= row) low = middle;
      else high = middle - 1;
    }
    return groups[low];
  };
  const record = (row) => {
    const { task, transition, cause } = groupOf(row);
    return {
      task,
      transition,
      cause,
      item: listing.item[row],
      item_ref: listing.item_ref[row],
      k: listing.k[row],
      before: listing.before[row],
      after: listing.after[row],
    };
  };
  const withTexts = async (row) => {
    const found = { ...record(row), has_text: partOf.has(row) };
    const [number, place] = partOf.get(row) ?? [];
    const texts = number === undefined ? [] : (await part(number))[place];
    TEXTS.forEach((name, column) => {
      found[name] = texts[column] ?? null;
    });
    return { ...found, snippet: (found.prompt_before ?? "").trimEnd().slice(-SNIPPET) };
  };
  const matching = async (filter) => {
    const rows = [];
    for (const group of groups) {
      if (passes(filter, group))
        for (let row = group.start; row < group.end; row += 1) rows.push(row);
    }
    const text = filter.text.toLowerCase();
    if (!text) return rows;
    await allTexts();
    const has = (value) => value !== null && value.toLowerCase().includes(text);
    return rows.filter(
      (row) =>
        has(listing.item[row]) || has(listing.item_ref[row]) || haystacks.get(row)?.includes(text),
    );
  };
  return {
    prepare: allTexts,
    async page(filter, start) {
      const rows = await matching(filter);
      const end = Math.min(start + facts.page, rows.length);
      return {
        rows: await Promise.all(rows.slice(start, end).map(withTexts)),
        total: rows.length,
        next: end < rows.length ? end : null,
        searched: 1,
      };
    },
    async find(task, item) {
      for (const group of groups) {
        if (group.task !== task) continue;
        for (let row = group.start; row < group.end; row += 1)
          if (listing.item[row] === item) return withTexts(row);
      }
      return null;
    },
    async exportTable(filter) {
      const rows = await Promise.all((await matching(filter)).map(withTexts));
      download(
        "items.csv",
        [CSV_COLUMNS, ...rows.map((row) => CSV_COLUMNS.map((name) => row[name]))]
          .map(csvLine)
          .join(""),
      );
    },
  };
}

// Items behind the server that gave us this page.
function servedItems() {
  const ask = async (path, parameters) => {
    const response = await fetch(`${path}?${new URLSearchParams(parameters)}`);
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.json();
  };
  return {
    async prepare() {},
    page: (filter, start) => ask("items", { ...filter, start }),
    find: (task, item) => ask("item", { task, item }),
    async exportTable(filter) {
      make("a", {
        href: `items.csv?${new URLSearchParams(filter)}`,
        download: "items.csv",
      }).click();
    },
  };
}

// "-" stands for items without a cause, "" for all.
function passes(filter, group) {
  return (
    (!filter.transition || filter.transition === group.transition) &&
    (!filter.task || filter.task === group.task) &&
    (!filter.cause || (filter.cause === "-" ? null : filter.cause) === group.cause)
  );
}

// A spreadsheet must not take text for a formula: model output is untrusted.
function csvLine(values) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = value.replaceAll("\u0000", "");
    const safe = /^[\r\n ]*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${values.map(cell).join(",")}\r\n`;
}

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
  if (row.has_text === false) {
    parts.push(
      make(
        "p",
        { class: "faint" },
        row.before === row.after
          ? "The item did not change; its texts are not kept."
          : "Its texts are not in this file, which holds a sample; forgetmap serve has all.",
      ),
    );
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
