/* SHOW: a stretch of a histogram, chosen by dragging across its bars, becomes the window of the page. */
let first, last, mark;
const barOf = (event) => event.target.closest("[data-brush] a");
const inOrder = (key) => [first, last].sort((a, b) => (key(a) < key(b) ? -1 : 1));

addEventListener("pointerdown", (event) => {
  first = last = event.button ? undefined : barOf(event);
  if (first) event.preventDefault();
});
addEventListener("pointermove", (event) => {
  const bar = first && barOf(event);
  if (!bar || bar === last) return;
  last = bar;
  mark ??= document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const [from, to] = inOrder((each) => +each.dataset.x).map((each) => +each.dataset.x);
  for (const [name, value] of Object.entries({ class: "chosen", x: from, width: to - from + 1, height: 100 })) mark.setAttribute(name, value);
  bar.ownerSVGElement.append(mark);
});
addEventListener("pointerup", () => {
  if (first && first !== last) {
    const [from, to] = inOrder((each) => +each.dataset.x);
    const url = new URL(location);
    for (const name of ["last", "before"]) url.searchParams.delete(name);
    url.searchParams.set("from", from.dataset.start);
    url.searchParams.set("to", to.dataset.end);
    location.assign(url);
  }
  first = undefined;
});
addEventListener("dragstart", (event) => barOf(event) && event.preventDefault());
