// Where items come from: from inside the file, or from the server that gave us the page.

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

// The end of a prompt, where the question stands; it does not begin in the middle of a word.
function endOf(prompt) {
  const text = (prompt ?? "").trimEnd();
  return text.length <= SNIPPET ? text : `… ${text.slice(-SNIPPET).replace(/^\S*\s+/, "")}`;
}

// Items inside the file. The list is unpacked at once, texts in parts when they are needed.
class EmbeddedItems {
  static async open() {
    const listing = JSON.parse(await unpack(byId("listing")));
    byId("listing").remove();
    return new EmbeddedItems(listing, [...document.querySelectorAll("script.texts")]);
  }

  constructor(listing, packedTexts) {
    this.listing = listing;
    this.packedTexts = packedTexts;
    this.parts = new Map(); // part -> promise of its texts
    this.groups = [];
    let start = 0;
    for (const [task, transition, cause, count] of listing.groups) {
      this.groups.push({ task, transition, cause, start, end: start + count });
      start += count;
    }
    this.placeOf = new Map(); // row -> [part, place in it]
    listing.texts.forEach((rows, part) =>
      rows.forEach((row, place) => this.placeOf.set(row, [part, place])),
    );
  }

  // Make the first search as quick as the others.
  prepare() {
    this.reading ??= this.readAll();
    return this.reading;
  }

  // Put all words of every item into one text in small letters, its names first.
  async readAll() {
    const { item, item_ref: reference } = this.listing;
    this.haystacks = item.map((name, row) => `${name}\n${reference[row] ?? ""}`.toLowerCase());
    for (let part = 0; part < this.packedTexts.length; part += 1) {
      const contents = await this.textsOf(part);
      contents.forEach((texts, place) => {
        const words = texts.filter((text, column) => text && !TEXTS[column].startsWith("status"));
        const row = this.listing.texts[part][place];
        if (row >= 0)
          this.haystacks[row] = [this.haystacks[row], ...words].join("\n").toLowerCase();
      });
    }
  }

  textsOf(part) {
    if (!this.parts.has(part)) {
      this.parts.set(part, unpack(this.packedTexts[part]).then(JSON.parse));
    }
    return this.parts.get(part);
  }

  // The last group that begins at the row or before it.
  groupOf(row) {
    let [low, high] = [0, this.groups.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.groups[middle].start <= row) low = middle;
      else high = middle - 1;
    }
    return this.groups[low];
  }

  async record(row) {
    const { task, transition, cause } = this.groupOf(row);
    const found = { task, transition, cause };
    for (const name of ["item", "item_ref", "k", "before", "after"]) {
      found[name] = this.listing[name][row];
    }
    const [part, place] = this.placeOf.get(row) ?? [];
    const texts = part === undefined ? [] : (await this.textsOf(part))[place];
    TEXTS.forEach((name, column) => {
      found[name] = texts[column] ?? null;
    });
    return { ...found, snippet: endOf(found.prompt_before) };
  }

  // Rows that pass, in the order asked for, and how many of each outcome the other filters leave.
  async matching(filter, order = "lost") {
    const text = filter.text.toLowerCase();
    if (text) await this.prepare();
    const counts = {};
    const passing = new Uint8Array(this.listing.item.length);
    for (const group of this.groups) {
      if (!passes({ ...filter, transition: "" }, group)) continue;
      const isWanted = passes(filter, group);
      let found = text ? 0 : group.end - group.start;
      for (let row = group.start; row < group.end && (text || isWanted); row += 1) {
        if (text && !this.haystacks[row].includes(text)) continue;
        if (text) found += 1;
        if (isWanted) passing[row] = 1;
      }
      counts[group.transition] = (counts[group.transition] ?? 0) + found;
    }
    return { rows: this.inOrder(order).filter((row) => passing[row]), counts };
  }

  // All rows by how much less often they are right, made once; of equals in the order of tasks.
  inOrder(order) {
    this.orders ??= {};
    const { before, after } = this.listing;
    const sign = { lost: 1, gained: -1, task: 0 }[order];
    const fall = (row) => sign * (before[row] - after[row]);
    this.orders[order] ??= [...before.keys()].sort((one, two) => fall(two) - fall(one) || one - two);
    return this.orders[order];
  }

  async page(filter, start, order) {
    const { rows, counts } = await this.matching(filter, order);
    const end = Math.min(start + facts.page, rows.length);
    return {
      rows: await Promise.all(rows.slice(start, end).map((row) => this.record(row))),
      total: rows.length,
      next: end < rows.length ? end : null,
      searched: 1,
      counts,
    };
  }

  async find(task, item) {
    for (const group of this.groups) {
      if (group.task !== task) continue;
      const row = this.listing.item.indexOf(item, group.start);
      if (row >= 0 && row < group.end) return this.record(row);
    }
    return null;
  }

  async exportTable(filter, order) {
    const found = await this.matching(filter, order);
    const rows = await Promise.all(found.rows.map((row) => this.record(row)));
    const lines = rows.map((row) => csvLine(CSV_COLUMNS.map((name) => row[name])));
    download("items.csv", csvLine(CSV_COLUMNS) + lines.join(""));
  }
}

// Items behind the server that gave us this page.
class ServedItems {
  async prepare() {}

  // How many of each outcome a search would leave is not known here.
  async page(filter, start) {
    const answer = await this.ask("items", { ...filter, start });
    return { ...answer, counts: filter.text ? null : countsOf({ ...filter, transition: "" }) };
  }

  find(task, item) {
    return this.ask("item", { task, item });
  }

  async exportTable(filter) {
    const href = `items.csv?${new URLSearchParams(filter)}`;
    make("a", { href, download: "items.csv" }).click();
  }

  async ask(path, parameters) {
    const response = await fetch(`${path}?${new URLSearchParams(parameters)}`);
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response.json();
  }
}

// Items by outcome, of all that pass a filter without a text.
function countsOf(filter) {
  const counts = {};
  for (const [task, transition, cause, count] of facts.groups)
    if (passes(filter, { task, transition, cause }))
      counts[transition] = (counts[transition] ?? 0) + count;
  return counts;
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
