/* SHOW: a stretch of a histogram, dragged or chosen by keys, becomes the window of the page. */
let first, last, dragging, mark;
const barOf = (event) => event.target.closest?.("[data-brush] a");
const barsOf = (bar) => [...bar.ownerSVGElement.querySelectorAll("a")];
const chosen = () => first?.isConnected && last?.isConnected && first !== last;
const ends = () => (+first.dataset.x < +last.dataset.x ? [first, last] : [last, first]);

function choose(from, to) {
  [first, last] = [from, to];
  mark ??= document.createElementNS("http://www.w3.org/2000/svg", "rect");
  if (!chosen()) return mark.remove();
  const [x, end] = ends().map((each) => +each.dataset.x);
  for (const [name, value] of Object.entries({ class: "chosen", x, width: end - x + 1, height: 100 })) mark.setAttribute(name, value);
  last.ownerSVGElement.append(mark);
}

function apply() {
  const [from, to] = ends();
  const url = new URL(location);
  const query = url.searchParams;
  for (const name of ["last", "before"]) query.delete(name);
  query.set("from", from.dataset.start);
  query.set("to", to.dataset.end);
  location.assign(url);
}

function say() {
  const said = document.querySelector("[data-brush-says]");
  if (!chosen()) return (said.textContent = "");
  const [from, to] = ends();
  const bars = barsOf(from).slice(+from.dataset.x, +to.dataset.x + 1);
  const sum = (name) => bars.reduce((all, bar) => all + +bar.dataset[name], 0);
  const total = sum("total");
  said.textContent = `${from.dataset.start.slice(11, 19)} to ${to.dataset.end.slice(11, 19)} UTC: ${total} request${total - 1 ? "s" : ""}, ${sum("failed")} with 5xx.`;
}

addEventListener("pointerdown", (event) => {
  const bar = event.button ? undefined : barOf(event);
  dragging = Boolean(bar);
  choose(bar, bar);
  if (bar) event.preventDefault();
});
addEventListener("pointermove", (event) => {
  const bar = dragging && barOf(event);
  if (bar && bar !== last) choose(first, bar);
});
addEventListener("pointerup", () => {
  if (dragging && chosen()) apply();
  dragging = false;
});
addEventListener("dragstart", (event) => barOf(event) && event.preventDefault());

addEventListener("focusin", (event) => {
  const bar = barOf(event);
  if (bar) for (const each of barsOf(bar)) each.tabIndex = each === bar ? 0 : -1;
});
addEventListener("keydown", (event) => {
  const bar = barOf(event);
  if (!bar) return;
  const bars = barsOf(bar);
  const at = +bar.dataset.x;
  const to = bars[{ ArrowLeft: Math.max(0, at - 1), ArrowRight: at + 1, Home: 0, End: bars.length - 1 }[event.key]];
  if (to) {
    event.shiftKey ? choose(first ?? bar, to) : choose();
    to.focus();
  } else if (event.key === "Enter" && chosen()) apply();
  else if (event.key === "Escape") chosen() ? choose() : bar.blur();
  else return;
  event.preventDefault();
  say();
});
addEventListener("htmx:after:swap", () => first && choose(first, last));
