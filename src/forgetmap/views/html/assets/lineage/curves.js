// Curves over a number that checkpoints carry: old knowledge kept, new knowledge gained.

function drawCurves() {
  lineage.curves.forEach(({ number: word, points: marks }, place) => {
    const estimate = (found) => found && { value: found[0], low: found[1], high: found[2] };
    const line = (kind, index, what) => ({
      kind,
      estimates: marks.map((mark) => estimate(mark[index])),
      notes: marks.map(
        (mark) =>
          `${nameAt(mark[0])}: ${what} ${mark[index] ? percent(mark[index][0]) : "not known"}`,
      ),
    });
    const xs = marks.map(([, dose]) => dose);
    byId(`dose-chart-${place + 1}`).replaceChildren(
      smallChart(`Kept and gained over ${word.replaceAll("_", " ")}; the table says the same`, {
        xs,
        xTicks: numberTicks(xs),
        yTicks: [0, 0.25, 0.5, 0.75, 1].map((tick) => [tick, tickText(tick)]),
        lines: [line("kept", 2, "kept"), line("won", 3, "gained")],
        size: { ...CHART, width: 460, height: 200, bottom: 26 },
      }),
    );
  });
}
