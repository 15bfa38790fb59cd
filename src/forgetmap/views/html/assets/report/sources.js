// Where items come from: from inside the file, or from the server that gave us the page.
// Both give lists: `total` items (null while a search goes on), `size` of them known so far,
// `at(index)` one of them or null while it is on its way, and `load(first, last)` to bring some.

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
const OPTIONS = ["options_before", "options_after", "right_option"];
const CODED = ["task", "transition", "cause"];
const PLAIN = ["item", "item_ref", "k", "before", "after"];
const PROBABILITIES = ["probability_before", "probability_after"];
const CSV_COLUMNS = [
  "task",
  "item",
  "item_ref",
  "k",
  "transition",
  "before",
  "after",
  ...PROBABILITIES,
  ...TEXTS,
  "cause",
];
const TASK_ORDER = "question";

// The chance that an item is right: the right option's probability, else its share of right runs.
const hasProbability = (row) => typeof row.probability_before === "number";
const chanceBefore = (row) => (hasProbability(row) ? row.probability_before : row.before);
const chanceAfter = (row) => (hasProbability(row) ? row.probability_after : row.after);

// Resolves when the browser has nothing more urgent to do.
const whenIdle = () =>
  new Promise((done) => {
    if (window.requestIdleCallback) requestIdleCallback(done, { timeout: 200 });
    else setTimeout(done, 1);
  });

// Items inside the file, those that lost most confidence first. The list is unpacked at once,
// texts in parts when they are needed: those of the first rows are in the first part.
class EmbeddedItems {
  static async open() {
    const listing = JSON.parse(await unpack(byId("listing")));
    byId("listing").remove();
    return new EmbeddedItems(listing, [...document.querySelectorAll("script.texts")]);
  }

  constructor(listing, packedTexts) {
    this.listing = listing;
    this.size = listing.item.length;
    this.packedTexts = packedTexts;
    this.parts = new Map(); // part -> promise of its texts
    this.unpacked = []; // the same, once they are there
    this.orders = new Map();
    this.codes = CODED.map((name) => Uint32Array.from(listing[name]));
    this.numberTexts(listing.has_text);
  }

  // Texts are packed in the order of the list, without the rows that have none.
  numberTexts(hasText) {
    let texts = 0;
    this.textNumber = Int32Array.from(hasText, (has) => (has ? texts++ : -1));
    this.rowOfText = new Map();
    this.textNumber.forEach((number, row) => {
      if (number >= 0) this.rowOfText.set(number, row);
    });
  }

  // Make the first search as quick as the others.
  prepare() {
    this.reading ??= this.readAll();
    return this.reading;
  }

  // Put all words of every item into one text in small letters, its names first; bit by bit, so
  // that the page stays quick meanwhile.
  async readAll() {
    const { item, item_ref: reference } = this.listing;
    const haystacks = item.map((name, row) => `${name}\n${reference[row] ?? ""}`.toLowerCase());
    for (let part = 0; part < this.packedTexts.length; part += 1) {
      await whenIdle();
      const contents = await this.textsOf(part);
      contents.forEach((texts, place) => {
        const row = this.rowOfText.get(part * facts.part + place);
        if (row === undefined) return; // its item is not in this list
        let words = haystacks[row];
        TEXTS.forEach((name, column) => {
          if (texts[column] && !name.startsWith("status")) words += `\n${texts[column]}`;
        });
        haystacks[row] = words.toLowerCase();
      });
    }
    this.haystacks = haystacks;
  }

  textsOf(part) {
    if (!this.parts.has(part)) {
      const unpacking = unpack(this.packedTexts[part]).then((text) => {
        this.unpacked[part] = JSON.parse(text);
        this.packedTexts[part].remove();
        return this.unpacked[part];
      });
      this.parts.set(part, unpacking);
    }
    return this.parts.get(part);
  }

