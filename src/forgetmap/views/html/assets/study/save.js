// Save a chart with its caption, as SVG or PNG.

const CAPTION = { size: 13, line: 19, pad: 16 };
const MOST_PIXELS = 12_000; // a side of a PNG; more is refused by browsers

function setUpSaving(name, picture) {
  const button = (kind) =>
    make(
      "button",
      {
        class: "quiet",
        type: "button",
        "data-kind": kind,
        "aria-label": `Save this chart as ${kind.toUpperCase()}`,
        onclick: () =>
          save(name, kind, picture).catch((error) => say(`It cannot be saved: ${error.message}`)),
      },
      kind.toUpperCase(),
    );
  byId(`${name}-figure`).append(
    make("div", { class: "save" }, "Save as ", button("svg"), button("png")),
  );
}

// The picture of a chart that plotly drew.
async function plotlyPicture(name) {
  const target = byId(`${name}-chart`);
  const { width, height } = target.getBoundingClientRect();
  const address = await plotly.toImage(target, { format: "svg", width, height });
  // It stays text: as elements, its inline styles would breach the policy.
  return { inner: decodeURIComponent(address.slice(address.indexOf(",") + 1)), width, height };
}

async function save(name, kind, picture) {
  const { text, width, height } = captioned(
    await picture(name),
    byId(`${name}-caption`).textContent,
  );
  const file = `forgetmap-${name}.${kind}`;
  if (kind === "svg") download(file, text, "image/svg+xml");
  else download(file, await pixels(text, width, height), "image/png");
  say(`${file} saved`);
}

// The picture above its caption, on paper of the colour that the page has.
function captioned({ inner, width, height }, caption) {
  const lines = wrapped(caption, width - 2 * CAPTION.pad);
  const full = height + CAPTION.pad * 2 + CAPTION.line * lines.length;
  const frame = shape(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height: full, viewBox: `0 0 ${width} ${full}` },
    shape("title", {}, caption.slice(0, 200)),
    shape("rect", { width, height: full, fill: colour("paper") }),
    ...lines.map((line, index) =>
      shape(
        "text",
        {
          x: CAPTION.pad,
          y: height + CAPTION.pad + CAPTION.line * (index + 0.8),
          fill: colour("soft"),
          "font-size": CAPTION.size,
          "font-family": getComputedStyle(document.body).fontFamily,
        },
        line,
      ),
    ),
  );
  const text = textOf(frame).replace(/<\/svg>$/, () => `${inner}</svg>`);
  return { text, width, height: full };
}

const textOf = (element) => new XMLSerializer().serializeToString(element);

function wrapped(text, room) {
  const lines = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (line && textWidth(longer, CAPTION.size) > room) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line ? [...lines, line] : lines;
}

async function pixels(text, width, height) {
  const scale = Math.min(2, MOST_PIXELS / Math.max(width, height));
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const canvas = make("canvas", {
    width: Math.round(width * scale),
    height: Math.round(height * scale),
  });
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(picture, 0, 0, width, height);
  return new Promise((done, fail) => {
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("it is too large"))), "image/png");
  });
}
