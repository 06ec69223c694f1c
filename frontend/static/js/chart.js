/* SHOW: draws <figure data-chart="id-of-json"> with uPlot; the JSON is {x: [unix seconds], series: [{label, values, unit}]}. */
import uPlot from "../vendor/uplot.js";

const drawn = new Map();
const COLOURS = ["--accent", "--warn", "--bad", "--good"];
const colour = (name) => {
  // light-dark() is resolved by the browser only where it is used, so a probe asks for the computed value.
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

function options(box, data) {
  const ink = colour("--ink-2");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid, font: "11px Inter, sans-serif" };
  const unit = data.series[0]?.unit ?? "";
  const value = (series) => (_, number) => (number == null ? "–" : `${number.toLocaleString()} ${series.unit ?? ""}`);
  return {
    width: box.clientWidth, height: 200, cursor: { points: { size: 6 } },
    axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => `${tick.toLocaleString()} ${unit}`.trim()) }],
    scales: { y: { range: (_, low, high) => [Math.min(0, low), high || 1] } },
    series: [{}, ...data.series.map((series, at) => {
      const stroke = colour(COLOURS[at % COLOURS.length]);
      return { label: series.label, stroke, width: 1.5, fill: at ? undefined : stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.08)"), value: value(series), spanGaps: false };
    })],
  };
}

export function draw() {
  for (const [box, chart] of drawn) if (!box.isConnected) (chart.plot.destroy(), drawn.delete(box));
  for (const box of document.querySelectorAll("[data-chart]")) {
    const source = document.getElementById(box.dataset.chart);
    const old = drawn.get(box);
    if (!source || old?.text === source.textContent) continue;
    const data = JSON.parse(source.textContent);
    const columns = [data.x, ...data.series.map((series) => series.values)];
    if (old && old.labels === String(data.series.map((series) => series.label))) old.plot.setData(columns);
    else {
      old?.plot.destroy();
      drawn.set(box, { plot: new uPlot(options(box, data), columns, box) });
    }
    Object.assign(drawn.get(box), { text: source.textContent, labels: String(data.series.map((series) => series.label)) });
  }
}

new ResizeObserver(() => {
  for (const [box, { plot }] of drawn) plot.setSize({ width: box.clientWidth, height: 200 });
}).observe(document.getElementById("main"));
document.addEventListener("spillway:theme", () => {
  for (const [box, { plot }] of drawn) (plot.destroy(), drawn.delete(box));
  draw();
});
