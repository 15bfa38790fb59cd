// Items that most pairs lost, and the life of one item over all pairs.

const ITEMS_PAGE = 20;
const STATES = {
  l: ["lost", "right before, wrong after", "✓ → ✗"],
  g: ["gained", "wrong before, right after", "✗ → ✓"],
  k: ["kept", "right before and after", "✓ → ✓"],
  n: ["not known", "wrong before and after", "✗ → ✗"],
  "-": ["not asked", "not compared in this pair", "–"],
};

// The items with their lives where these were read, else those that the study lists.
const itemRows = () =>
  study.lives?.items ??
  (study.answers.items?.most ?? []).map(({ item_ref: ref, ...item }) => ({
    ...item,
    ref,
    states: null,
    prompt: null,
    target: null,
  }));
const itemKey = ({ task, item }) => `${task}/${item}`;

function wantedItems() {
  const text = state.text.trim().toLowerCase();
  return itemRows().filter(
    (item) =>
      (!state.task || item.task === state.task) &&
      (!text ||
        [item.ref, item.item, item.prompt, item.target].some((part) =>
          part?.toLowerCase().includes(text),
        )),
  );
}

// How often an item was lost among the pairs that the filters leave.
function countedIn(item, list) {
  if (!item.states) return { knew: item.knew, lost: item.lost };
  const states = list.map(({ place }) => item.states[place]);
  const lost = states.filter((one) => one === "l").length;
  return { lost, knew: lost + states.filter((one) => one === "k").length };
}

function drawItems() {
  if (!itemRows().length) return;
  const list = wantedPairs();
  const rows = wantedItems()
    .map((item) => ({ item, ...countedIn(item, list) }))
    .filter(({ lost }) => lost > 0)
    .sort((one, two) => two.lost - one.lost || one.knew - two.knew);
  const withText = itemRows().some(({ prompt }) => prompt);
  const last = Math.max(1, Math.ceil(rows.length / ITEMS_PAGE));
  const page = Math.min(Math.max(1, Number.parseInt(state.page, 10) || 1), last);
  byId("items-table").replaceChildren(
    textTable(
      "Items that most pairs lost",
      ["task", "item", "lost in", ...(withText ? ["question"] : [])],
      rows
        .slice((page - 1) * ITEMS_PAGE, page * ITEMS_PAGE)
        .map(({ item, knew, lost }) => [
          brief(item.task, 60),
          item.states
            ? make(
                "button",
                { class: "link", type: "button", onclick: () => choose({ item: itemKey(item) }) },
                brief(item.ref ?? item.item, 40),
              )
            : brief(item.ref ?? item.item, 40),
          make("span", { class: "lost" }, `−${whole(lost)} of ${whole(knew)}`),
          ...(withText ? [brief(item.prompt ?? "", 120)] : []),
        ]),
      [0, 1, 3],
    ).firstChild,
  );
  const step = (word, to) =>
    make(
      "button",
      {
        type: "button",
        disabled: to < 1 || to > last,
        onclick: () => choose({ page: String(to) }),
      },
      word,
    );
  byId("items-pages").replaceChildren(
    step("Previous", page - 1),
    make("span", { role: "status" }, `page ${page} of ${last}, ${whole(rows.length)} items`),
    step("Next", page + 1),
  );
  byId("items-task").value = state.task;
  if (byId("items-text").value !== state.text) byId("items-text").value = state.text;
}

// --- one item over all pairs -------------------------------------------------------------------

function lifeRow(item, pair) {
  const letter = item.states[pair.place];
  const [word, meaning, arrow] = STATES[letter];
  const shade = { l: "lost", g: "won" }[letter] ?? "soft";
  const place = `#item/${encodeURIComponent(item.task)}/${encodeURIComponent(item.item)}`;
  return [
    letter === "-" ? brief(pair.name, 60) : pairLink(pair, 60, place),
    make("span", { class: shade, title: meaning }, `${arrow} ${word}`),
    ...study.attributes.map(({ name }) =>
      valueIn(pair, name) === undefined ? "" : valueText(pair, name),
    ),
  ];
}

