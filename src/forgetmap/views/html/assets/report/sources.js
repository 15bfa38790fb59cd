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
    return { ...found, snippet: (found.prompt_before ?? "").trimEnd().slice(-SNIPPET) };
  }

  async matching(filter) {
    const rows = [];
    for (const group of this.groups) {
      if (!passes(filter, group)) continue;
      for (let row = group.start; row < group.end; row += 1) rows.push(row);
    }
    const text = filter.text.toLowerCase();
    if (!text) return rows;
    await this.prepare();
    return rows.filter((row) => this.haystacks[row].includes(text));
  }

  async page(filter, start) {
    const rows = await this.matching(filter);
    const end = Math.min(start + facts.page, rows.length);
    return {
      rows: await Promise.all(rows.slice(start, end).map((row) => this.record(row))),
      total: rows.length,
      next: end < rows.length ? end : null,
      searched: 1,
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

  async exportTable(filter) {
    const rows = await Promise.all((await this.matching(filter)).map((row) => this.record(row)));
    const lines = rows.map((row) => csvLine(CSV_COLUMNS.map((name) => row[name])));
    download("items.csv", csvLine(CSV_COLUMNS) + lines.join(""));
  }
}

// Items behind the server that gave us this page.
class ServedItems {
  async prepare() {}

  page(filter, start) {
    return this.ask("items", { ...filter, start });
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
