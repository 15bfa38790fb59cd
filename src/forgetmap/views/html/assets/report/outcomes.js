// What became of an item, in words; and copying it.

const TRANSITIONS = {
  forgotten: "forgotten",
  gained: "gained",
  retained: "still right",
  never: "still wrong",
};
const NO_CAUSE = "not classified";

function rightness(share) {
  if (share === 1 || share === 0) return share ? "right" : "wrong";
  return `right in ${percent(share)} of runs`;
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    const area = make("textarea", { "aria-hidden": "true" });
    area.value = text; // where the clipboard is closed to pages, the old way
    document.body.append(area);
    area.select();
    say(
      document.execCommand("copy") ? `${what} copied` : "the browser does not let this page copy",
    );
    area.remove();
  }
}
