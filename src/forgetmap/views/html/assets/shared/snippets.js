// A prompt in one line.

const SNIPPET = 160;

// The end of a prompt, where the question stands; it does not begin in the middle of a word.
function endOf(prompt) {
  const text = (prompt ?? "").trimEnd();
  return text.length <= SNIPPET ? text : `… ${text.slice(-SNIPPET).replace(/^\S*\s+/, "")}`;
}

// A question without the words that ask for its answer.
const withoutCue = (snippet) => snippet.replace(/\s*\b(?:answer|a):\s*$/i, "") || snippet;