function drawLife() {
  const dialog = byId("life");
  const item = state.item && itemRows().find((one) => one.states && itemKey(one) === state.item);
  if (!item) {
    if (dialog.open) dialog.close();
    if (state.item) say("This item is not listed here.");
    return;
  }
  const list = inOrder(wantedPairs(), "name");
  const count = (letter) => list.filter(({ place }) => item.states[place] === letter).length;
  const tally = Object.entries(STATES)
    .map(([letter, [word]]) => [count(letter), word])
    .filter(([number]) => number)
    .map(([number, word]) => `${number} ${word}`);
  dialog.replaceChildren(
    make(
      "header",
      {},
      make(
        "h2",
        { id: "life-title" },
        `${brief(item.task, 60)}: ${brief(item.ref ?? item.item, 60)}`,
      ),
      make(
        "button",
        { type: "button", "aria-label": "Close", onclick: () => dialog.close() },
        "Close",
      ),
    ),
    make("p", { class: "lead" }, `In ${list.length} pairs: ${tally.join(", ")}.`),
    ...(item.prompt === null
      ? [
          make(
            "p",
            { class: "note" },
            "The question is not available here; the page of a pair may have it.",
          ),
        ]
      : [make("h3", {}, "Question"), make("pre", { tabindex: "0" }, visible(item.prompt))]),
    ...(item.target === null
      ? []
      : [make("h3", {}, "Right answer"), make("pre", {}, visible(item.target))]),
    make("h3", {}, "In every pair"),
    textTable(
      "In every pair",
      ["pair", "before → after", ...study.attributes.map(({ name }) => brief(name, 20))],
      list.map((pair) => lifeRow(item, pair)),
      [0, 1],
    ),
    make(
      "p",
      { class: "note" },
      "✓ most of its runs were right, ✗ they were not. A link opens both answers of that pair.",
    ),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function overlapPart({ overlap }) {
  if (!overlap.length) return [];
  return [
    make("h3", {}, "Do pairs lose the same items?"),
    textTable(
      "Items lost together",
      [
        "two pairs with",
        "comparisons",
        "lost in both",
        "by chance",
        "from chance (0 %) to alike (100 %)",
      ],
      overlap.map((one) => [
        brief(one.kind, 40),
        whole(one.comparisons),
        whole(one.together),
        whole(one.expected),
        one.beyond_chance
          ? `${points(one.beyond_chance.value, 0)} % (${points(one.beyond_chance.low, 0)} to ${points(one.beyond_chance.high, 0)})`
          : NOT_KNOWN,
      ]),
    ),
    make(
      "p",
      { class: "note" },
      "Pairs with one log before share its lucky answers, which look like losses in all of them.",
    ),
  ];
}

function setUpItems() {
  const { items } = study.answers;
  const rows = itemRows();
  byId("items-lead").append(
    items
      ? `Of ${whole(items.known_twice)} items that two or more models before knew, ${whole(items.lost_in_all)} were lost in every such pair and ${whole(items.lost_in_none)} in none.` +
          (study.lives
            ? ` Listed are the ${whole(rows.length)} that most pairs lost; each opens its life.`
            : ` The life of an item is not available: ${study.no_lives}.`)
      : `Not available: ${study.source ? study.no_lives : "single items are not known, or they are too many"}.`,
  );
  byId("life").addEventListener("close", () => state.item && choose({ item: "" }));
  if (items) byId("items-overlap").append(...overlapPart(items));
  if (!rows.length) {
    for (const id of ["items-controls", "items-table", "items-pages"]) byId(id).remove();
    return;
  }
  const tasks = [...new Set(rows.map(({ task }) => task))].sort();
  const select = make("select", {
    id: "items-task",
    onchange: (event) => choose({ task: event.target.value, page: "1" }),
  });
  fillSelect(
    select,
    [["", "all tasks"], ...tasks.map((task) => [task, brief(task, 60)])],
    state.task,
  );
  byId("items-controls").append(
    make("label", {}, "Task ", select),
    make(
      "label",
      {},
      "Search ",
      make("input", {
        id: "items-text",
        type: "search",
        autocomplete: "off",
        placeholder: "question, answer, id",
        oninput: (event) => choose({ text: event.target.value, page: "1" }, { quietly: true }),
      }),
    ),
  );
}
