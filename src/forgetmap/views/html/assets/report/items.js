// The items: filters, order and the opened item, all kept in the address.

let source = null;
let itemTable = null;
const shown = {
  filter: { transition: "forgotten", task: "", cause: "", text: "" },
  order: "change",
  open: "", // the address of the opened item
  asked: 0,
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
  itemTable = new ItemTable(byId("item-box"), {
    open: (row) => {
      location.hash = withFilters(address(row));
    },
    sort: (column) => {
      shown.order = shown.order === column ? `-${column}` : column;
      keepAddress();
      showItems({});
    },
  });
  itemTable.grown = showCount;
  document.addEventListener("keydown", pressed);
  window.addEventListener("hashchange", openAddress);
  readFilters();
  showNotice();
  noItem();
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
  if (shown.order !== "change") changed.push(["order", shown.order]);
  const query = new URLSearchParams(changed).toString();
  return query ? `${start}?${query}` : start;
}

function readFilters() {
  const query = new URLSearchParams(location.hash.match(ADDRESS)?.[3] ?? "");
  for (const [name, value] of Object.entries(usual)) shown.filter[name] = query.get(name) ?? value;
  const order = query.get("order") ?? "";
  const isKnown = ITEM_COLUMNS.some(({ name, fixed }) => !fixed && name === order.replace("-", ""));
  shown.order = isKnown ? order : "change";
}

// Put what is shown into the address; other places in the page are left alone until a filter is set.
function keepAddress() {
  const wanted = withFilters(shown.open || "#items");
  if (wanted !== "#items" || ADDRESS.test(location.hash)) history.replaceState(null, "", wanted);
}

// --- the list ----------------------------------------------------------------------------------

// Change the filter, put the controls in line with it, and show what passes from its top.
async function showItems(change, jump = false) {
  Object.assign(shown.filter, change);
  if (Object.keys(change).length) keepAddress();
  const { transition, task, cause, text } = shown.filter;
  for (const input of byId("transition").querySelectorAll("input"))
    input.checked = input.value === transition;
  byId("item-task").value = task;
  byId("item-cause").value = cause;
  if (byId("item-text").value.trim() !== text) byId("item-text").value = text;
  if (jump) byId("items").scrollIntoView();
  const asked = (shown.asked += 1);
  if (!source) return;
  try {
    const list = await source.list(shown.filter, shown.order);
    if (asked !== shown.asked) return; // the filter has changed meanwhile
    itemTable.show(list, shown.order);
    showCounts(list.counts);
    showCount(list);
  } catch (error) {
    byId("item-count").textContent = `The items cannot be had: ${error.message}.`;
  }
}

// Beside every outcome, how many items the other filters leave.
function showCounts(counts) {
  for (const [name, word] of Object.entries(TRANSITIONS)) {
    const input = byId("transition").querySelector(`input[value="${name}"]`);
    input.nextSibling.textContent = counts ? `${word} ${whole(counts[name] ?? 0)}` : word;
  }
}

function showCount({ total, size, searched }) {
  byId("item-count").textContent =
    total === null
      ? `${whole(size)} found, ${percent(searched)} searched`
      : total === 1
        ? "1 item"
        : `${whole(total)} items`;
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
    itemTable.step(STEPS[event.key]);
    event.preventDefault();
  }
}

// Out of the search, else out of the opened item.
function goBack(target) {
  if (target === byId("item-text")) {
    target.blur();
    if (shown.filter.text) showItems({ text: "" });
  } else if (shown.open) {
    shown.open = "";
    keepAddress();
    itemTable.mark("");
    noItem();
    itemTable.step(0);
  }
}

// --- one item ----------------------------------------------------------------------------------

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
  itemTable.mark(shown.open);
  const place = found ? itemTable.list.indexOf(found) : -1;
  if (place >= 0) itemTable.reach(place);
  showDetail(found);
  return true;
}

function showDetail(found) {
  const box = byId("item-detail");
  const missing = "No such item is listed here. Large reports list a sample; forgetmap serve has all.";
  box.replaceChildren(...(found ? detail(found) : [make("p", { class: "faint" }, missing)]));
  for (const part of box.querySelectorAll(".folded")) showWhatMatters(part);
  const { top } = box.getBoundingClientRect();
  if (narrow()) box.scrollIntoView();
  else if (top > 0.6 * window.innerHeight) window.scrollBy(0, top - 0.6 * window.innerHeight);
}
