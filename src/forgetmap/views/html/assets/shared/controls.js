// Things to choose from, tables, and what the page says in passing.

// Radio buttons that look like a row of chips; entries are [value, label, disabled, why].
function choices(fieldset, entries, chosen, changed) {
  for (const [value, label, disabled, why] of entries) {
    const input = make("input", {
      type: "radio",
      name: fieldset.id,
      value,
      checked: value === chosen,
      disabled,
      onchange: () => changed(value),
    });
    fieldset.append(
      make(
        "label",
        { class: "choice", title: disabled ? why : null },
        input,
        make("span", {}, label),
      ),
    );
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

function download(name, content, type = "text/csv;charset=utf-8") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A table; `text` names the columns that are not numbers.
function table(head, rows, text = []) {
  const kind = (index) => (text.includes(index) ? "text" : "");
  return make(
    "table",
    {},
    make(
      "thead",
      {},
      make("tr", {}, ...head.map((word, i) => make("th", { scope: "col", class: kind(i) }, word))),
    ),
    make(
      "tbody",
      {},
      ...rows.map((row) =>
        make("tr", {}, ...row.map((part, i) => make("td", { class: kind(i) }, part))),
      ),
    ),
  );
}

// What may be wider than the page; it can be reached and scrolled by keys.
const scrolled = (said, ...content) =>
  make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": said }, ...content);

const textTable = (said, head, rows, text = [0]) => scrolled(said, table(head, rows, text));
const notice = (text) => make("p", { class: "notice" }, text);