  partOf(row) {
    return this.textNumber[row] < 0 ? -1 : Math.floor(this.textNumber[row] / facts.part);
  }

  // An item as far as it is unpacked; `whole` says whether it has its texts.
  record(row) {
    const found = { row };
    for (const name of [...PLAIN, ...PROBABILITIES]) found[name] = this.listing[name]?.[row] ?? null;
    CODED.forEach((name, index) => {
      found[name] = this.listing[`${name}_names`][this.codes[index][row]];
    });
    const part = this.partOf(row);
    const texts = part < 0 ? [] : this.unpacked[part]?.[this.textNumber[row] % facts.part];
    [...TEXTS, ...OPTIONS].forEach((name, column) => {
      found[name] = texts?.[column] ?? null;
    });
    return { ...found, snippet: endOf(found.prompt_before), whole: texts !== undefined };
  }

  async wholeRecord(row) {
    if (this.partOf(row) >= 0) await this.textsOf(this.partOf(row));
    return this.record(row);
  }

  // Rows that pass, in the order asked for, and how many of each outcome the other filters leave.
  async matching(filter, order) {
    const text = filter.text.toLowerCase();
    if (text) await this.prepare();
    const wanted = CODED.map((name) => {
      if (!filter[name]) return -1;
      const value = name === "cause" && filter.cause === "-" ? null : filter[name];
      const code = this.listing[`${name}_names`].indexOf(value);
      return code < 0 ? -2 : code;
    });
    const [tasks, transitions, causes] = this.codes;
    const [, transition, cause] = wanted;
    const isChosen = this.chosenTasks(filter.task);
    const passing = new Uint8Array(this.size);
    const counted = new Array(this.listing.transition_names.length).fill(0);
    const candidates = text ? this.candidates(text) : null;
    const size = candidates ? candidates.length : this.size;
    for (let index = 0; index < size; index += 1) {
      const row = candidates ? candidates[index] : index;
      if (!isChosen[tasks[row]]) continue;
      if (cause !== -1 && causes[row] !== cause) continue;
      counted[transitions[row]] += 1;
      if (transition === -1 || transitions[row] === transition) passing[row] = 1;
    }
    const counts = {};
    this.listing.transition_names.forEach((name, code) => {
      if (name !== null) counts[name] = counted[code];
    });
    return { rows: this.inOrder(order).filter((row) => passing[row]), counts };
  }

  // For each task, whether a name stands for it: its own, that of its category, or none at all.
  chosenTasks(name) {
    const { task_names: names, category_of: categories } = this.listing;
    return Uint8Array.from(names, (task) =>
      Number(!name || name === task || name === categories?.[task]),
    );
  }

  // Rows that hold a text. Who goes on typing searches only what was found so far.
  candidates(text) {
    const { text: known, rows } = this.found ?? { text: "", rows: this.inOrder("") };
    const from = text.includes(known) ? rows : this.inOrder("");
    this.found = { text, rows: from.filter((row) => this.haystacks[row].includes(text)) };
    return this.found.rows;
  }

  // All rows by a column, made once; of equals those that lost more come first. "-" turns it.
  inOrder(order) {
    if (!this.orders.has(order)) {
      const rows = Uint32Array.from({ length: this.size }, (_, row) => row);
      if (order !== "" && order !== "change") {
        const sign = order.startsWith("-") ? -1 : 1;
        const keys = this.keys(order.replace("-", ""));
        rows.sort((one, two) => sign * (keys[one] - keys[two]) || one - two);
      }
      this.orders.set(order, rows);
    }
    return this.orders.get(order);
  }

