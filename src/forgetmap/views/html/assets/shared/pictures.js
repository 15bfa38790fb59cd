// Pictures made by hand, as SVG.

function shape(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 13, weight = 400) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// A text on one line, cut in the middle so that it fits: names often differ at their ends.
function fitted(text, room, size = 13, weight = 400) {
  const line = brief(text, 160);
  if (textWidth(line, size, weight) <= room) return line;
  const cut = (kept) =>
    `${line.slice(0, Math.ceil(kept / 2))}…${line.slice(line.length - Math.floor(kept / 2))}`;
  let [low, high] = [0, line.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(cut(middle), size, weight) <= room) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

// How deep the colour of a share is in a heat map; `steps` are the shares at which it deepens.
function depthOf(share, steps) {
  let depth = 0;
  while (depth < steps.length && share >= steps[depth]) depth += 1;
  return depth;
}

// The colour that a heat map of the style sheet has at a depth.
function heatColour(hue, depth) {
  const name = `${hue} depth-${depth}`;
  if (!colours.has(name)) {
    const probe = document.body.appendChild(make("i", { class: name }));
    colours.set(name, getComputedStyle(probe).backgroundColor);
    probe.remove();
  }
  return colours.get(name);
}
