// Put the page together: the headline and the map first, then the rest, part by part.

const PARTS = [
  ["filters", showFilters],
  [
    "map",
    () => {
      showHeatChoices();
      drawHeat();
    },
  ],
  ["compare", drawCompare],
  ["trade", drawTrade],
  ["scale", drawScale],
  ["board", drawBoard],
  ["items", drawItems],
  ["drift", drawDrift],
  ["life", drawLife],
];
let waiting = []; // parts that are still to be drawn
let timer = 0;
let turn = 0;

// Until the browser has shown what was drawn.
const painted = () =>
  new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

function isOnScreen(id) {
  const frame = byId(id)?.getBoundingClientRect();
  return Boolean(frame) && frame.bottom > -100 && frame.top < window.innerHeight + 100;
}

// Draw what is on screen at once, the rest when there is time.
function drawPage() {
  if (!study) return;
  clearTimeout(timer);
  delete document.documentElement.dataset.ready;
  const now = ([id]) => printing || id === "filters" || id === "life" || isOnScreen(id);
  const first = PARTS.filter(now); // asked once, before drawing moves anything
  waiting = PARTS.filter((part) => !first.includes(part) && byId(part[0]));
  for (const part of first) part[1]();
  turn += 1;
  const mine = turn;
  painted().then(() => {
    if (mine === turn) timer = setTimeout(drawWaiting, 0); // what was asked for is seen first
  });
}

function drawWaiting() {
  const part = waiting.shift();
  part?.[1]();
  if (waiting.length) timer = setTimeout(drawWaiting, 0);
  else if (plotly) document.documentElement.dataset.ready = "true";
}

drawAll = drawPage;

function showTiles() {
  const ordered = inOrder(pairs, "lost");
  const [most, least] = [ordered[0], ordered.at(-1)];
  const gained = inOrder(pairs, "gained")[0];
  const { claims } = study.answers;
  const told = claims.filter(({ claimed }) => claimed);
  const named = (pair, key, word) =>
    tile(
      word,
      signed(key === "lost" ? LOST : GAINED, pair.old[key]) + " %",
      pairLink(pair, 60),
      key === "lost" ? "lost" : "won",
    );
  byId("tiles").append(
    named(least, "lost", "Least lost"),
    named(most, "lost", "Most lost"),
    named(gained, "gained", "Most gained"),
    tile(
      "Can be claimed",
      claims.length ? `${told.length} of ${claims.length}` : NOT_KNOWN,
      told.length
        ? `first: ${brief(told[0].text, 110)}`
        : claims.length
          ? "statements; all may be chance"
          : "no statements could be made",
    ),
  );
}

function showNotes() {
  const { settings, warnings } = study;
  const facts = [
    ["margin that would matter", percent(study.margin)],
    ["task map", settings.task_map === null ? "none" : brief(settings.task_map, 80)],
    ["items paired by", brief(settings.identity, 40)],
    ["runs without noise, as you said", settings.deterministic ? "yes" : "no"],
    ["draws, seed", `${whole(settings.draws)}, ${settings.seed}`],
    ["pages of pairs", `${pairs.filter(({ page }) => page).length} of ${pairs.length}`],
  ];
  const texts = [
    "Lost is the mean of max(p − q, 0) over items, gained the mean of max(q − p, 0); p and q are an item's chance of a right answer before and after. Gained less lost is the change of accuracy, so no gain can hide a loss.",
    study.source
      ? `These numbers were published by ${brief(study.source, 120)}. There are no items behind them here, so there are no intervals, tests, verdicts or items.`
      : "Intervals of pairs are 95 %, over items. Verdicts of pairs and categories are corrected over all pairs by Holm, those of tasks over all tasks of all pairs by Benjamini and Hochberg. The page of a pair judges that pair alone, so its verdicts can be bolder.",
    "Pairs, rows and columns that are alike stand together: hierarchical clustering of what was lost and gained, by average linkage.",
    "All that you choose is in the address of this page: copy it to show others the same.",
  ];
  byId("notes-content").append(
    ...texts.map((text) => make("p", {}, text)),
    textTable("Settings", ["setting", "value"], facts, [0, 1]),
    ...(Object.keys(study.marks).length
      ? [
          make("h3", {}, "Marks"),
          textTable(
            "Marks",
            ["mark", "meaning"],
            Object.entries(study.marks).map(([mark, text]) => [brief(mark, 20), brief(text, 400)]),
            [0, 1],
          ),
        ]
      : []),
    ...(warnings.length
      ? [
          make("h3", {}, "Notes on the data"),
          make("ul", {}, ...warnings.map((text) => make("li", {}, brief(text, 400)))),
        ]
      : []),
  );
}

async function start() {
  await openStudy();
  setUpAddress();
  showTiles();
  setUpFilters();
  setUpHeat();
  setUpCompare();
  setUpTrade();
  setUpScale();
  setUpBoard();
  setUpFindings();
  setUpItems();
  setUpDrift();
  showNotes();
  setUpTheme(); // draws the page
  await painted();
  document.documentElement.dataset.seen = String(Math.round(performance.now())); // ms, for tests
  await loadPlotly();
  drawPage();
  if (section) goTo(section);
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (width === document.documentElement.clientWidth || printing) return;
    width = document.documentElement.clientWidth;
    drawPage();
  });
}

start().catch((error) => {
  byId("sentence").after(
    make(
      "p",
      { class: "notice", role: "alert" },
      `Part of this page could not be shown: ${error.message}. A current browser may help.`,
    ),
  );
});
