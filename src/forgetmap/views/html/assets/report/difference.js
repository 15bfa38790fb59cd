// Word by word difference of two texts.

const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
const MOST_CELLS = 4e6; // beyond this the table of the comparison would take too long

// Returns [before, after]: lists of [text, changed].
function difference(before, after) {
  const one = before.match(WORDS) ?? [];
  const two = after.match(WORDS) ?? [];
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (
    end < one.length - start &&
    end < two.length - start &&
    one.at(-1 - end) === two.at(-1 - end)
  )
    end += 1;
  const middles = [one.slice(start, one.length - end), two.slice(start, two.length - end)];
  const kept = commonWords(...middles);
  return [one, two].map((words, side) => {
    const parts = [];
    const add = (text, changed) => {
      if (parts.length && parts.at(-1)[1] === changed) parts.at(-1)[0] += text;
      else if (text) parts.push([text, changed]);
    };
    add(words.slice(0, start).join(""), false);
    middles[side].forEach((word, index) => add(word, !kept[side].has(index)));
    add(words.slice(words.length - end).join(""), false);
    return parts;
  });
}

// Places of a longest common subsequence, as one set per side; none where the texts are too long.
function commonWords(one, two) {
  const places = [new Set(), new Set()];
  if (one.length * two.length > MOST_CELLS) return places;
  const width = two.length + 1;
  const best = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = two.length - 1; j >= 0; j -= 1) {
      best[i * width + j] =
        one[i] === two[j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < one.length && j < two.length) {
    if (one[i] === two[j]) {
      places[0].add(i);
      places[1].add(j);
      i += 1;
      j += 1;
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return places;
}

// Two texts as <pre>, what only one of them has marked in it. `kinds` says of each side whether it
// is right or wrong: the marks have the colours of what was gained and lost, and a sign.
function compared(before, after, kinds = ["other", "other"]) {
  if (before === null || after === null || before === after) {
    return [before, after].map((text) =>
      make(
        "pre",
        { class: text === null ? "none" : "", tabindex: "0" },
        text === null ? "" : visible(text),
      ),
    );
  }
  return difference(before, after).map((parts, side) =>
    make(
      "pre",
      { tabindex: "0" },
      ...parts.map(([text, changed]) =>
        changed ? make("mark", { class: kinds[side] }, visible(text)) : visible(text),
      ),
    ),
  );
}
