/* SHOW: draws <figure data-chart="id of JSON {x: [unix s], series: [{label, values, unit, dashed, tone, area, field}], marks}"> with uPlot. */
import uPlot from "../vendor/uplot.js";

const HEIGHT = 200;
const drawn = new Map();
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const both = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const NEAR = 6; // pixels from a mark at which it says what it is

// Only the computed colour of an element resolves var() and light-dark().
const probe = document.createElement("i");
const colour = (name) => {
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

// What happened: a line where it began, a tint for as long as it lasted.
function drawMarks(plot) {
  const { ctx, bbox, scales, marks = [] } = plot;
  const { min, max } = scales.x;
  ctx.save();
  for (const { at, until, tone } of marks) {
    if (at > max || (until ?? max) < min) continue;
    const left = plot.valToPos(Math.max(at, min), "x", true);
    ctx.fillStyle = ctx.strokeStyle = colour(tone || "ink-2");
    if (until !== undefined) {
      ctx.globalAlpha = 0.12;
      ctx.fillRect(left, bbox.top, plot.valToPos(Math.min(until ?? max, max), "x", true) - left, bbox.height);
    }
    if (at < min) continue;
    ctx.globalAlpha = 0.7;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// Where one takes hold of a limit.
function drawHandle(plot) {
  const { ctx, bbox, handle } = plot;
  if (!handle) return;
  ctx.save();
  ctx.fillStyle = colour("accent");
  ctx.beginPath();
  ctx.arc(bbox.left + 8 * devicePixelRatio, plot.valToPos(plot.data[handle][0], "y", true), 5 * devicePixelRatio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.restore();
}

function nameMark(box, plot) {
  const at = plot.cursor.left;
  if (plot.select.width || !box.matches(":hover")) return;
  const near = (plot.marks ?? []).filter((mark) => Math.abs(plot.valToPos(mark.at, "x") - at) <= NEAR);
  box.nextElementSibling.textContent = near.map(({ text }) => text).join("; ");
}

// With nothing under the pointer the legend says the newest moment of which something is known.
function sayNewest(plot) {
  if (plot.cursor.idx != null) return;
  const known = plot.data.slice(1).map((values) => values.findLastIndex((value) => value != null));
  plot.setLegend({ idx: Math.max(...known) });
}

// A dragged stretch leads to the requests of its time.
function offerRequests(box, plot) {
  const { left, width } = plot.select;
  if (!width) return;
  const ends = [left, left + width].map((place) => new Date(plot.posToVal(place, "x") * 1000));
  const url = new URL(box.dataset.requests, location);
  ["from", "to"].forEach((name, at) => url.searchParams.set(name, ends[at].toISOString().slice(0, -1)));
  const link = document.createElement("a");
  link.href = url;
  link.textContent = `Show requests from ${ends.map(both.format).join(" to ")}`;
  box.nextElementSibling.replaceChildren(link);
}

// Areas lie on each other: each is drawn as the sum of those up to it, and says its own number.
function stacked(series) {
  let below;
  return series.map(({ values, area }) => {
    if (!area) return values;
    below = below ? values.map((value, at) => (value == null ? null : below[at] + value)) : values;
    return below;
  });
}

// A limit is dragged by way of its field, whose form asks what would be; a click goes to its moment.
function follow(box, plot, fields) {
  plot.handle = fields.findIndex(Boolean) + 1; // 0 where no limit can be dragged
  const field = () => document.getElementById(fields[plot.handle - 1]);
  const near = ({ offsetY }) => plot.handle && Math.abs(plot.valToPos(plot.data[plot.handle][0], "y") - offsetY) <= NEAR;
  let dragged;
  plot.over.addEventListener("pointerdown", (event) => {
    plot.held = dragged = event.pointerType !== "touch" && near(event);
    if (plot.held) plot.over.setPointerCapture(event.pointerId);
  });
  plot.over.addEventListener("pointermove", (event) => {
    plot.over.style.cursor = plot.held || near(event) ? "ns-resize" : "";
    if (!plot.held) return;
    const value = Math.max(0, Math.round(plot.posToVal(event.offsetY, "y")));
    if (+field().value === value) return;
    plot.setData(plot.data.map((values, at) => (at === plot.handle ? values.map(() => value) : values)), false);
    plot.redraw();
    field().value = value;
    field().dispatchEvent(new Event("input", { bubbles: true }));
  });
  for (const end of ["pointerup", "pointercancel"]) plot.over.addEventListener(end, () => (plot.held = false));
  plot.over.addEventListener("click", () => {
    const slider = document.getElementById(box.dataset.seeks);
    if (!slider || dragged || plot.cursor.idx == null) return;
    slider.value = plot.data[0][plot.cursor.idx];
    slider.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

const spanOf = ({ x }) => (x.at(-1) - x[0] > 172800 ? "days" : "hours");

function options(box, { x, series }) {
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: colour("ink-2"), grid, ticks: grid, font: "11px Inter, sans-serif" };
  const long = spanOf({ x }) === "days";
  const times = long ? day : clock;
  const say = (unit = "") => (number) => (number == null ? "–" : `${number.toLocaleString()} ${unit}`.trim());
  const lines = series.map(({ label, unit, dashed, tone, area }, at) => {
    const stroke = colour(tone ?? (dashed ? "ink-2" : ["accent", "warn", "bad", "good"][at % 4]));
    const value = (plot, _, column, row) => say(unit)(row == null ? null : plot.told[column - 1][row]);
    return { label, stroke, fill: area && stroke, width: area ? 0 : 1.5, dash: dashed && [6, 4], points: { show: area ? false : undefined }, value };
  });
  const areas = series.flatMap(({ area }, at) => (area ? [at + 1] : []));
  return {
    width: box.clientWidth, height: HEIGHT,
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => times.format(tick * 1000)) },
      { ...axis, size: 72, values: (_, ticks) => ticks.map(say(series[0]?.unit)) },
    ],
    // The crosshair is shared by all charts of a page, a dragged stretch is not.
    cursor: { sync: { key: "page", filters: { pub: (type) => ["mousemove", "mouseleave"].includes(type) } }, drag: { x: "requests" in box.dataset, y: false, setScale: false } },
    hooks: {
      draw: [drawMarks, drawHandle],
      setCursor: [(plot) => nameMark(box, plot), sayNewest],
      setSelect: [(plot) => offerRequests(box, plot)],
    },
    scales: { y: { range: (_, low, high) => [Math.min(0, low), high * 1.1 || 1] } },
    bands: areas.slice(1).map((at, before) => ({ series: [at, areas[before]] })),
    series: [{ value: (_, at) => (at == null ? "–" : (long ? both : clock).format(at * 1000)) }, ...lines],
  };
}

export function draw() {
  for (const [box, { plot }] of drawn) if (!box.isConnected) (plot.destroy(), drawn.delete(box));
  for (const box of document.querySelectorAll("[data-chart]")) {
    const text = document.getElementById(box.dataset.chart)?.textContent;
    const old = drawn.get(box);
    if (!text || old?.text === text) continue;
    const data = JSON.parse(text);
    const columns = [data.x, ...stacked(data.series)];
    const labels = String([spanOf(data), ...data.series.map(({ label }) => label)]); // with either the axes change
    let plot = old?.plot;
    if (old?.labels !== labels) {
      plot?.destroy();
      plot = new uPlot(options(box, data), undefined, box);
      follow(box, plot, data.series.map(({ field }) => field));
    }
    plot.marks = data.marks;
    plot.told = data.series.map(({ values }) => values);
    if (plot.held) columns[plot.handle] = plot.data[plot.handle]; // the answer is of where the limit was a moment ago
    plot.setData(columns);
    sayNewest(plot);
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
for (const asked of ["(prefers-color-scheme: dark)", "print"]) matchMedia(asked).addEventListener("change", redraw);
