// The opened item: its options, both answers side by side, long texts folded.

const FOLDED = 700; // characters, or
const FOLDED_LINES = 14; // lines, from which a text is folded
const SHORT = 60; // characters of a target that the table of options shows whole

function noItem() {
  byId("item-detail").replaceChildren(
    make(
      "p",
      { class: "faint" },
      "Choose an item to see both answers side by side. Keys: j and k walk, Enter opens, / searches, Escape goes back.",
    ),
  );
}

const isLong = (text) => text.length > FOLDED || text.split("\n").length > FOLDED_LINES;

// A part of the item with its texts, folded where they are long; one button unfolds them all.
function textPart(title, texts, body) {
  const length = Math.max(...texts.map((text) => text?.length ?? 0));
  const heading = make("h3", {}, title);
  const part = make("section", { class: "texts" }, heading, body);
  if (!texts.some((text) => text && isLong(text))) return part;
  const button = make(
    "button",
    {
      type: "button",
      class: "link",
      "aria-expanded": "false",
      onclick: () => {
        const isFolded = part.classList.toggle("folded");
        button.setAttribute("aria-expanded", String(!isFolded));
        button.textContent = isFolded ? unfold : "Show less";
        showWhatMatters(part);
      },
    },
  );
  const unfold = `Show all ${whole(length)} characters`;
  button.textContent = unfold;
  part.classList.add("folded");
  part.append(button);
  return part;
}

// In a folded text, the first difference is in sight; of a prompt the end, where the question is.
function showWhatMatters(part) {
  for (const text of part.querySelectorAll("pre")) {
    const mark = text.querySelector("mark");
    text.scrollTop = !part.classList.contains("folded")
      ? 0
      : mark
        ? mark.offsetTop - text.offsetTop - 24
        : text.classList.contains("prompt")
          ? text.scrollHeight
          : 0;
  }
}

function detail(row) {
  const kinds = { forgotten: ["right", "wrong"], gained: ["wrong", "right"] }[row.transition];
  const side = (which, part) => make("div", {}, make("h4", {}, which), part);
  const pair = (title, before, after, sides = kinds) => {
    const [left, second] = compared(before, after, sides);
    const body = make("div", { class: "sides" }, side("before", left), side("after", second));
    return textPart(title, [before, after], body);
  };
  const parts = [detailHead(row), make("p", { class: "faint" }, summaryOf(row))];
  if (TEXTS.every((name) => row[name] === null))
    return [...parts, make("p", { class: "faint" }, whyNoTexts(row))];
  if (row.prompt_before !== null && row.prompt_before === row.prompt_after) {
    const prompt = make("pre", { tabindex: "0", class: "prompt" }, visible(row.prompt_before));
    parts.push(textPart("Prompt, the same on both sides", [row.prompt_before], prompt));
  } else if (row.prompt_before !== null || row.prompt_after !== null)
    parts.push(pair("Prompt, different", row.prompt_before, row.prompt_after, ["other", "other"]));
  const hasOptions = row.options_before && row.options_after;
  if (row.target !== null && !(hasOptions && row.target.length <= SHORT)) {
    const target = make("pre", { tabindex: "0" }, visible(row.target));
    parts.push(textPart("Target", [row.target], target));
  }
  if (hasOptions)
    parts.push(make("h3", {}, "Options"), optionsTable(row));
  parts.push(pair("Extracted answer", row.answer_before, row.answer_after));
  if (row.response_before !== null || row.response_after !== null)
    parts.push(pair("Response", row.response_before, row.response_after));
  return parts;
}

function detailHead(row) {
  const link = () => location.href.split("#")[0] + address(row);
  return make(
    "header",
    {},
    make("span", { class: "where" }, nameOf(row, 80)),
    transitionBadge(row),
    make("button", { type: "button", onclick: () => copy(link(), "link") }, "Copy link"),
    make("button", { type: "button", onclick: () => copy(asText(row), "item") }, "Copy item"),
  );
}

function summaryOf(row) {
  return (
    `${rightness(row.before)} before, ${rightness(row.after)} after` +
    (hasProbability(row)
      ? `; probability of the right answer ${percent(row.probability_before)} → ${percent(row.probability_after)}`
      : "") +
    `; ${row.k ? `${row.k} options` : "open answer"}${statusText(row)}; item ${brief(row.item, 40)}`
  );
}

function transitionBadge({ transition, cause }) {
  const kind = { forgotten: " bad", gained: " good" }[transition] ?? "";
  const sign = { forgotten: "− ", gained: "+ " }[transition] ?? "";
  return make(
    "span",
    { class: `badge${kind}` },
    sign + TRANSITIONS[transition] + (cause ? `: ${brief(cause, 20)}` : ""),
  );
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
