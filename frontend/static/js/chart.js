/* SHOW: draws <figure data-chart="id of JSON {x: [unix s], series: [{label, values, unit}]}"> with uPlot. */
import uPlot from "../vendor/uplot.js";

const HEIGHT = 200;
const drawn = new Map();
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

// Only the computed colour of an element resolves var() and light-dark().
const probe = document.createElement("i");
const colour = (name) => {
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

function options(box, { x, series }) {
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: colour("ink-2"), grid, ticks: grid, font: "11px Inter, sans-serif" };
  const times = x.at(-1) - x[0] > 172800 ? day : clock;
  const say = (unit = "") => (number) => (number == null ? "–" : `${number.toLocaleString()} ${unit}`.trim());
  const lines = series.map(({ label, unit }, at) => {
    const stroke = colour(["accent", "warn", "bad", "good"][at % 4]);
    return { label, stroke, width: 1.5, value: (_, number) => say(unit)(number) };
  });
  return {
    width: box.clientWidth, height: HEIGHT,
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => times.format(tick * 1000)) },
      { ...axis, size: 72, values: (_, ticks) => ticks.map(say(series[0]?.unit)) },
    ],
    scales: { y: { range: (_, low, high) => [Math.min(0, low), high * 1.1 || 1] } },
    series: [{ value: (_, at) => (at == null ? "–" : clock.format(at * 1000)) }, ...lines],
  };
}

export function draw() {
  for (const [box, { plot }] of drawn) if (!box.isConnected) (plot.destroy(), drawn.delete(box));
  for (const box of document.querySelectorAll("[data-chart]")) {
    const text = document.getElementById(box.dataset.chart)?.textContent;
    const old = drawn.get(box);
    if (!text || old?.text === text) continue;
    const data = JSON.parse(text);
    const columns = [data.x, ...data.series.map(({ values }) => values)];
    const labels = String(data.series.map(({ label }) => label));
    let plot = old?.plot;
    if (old?.labels === labels) plot.setData(columns);
    else {
      plot?.destroy();
      plot = new uPlot(options(box, data), columns, box);
    }
    drawn.set(box, { plot, text, labels });
  }
}

new ResizeObserver(() => {
  for (const [box, { plot }] of drawn) plot.setSize({ width: box.clientWidth, height: HEIGHT });
}).observe(document.getElementById("main"));
const redraw = () => {
  for (const { plot } of drawn.values()) plot.destroy();
  drawn.clear();
  draw();
};
addEventListener("theme", redraw);
matchMedia("(prefers-color-scheme: dark)").onchange = redraw;
