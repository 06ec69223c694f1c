/* SHOW: tables: sort one that is complete, choose columns, take the rows away as CSV. */
const MOST_PAGES = 200;
const PLACES = ["cursor", "after", "before", "partial"];
const NOTHING = /^(–|none|never|unknown|)$/;
const sorts = {}; // by the name of the table: [column, 1 or -1]
const unfolded = new Set(); // names of tables
const sheet = new CSSStyleSheet();
const make = (tag, given) => Object.assign(document.createElement(tag), { type: "button" }, given);
const menu = make("div", { id: "table-menu", className: "popmenu", popover: "auto" });
document.adoptedStyleSheets = [sheet];
document.querySelector(".shell main").append(menu);

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const rowsOf = (box) => all("tbody tr", box);
const headsOf = (box) => all("thead th", box).map((head) => (head.querySelector(".sr") ? "" : text(head)));
const tables = () => all("main .table-box").filter((box) => rowsOf(box).length > 1 && headsOf(box).length > 2);
const hidden = (box) => JSON.parse(localStorage.getItem(`columns:${box.ariaLabel}`) ?? "[]");
const say = (detail) => dispatchEvent(new CustomEvent("spillway:say", { detail }));

// What a reader sees in a cell; moments as they are exactly.
function text(cell) {
  const copy = cell.cloneNode(true);
  all("dialog, form", copy).forEach((each) => each.remove());
  all("br, time", copy).forEach((each) => each.replaceWith(each.dateTime ?? " "));
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function paged(box) {
  const foot = box.parentElement.querySelector(":scope > footer");
  return foot && (foot.querySelector("a") || /^\s*Showing/.test(foot.textContent));
}

const sortable = (box) => !paged(box) && !box.querySelector("tbody [colspan], tbody [rowspan], thead a");

// Words, or a number where the column has numbers, also one that is only a bound; null for what is not known.
function value(cell) {
  const words = cell ? text(cell) : "";
  if (NOTHING.test(words)) return null;
  const number = cell.matches(".num") && /^[≥<]? ?(-?[\d,]*\.?\d+)/.exec(words);
  return number ? Number(number[1].replaceAll(",", "")) : words;
}

function compare(one, other, way) {
  if (one === null || other === null) return (one === null) - (other === null);
  return way * (typeof one === typeof other && one.toFixed ? one - other : String(one).localeCompare(other, "en", { numeric: true }));
}

function sort(box) {
  const [name, way] = sorts[box.ariaLabel] ?? [];
  const column = headsOf(box).indexOf(name);
  all("thead th", box).forEach((head, at) => {
    head.ariaSort = at === column ? (way > 0 ? "ascending" : "descending") : null;
  });
  const rows = (box.inOrder ??= rowsOf(box)).filter((row) => row.isConnected);
  const values = new Map(rows.map((row) => [row, value(row.cells[column])]));
  if (column >= 0) rows.sort((one, other) => compare(values.get(one), values.get(other), way));
  rows[0].parentElement.append(...rows);
}

// Once, the other way round, and as it was.
function sortBy(head) {
  const box = head.closest(".table-box");
  const name = text(head);
  const first = head.matches(".num") ? -1 : 1;
  const [now, way] = sorts[box.ariaLabel] ?? [];
  if (now === name && way !== first) delete sorts[box.ariaLabel];
  else sorts[box.ariaLabel] = [name, now === name ? -first : first];
  sort(box);
  if (box !== tables().find(sortable)) return;
  const address = new URL(location);
  address.searchParams.delete("sort");
  const said = sorts[box.ariaLabel];
  if (said) address.searchParams.set("sort", (said[1] < 0 ? "-" : "") + name);
  history.replaceState(history.state, "", address);
}

function hide() {
  const rules = tables().flatMap((box) => headsOf(box).map((head, at) =>
    at && hidden(box).includes(head)
      ? `.table-box[aria-label="${CSS.escape(box.ariaLabel)}"] tr > :nth-child(${at + 1}) { display: none !important; }`
      : ""));
  sheet.replaceSync(rules.join(""));
}

async function* cards(box) {
  let next = paged(box) && new URL(location);
  if (!next) return yield box;
  for (const place of PLACES) next.searchParams.delete(place);
  for (let page = 0; next; page += 1) {
    if (page === MOST_PAGES) return say(`The file has the first ${MOST_PAGES} pages. Filter the list, or read all rows through the API.`);
    const answer = await fetch(next);
    // A session that ended leads to another page, which has no rows: the file would look complete.
    if (!answer.ok || answer.redirected) throw new Error(answer.redirected ? "you are signed out" : answer.status);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const card = all(".table-box", found).find((each) => each.ariaLabel === box.ariaLabel);
    if (card) yield card;
    const link = card?.parentElement.querySelector("a[rel=next]")?.getAttribute("href");
    next = link && new URL(link, location);
  }
}

async function download(box) {
  const without = hidden(box);
  const lines = [];
  try {
    for await (const card of cards(box)) {
      const shown = headsOf(card).flatMap((head, at) => (head && !without.includes(head) ? [[head, at]] : []));
      if (!lines.length) lines.push(shown.map(([head]) => head));
      for (const row of rowsOf(card)) lines.push(shown.map(([, at]) => (row.cells[at] ? text(row.cells[at]) : "")));
    }
  } catch (error) {
    return say(`The rows could not be read (${error.message}). Try again.`);
  }
  // A spreadsheet takes what begins like a formula for one; a number, perhaps with its unit, is none.
  const cell = (words) => `"${words.replace(/^[=+@\t]|^-(?![\d.,]+( ?[\w%/]+)*$)/, "'$&").replaceAll('"', '""')}"`;
  const file = new Blob([lines.map((line) => line.map(cell).join(",")).join("\r\n")], { type: "text/csv" });
  const href = URL.createObjectURL(file);
  const name = box.ariaLabel.toLowerCase().replace(/\W+/g, "-");
  Object.assign(document.createElement("a"), { href, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

function choice(box, head) {
  const tick = make("input", { type: "checkbox", checked: !hidden(box).includes(head) });
  tick.onchange = () => {
    const others = hidden(box).filter((each) => each !== head);
    localStorage.setItem(`columns:${box.ariaLabel}`, JSON.stringify(tick.checked ? others : [...others, head]));
    hide();
  };
  const label = make("label", { className: "check" });
  label.append(tick, head);
  return label;
}

function open(box, button) {
  const csv = make("button", { textContent: "Download CSV", onclick: () => (menu.hidePopover(), download(box)) });
  menu.replaceChildren(csv, ...headsOf(box).slice(1).filter(Boolean).map((head) => choice(box, head)));
  const { right, bottom } = button.getBoundingClientRect();
  Object.assign(menu.style, { top: `${bottom + 4}px`, right: `${document.documentElement.clientWidth - right}px` });
}

function tools(box) {
  const button = make("button", { className: "btn quiet small square table-tools", ariaLabel: `Columns and CSV: ${box.ariaLabel}` });
  button.setAttribute("popovertarget", menu.id);
  button.innerHTML = document.querySelector(".topbar .icon").outerHTML.replace(/#[\w-]+/, "#ellipsis");
  button.onclick = () => open(box, button);
  box.append(button);
}

function sortButtons(box) {
  for (const head of all("thead th", box)) {
    if (head.querySelector("button, .sr") || !text(head)) continue;
    const button = make("button", { className: "sort", onclick: () => sortBy(head) });
    button.append(...head.childNodes);
    head.append(button);
  }
}

// On a phone a long list begins short (data.css); who asked for all of it keeps it.
function unfold(box) {
  box.classList.toggle("unfolded", unfolded.has(box.ariaLabel));
  if (box.querySelector(":scope > .unfold")) return;
  const button = make("button", { className: "btn quiet unfold", textContent: `Show all ${rowsOf(box).length} rows` });
  button.onclick = () => {
    unfolded.add(box.ariaLabel);
    box.classList.add("unfolded");
    box.focus();
  };
  box.append(button);
}

// What was brought anew from the server is as it was sent.
function dress() {
  for (const box of tables()) {
    if (!box.querySelector(".table-tools")) tools(box);
    unfold(box);
    box.classList.toggle("fits", box.firstElementChild.offsetWidth <= box.clientWidth);
    if (!sortable(box)) continue;
    sortButtons(box);
    delete box.inOrder;
    if (sorts[box.ariaLabel]) sort(box);
  }
  hide();
}

const controls = () => all(".table-box :is(.sort, .table-tools, .unfold)");
let focused;
addEventListener("htmx:before:swap", () => (focused = [document.activeElement, controls().indexOf(document.activeElement)]));
addEventListener("htmx:after:swap", () => {
  dress();
  const [was, at] = focused ?? [];
  const again = at >= 0 ? controls()[at] : was;
  if (again?.isConnected && again !== document.activeElement) again.focus({ preventScroll: true });
});
addEventListener("resize", dress);

const [, way, name] = /^(-?)(.+)$/.exec(new URL(location).searchParams.get("sort") ?? "") ?? [];
const first = tables().find(sortable);
if (name && first) sorts[first.ariaLabel] = [name, way ? -1 : 1];
dress();
