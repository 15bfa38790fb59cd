// Small things that every page uses. Text from logs reaches a page only as text nodes.

const byId = (id) => document.getElementById(id);

// An element with properties and children; strings become text, never markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const tile = (what, much, more, kind = "") =>
  make(
    "div",
    { class: "tile" },
    make("div", { class: "what" }, what),
    make("div", { class: `much ${kind}` }, much),
    make("div", { class: "more" }, unbroken(more)),
  );

// Characters that would hide, turn around or break text are shown by their number instead.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
function visible(text) {
  return String(text).replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A name or value on one line, not endless.
function brief(text, most = 60) {
  const line = visible(String(text).slice(0, 4 * most)).replace(/\s+/g, " ");
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

const whole = (number) => Math.round(number).toLocaleString("en-US");
// As Python rounds, so that a page and a terminal say the same: a tie goes to the even digit.
function rounded(number, digits) {
  const away = number.toFixed(digits);
  const isTie = /^50*$/.test(number.toFixed(digits + 25).slice(-25));
  if (!isTie || Number(away.at(-1)) % 2 === 0) return away;
  return (Number(away) - Math.sign(number) * 10 ** -digits).toFixed(digits);
}
function points(share, digits = 1) {
  const text = rounded(100 * share, digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}
const percent = (share, digits = 1) => `${points(share, digits)}\u00a0%`;
// No line break between a number and its %, nor inside of "2.0 to 4.0".
// What is not text, such as an element of a page, stays as it is.
const unbroken = (text) =>
  typeof text !== "string"
    ? text
    : text.replace(/(?<=\d) (?=%)|(?<=\d) (?:to|→) (?=\d)/g, (gap) => gap.replaceAll(" ", "\u00a0"));

const narrow = () => document.documentElement.clientWidth < 800;
const PAPER_WIDTH = 680; // A4 and Letter, with usual margins

// Unpack base64 of gzip.
async function unpack(element) {
  const binary = atob(element.textContent);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// --- light and dark ----------------------------------------------------------------------------

let drawAll = () => {}; // each page says how it draws its charts
let printing = false;
let colours = new Map(); // by name of a token, as it looks now

// The colour that a token of the style sheet has now.
function colour(name, alpha = 1) {
  if (!colours.has(name)) {
    const probe = document.body.appendChild(make("i"));
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color.match(/\d+/g).join(", "));
    probe.remove();
  }
  return `rgba(${colours.get(name)}, ${alpha})`;
}

function setTheme(theme) {
  const other = theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = other === "dark" ? "Dark" : "Light";
  byId("theme").setAttribute("aria-label", `Switch to ${other} colours`);
  colours = new Map();
  drawAll();
}

function setUpTheme() {
  const wanted = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTheme(wanted.matches ? "dark" : "light");
  follow();
  wanted.addEventListener("change", follow);
  byId("theme").addEventListener("click", () =>
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
  );
  let usual = null;
  const print = (begins) => () => {
    printing = begins;
    if (begins) usual = document.documentElement.dataset.theme;
    setTheme(begins ? "light" : usual); // dark paper wastes ink
  };
  window.addEventListener("beforeprint", print(true));
  window.addEventListener("afterprint", print(false));
}