  // Numbers to sort by. The rows themselves are in the order of the change.
  keys(column) {
    const { before, after } = this.listing;
    const [was, is] = PROBABILITIES.map((name) => this.listing[name]);
    const chance = (list, shares) =>
      Float64Array.from(shares, (share, row) => (list && was[row] !== null ? list[row] : share));
    if (column === "before") return chance(was, before);
    if (column === "after") return chance(is, after);
    if (column === "change") {
      const first = chance(was, before);
      return chance(is, after).map((value, row) => value - first[row]);
    }
    const place = column === TASK_ORDER ? 0 : 2;
    const names = this.listing[`${CODED[place]}_names`];
    const sorted = names.map((name, code) => [name ?? "\uffff", code]).sort((one, two) => (one[0] < two[0] ? -1 : 1));
    const rank = new Map(sorted.map(([, code], index) => [code, index]));
    return Float64Array.from(this.codes[place], (code) => rank.get(code));
  }

  async list(filter, order) {
    const { rows, counts } = await this.matching(filter, order);
    return {
      total: rows.length,
      size: rows.length,
      searched: 1,
      counts,
      at: (index) => this.record(rows[index]),
      load: (first, last) =>
        Promise.all(
          [...new Set(Array.from(rows.subarray(first, last), (row) => this.partOf(row)))]
            .filter((part) => part >= 0 && !this.unpacked[part])
            .map((part) => this.textsOf(part)),
        ),
      indexOf: ({ row }) => rows.indexOf(row),
    };
  }

  async find(task, item) {
    const code = this.listing.task_names.indexOf(task);
    let row = -1;
    do row = this.listing.item.indexOf(item, row + 1);
    while (row >= 0 && this.codes[0][row] !== code);
    return row < 0 ? null : this.wholeRecord(row);
  }

  async exportTable(filter, order) {
    const { rows } = await this.matching(filter, order);
    const lines = [csvLine(CSV_COLUMNS)];
    for (const row of rows) {
      const found = await this.wholeRecord(row);
      lines.push(csvLine(CSV_COLUMNS.map((name) => found[name])));
    }
    download("items.csv", lines.join(""));
  }
}

// Items behind the server that gave us this page.
class ServedItems {
  async prepare() {}

  async list(filter) {
    const list = filter.text ? new SearchedList(this, filter) : new PagedList(this, filter);
    await list.load(0, facts.page);
    return list;
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

// A list of which any page can be asked for.
class PagedList {
  constructor(source, filter) {
    this.ask = (start) => source.ask("items", { ...filter, start });
    this.counts = countsOf({ ...filter, transition: "" });
    this.total = this.size = Object.values(countsOf(filter)).reduce((sum, count) => sum + count, 0);
    this.searched = 1;
    this.rows = new Map();
    this.asked = new Map(); // page -> promise that it is there
  }

  at(index) {
    return this.rows.get(index) ?? null;
  }

  load(first, last) {
    const pages = [];
    for (let page = Math.floor(first / facts.page); page * facts.page < Math.min(last, this.size); page += 1) {
      if (!this.asked.has(page)) this.asked.set(page, this.bring(page * facts.page));
      pages.push(this.asked.get(page));
    }
    return Promise.all(pages);
  }

  async bring(start) {
    const { rows } = await this.ask(start);
    rows.forEach((row, place) => this.rows.set(start + place, { ...row, whole: true }));
  }

  indexOf({ task, item }) {
    for (const [index, row] of this.rows) if (row.task === task && row.item === item) return index;
    return -1;
  }
}

// What a search found so far; the server searches on when more is asked for. How many of each
// outcome it would find is not known.
class SearchedList extends PagedList {
  constructor(source, filter) {
    super(source, filter);
    Object.assign(this, { counts: null, total: null, size: 0, next: 0, searched: 0 });
  }

  load(_first, last) {
    this.loading = (this.loading ?? Promise.resolve()).then(() => this.searchOn(last));
    return this.loading;
  }

  async searchOn(last) {
    while (this.next !== null && this.size < last) {
      const answer = await this.ask(this.next);
      for (const row of answer.rows) this.rows.set(this.size++, { ...row, whole: true });
      this.next = answer.next;
      this.searched = answer.searched;
    }
    if (this.next === null) this.total = this.size;
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
