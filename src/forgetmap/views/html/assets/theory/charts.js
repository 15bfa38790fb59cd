// Line charts in SVG. Colours come from the style sheet, so that light and dark need no redrawing.

const HEIGHT = 270;
const MARGIN = { left: 52, right: 20, top: 12, bottom: 40 };
const svgSpace = "http://www.w3.org/2000/svg";

function draw(tag, properties, text) {
  const element = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function short(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 0.001 && size < 10000) return String(Number(number.toPrecision(3)));
  const [digits, power] = number.toExponential(0).split("e");
  const raised = String(Number(power)).replace(
    /./g,
    (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)],
  );
  return digits === "1" ? `10${raised}` : `${digits}·10${raised}`;
}

function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

// An axis maps its range to 0..1 and names its ticks.
function axis({ low, high, log = false, ticks = null }) {
  const [from, to] = log ? [Math.log(low), Math.log(high)] : [low, high];
  const place = (value) => {
    const at = log ? Math.log(Math.max(value, 1e-12)) : value;
    return (at - from) / (to - from);
  };
  return { place, ticks: ticks ?? (log ? decades(low, high) : even(low, high)) };
}

function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const skip = Math.ceil((last - first + 1) / 7);
  const found = [];
  for (let power = last; power >= first; power -= skip) found.push(10 ** power);
  return found;
}

function even(low, high) {
  const rough = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((factor) => unit * factor >= rough);
  const found = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step / 1e6; tick += step)
    found.push(Math.abs(tick) < step / 1e6 ? 0 : tick);
  return found;
}

// Widths are taken before anything is drawn: asking between drawings would lay the page out anew.
const widths = new Map();
function measureCharts() {
  for (const svg of document.querySelectorAll("figure > svg"))
    widths.set(svg, Math.max(svg.getBoundingClientRect().width, 240));
}

// Draw lines [{name, xs, ys}], areas (the same, filled), dots [{name, x, y}] and markers (vertical
// lines at x) into an SVG element. `name` is a class: the style sheet gives colour and dashes.
function chart(svg, { x, y, lines = [], areas = [], dots = [], markers = [], said }) {
  const width = widths.get(svg);
  const inside = width - MARGIN.left - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const [across, up] = [axis(x), axis(y)];
  const toX = (value) => MARGIN.left + across.place(value) * inside;
  const toY = (value) => bottom - up.place(value) * (bottom - MARGIN.top);
  const path = ({ xs, ys }) =>
    xs.map((v, i) => `${i ? "L" : "M"}${toX(v).toFixed(1)} ${toY(ys[i]).toFixed(1)}`).join("");
  const line = (name, x1, x2, y1, y2) => draw("line", { class: name, x1, x2, y1, y2 });
  const text = (name, at, y, anchor, words) =>
    draw("text", { class: name, x: at, y, "text-anchor": anchor }, words);
  const end = width - MARGIN.right;

  // What leaves the range is cut off at the edge of an inner SVG with the same coordinates.
  const box = { x: MARGIN.left, y: MARGIN.top, width: inside, height: bottom - MARGIN.top };
  const view = `${box.x} ${box.y} ${box.width} ${box.height}`;
  const plot = draw("svg", { ...box, viewBox: view });
  for (const area of areas) {
    const close = `L${toX(area.xs.at(-1)).toFixed(1)} ${bottom}L${toX(area.xs[0]).toFixed(1)} ${bottom}Z`;
    plot.append(draw("path", { class: `area ${area.name}`, d: path(area) + close }));
  }
  for (const one of lines) plot.append(draw("path", { class: `line ${one.name}`, d: path(one) }));

  const near = (value, low, high) => Math.min(Math.max(value, low), high);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("aria-label", said);
  svg.replaceChildren(
    ...up.ticks.map((tick) => line("grid", MARGIN.left, end, toY(tick), toY(tick))),
    ...up.ticks.map((tick) => text("tick", MARGIN.left - 7, toY(tick) + 4, "end", short(tick))),
    ...across.ticks.map((tick) => text("tick", toX(tick), bottom + 17, "middle", short(tick))),
    line("base", MARGIN.left, end, bottom, bottom),
    text("name", end, HEIGHT - 5, "end", x.name),
    ...markers.map((value) => line("marker", toX(value), toX(value), MARGIN.top, bottom)),
    plot,
    ...dots.map((dot) =>
      draw("circle", {
        class: `dot ${dot.name}`,
        cx: near(toX(dot.x), MARGIN.left, end),
        cy: near(toY(dot.y), MARGIN.top, bottom),
        r: 4.5,
      }),
    ),
  );
}
