// Files to rows of Samples: Samples Parquet as it is, plain tables by the names of their columns.

import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

// The columns of Samples that pairing needs, with their types.
export const COLUMNS = {
  task: "VARCHAR",
  item: "UBIGINT",
  item_ref: "VARCHAR",
  repeat: "INTEGER",
  metric: "VARCHAR",
  score: "DOUBLE",
  status: "VARCHAR",
  k: "INTEGER",
  gold_probability: "DOUBLE",
  option_probabilities: "FLOAT[]",
  right_option: "INTEGER",
  prompt_hash: "UBIGINT",
  cluster: "VARCHAR",
  source: "VARCHAR",
  prompt: "VARCHAR",
  target: "VARCHAR",
  answer: "VARCHAR",
  response: "VARCHAR",
  name: "VARCHAR", // what tells the items of a plain table apart
};

export class BadLog extends Error {}

export async function readLog(file) {
  const kind = file.name.split(".").at(-1).toLowerCase();
  if (kind === "parquet") return samplesRows(file, await parquetRows(file));
  if (kind === "jsonl") return tableRows(file, jsonRows(file, await file.text()));
  if (kind === "csv") return tableRows(file, csvRows(await file.text()));
  throw new BadLog(`${file.name}: must end in .parquet, .csv or .jsonl; forgetmap compare reads more`);
}

async function parquetRows(file) {
  try {
    return await parquetReadObjects({ file: await file.arrayBuffer(), compressors });
  } catch (error) {
    throw new BadLog(`${file.name}: is not a readable Parquet file (${error.message})`);
  }
}

function jsonRows(file, text) {
  return text.split("\n").flatMap((line, number) => {
    if (!line.trim()) return [];
    try {
      return [JSON.parse(line)];
    } catch {
      throw new BadLog(`${file.name}: line ${number + 1} is not JSON`);
    }
  });
}

// Quoted fields may hold commas, quotes and line ends.
export function csvRows(text) {
  const lines = [[]];
  for (const [, quoted, plain, end] of text
    .replace(/^\ufeff/, "")
    .matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gu)) {
    if (end === "" && !quoted && !plain && lines.at(-1).length === 0) break;
    lines.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") lines.push([]);
  }
  if (lines.at(-1).length === 0) lines.pop();
  const [head, ...rest] = lines;
  return rest.map((values) => Object.fromEntries(head.map((name, place) => [name, values[place] || null])));
}

function samplesRows(file, rows) {
  if (!rows.length) throw new BadLog(`${file.name}: holds no rows`);
  if (!("metric" in rows[0] && "score" in rows[0] && "item" in rows[0]))
    throw new BadLog(`${file.name}: is not a Samples file; make one with forgetmap convert LOG out.parquet`);
  const models = new Set(rows.map(({ model }) => model));
  if (models.size > 1)
    throw new BadLog(`${file.name}: holds ${models.size} models; choose one with forgetmap compare --before-model`);
  return rows.map((row) => ({ ...row, name: null }));
}

function tableRows(file, rows) {
  if (!rows.length) throw new BadLog(`${file.name}: holds no rows`);
  const columns = rows[0];
  const key = ["question", "id"].find((name) => name in columns);
  const lacking = ["task", "score"].filter((name) => !(name in columns));
  if (!key || lacking.length)
    throw new BadLog(
      `${file.name}: lacks the column ${[...lacking, ...(key ? [] : ["id or question"])].join(", ")}; ` +
        "name it so, or use forgetmap compare --column",
    );
  const repeats = new Map();
  return rows.map((row, number) => {
    const name = String(row[key]);
    const place = `${row.task}\n${name}`;
    const repeat = repeats.get(place) ?? 0;
    repeats.set(place, repeat + 1);
    return {
      task: String(row.task),
      item_ref: String(row.id ?? row[key]),
      repeat,
      metric: "score",
      score: scoreOf(file, row.score, number),
      status: "ok",
      k: row.k ?? null,
      prompt: row.question ?? null,
      target: row.target ?? null,
      answer: row.answer ?? null,
      name,
    };
  });
}

function scoreOf(file, value, number) {
  if (value === null || value === "") return null;
  if (typeof value === "boolean") return Number(value);
  const named = { true: 1, false: 0 }[String(value).toLowerCase()];
  const score = named ?? Number(value);
  if (Number.isNaN(score)) throw new BadLog(`${file.name}: row ${number + 1}: the score ${value} is not a number`);
  return score;
}

const NULL = "\\N";

// Rows as CSV that the database reads back without loss.
export function asCsv(rows) {
  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return NULL;
    if (Array.isArray(value) || ArrayBuffer.isView(value)) return `"[${[...value].join(", ")}]"`;
    if (typeof value === "bigint") return String(BigInt.asUintN(64, value));
    return typeof value === "number" ? String(value) : `"${String(value).replaceAll('"', '""')}"`;
  };
  const names = Object.keys(COLUMNS);
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((line, number) => (number ? line.map(cell) : line).join(","))
    .join("\n");
}
