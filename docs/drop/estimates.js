// From outcome patterns to the numbers that the page shows. Python adds in the same order, so they
// are equal to the last digit: see forgetmap/map/estimates.py. Limits and verdicts need functions
// that no two libraries round alike; they are left to the command line.

const SCALE = 1e12; // sums of fractions come as whole multiples of 1 / SCALE
const FIELDS = ["task", "k", "bucket", "runsBefore", "rightBefore", "runsAfter", "rightAfter"];
const MOMENTS_AT = 13; // columns before the moments
const HISTOGRAM_COLUMNS = MOMENTS_AT + 16;
const [ITEMS, LOST, GAINED] = [0, 4, 10]; // places among the moments

// A row of the histogram; all its values are texts or null.
function pattern(row) {
  const values = Object.values(row);
  const found = { n: Number(values[7]), moments: values.slice(MOMENTS_AT).map(Number) };
  FIELDS.forEach((name, place) => {
    found[name] = values[place] === null || place === 0 ? values[place] : Number(values[place]);
  });
  return found;
}

// As Python sorts: what is missing first.
function inOrder(one, two) {
  for (const name of FIELDS) {
    if (one[name] === two[name]) continue;
    if (one[name] === null || two[name] === null) return one[name] === null ? -1 : 1;
    return one[name] < two[name] ? -1 : 1;
  }
  return 0;
}

function sumsOf(patterns) {
  const sums = { n: 0, known: 0, before: 0, after: 0, fell: 0, rose: 0, lost: 0, gained: 0, runs: 1 };
  for (const each of patterns) {
    const p = each.rightBefore / each.runsBefore;
    const q = each.rightAfter / each.runsAfter;
    sums.n += each.n;
    sums.known += each.moments[ITEMS];
    sums.before += each.n * p;
    sums.after += each.n * q;
    sums.fell += each.n * (p * (1 - q));
    sums.rose += each.n * (q * (1 - p));
    sums.lost += each.moments[LOST] / SCALE;
    sums.gained += each.moments[GAINED] / SCALE;
    sums.runs = Math.max(sums.runs, each.runsBefore, each.runsAfter);
  }
  return sums;
}

// A cell from the sums of its tasks. Lost and gained are known where every item has probabilities.
function cell(tasks) {
  const n = tasks.reduce((sum, task) => sum + task.n, 0);
  const mean = (name) => tasks.reduce((sum, task) => sum + (task[name] / task.n) * (task.n / n), 0);
  const [before, after, fell, rose] = ["before", "after", "fell", "rose"].map(mean);
  const isExact = tasks.every((task) => task.known === task.n);
  const count = (share) => Math.round(n * share * 1e9) / 1e9;
  return {
    n,
    counts: { n00: count(1 - before - rose), n01: count(rose), n10: count(fell), n11: count(before - fell) },
    accuracy_before: before,
    accuracy_after: after,
    raw: { lost: fell, gained: rose },
    lost: isExact ? mean("lost") : null,
    gained: isExact ? mean("gained") : null,
  };
}

// The sums of every task, from the rows of a histogram.
function sumsByTask(rows) {
  const patterns = rows.map(pattern).filter(({ runsBefore, runsAfter }) => runsBefore && runsAfter);
  patterns.sort(inOrder);
  const byTask = new Map();
  for (const each of patterns) byTask.set(each.task, [...(byTask.get(each.task) ?? []), each]);
  return new Map([...byTask].map(([task, found]) => [task, sumsOf(found)]));
}

// The map: all items, old and new ones apart, and every task. `fresh` are the new tasks.
function mapOf(sums, fresh = new Set()) {
  const some = (isWanted) => {
    const found = [...sums].filter(([task]) => isWanted(task)).map(([, each]) => each);
    return found.length ? cell(found) : null;
  };
  return {
    total: some(() => true),
    old: some((task) => !fresh.has(task)),
    new: some((task) => fresh.has(task)),
    tasks: Object.fromEntries([...sums].map(([task, found]) => [task, cell([found])])),
  };
}

export { HISTOGRAM_COLUMNS, mapOf, sumsByTask };
