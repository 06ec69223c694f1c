/* SHOW: the keyboard, and the palette that it drives. */
const find = (selector) => document.querySelector(selector);
const palette = find("#palette");
const input = find("#palette-query");
const body = document.body.classList;

function move(step) {
  const links = [...document.querySelectorAll("main a.row-link, main tr:not(:has(.row-link)) [form=bulk]")];
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))]?.focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  x: () => document.activeElement.closest("tr")?.querySelector("[type=checkbox]")?.click(),
  c: () => find("[data-create]")?.click(),
  e: () => find("main .page-head [href$='/edit']")?.click(),
  g: () => (body.add("going"), setTimeout(() => body.remove("going"), 2500)),
  "/": () => {
    const field = find("main [type=search]");
    field?.form?.querySelector(".folds")?.setAttribute("open", "");
    field?.focus();
  },
  ".": openPalette,
  "?": () => find("#shortcuts")?.showModal(),
};

function openPalette() {
  if (!palette || palette.open) return;
  const links = document.querySelectorAll("[data-palette] a:not(.new)");
  const copies = [...links].map((link) => link.cloneNode(true));
  // What is told by id is told in the navigation.
  for (const copy of copies) copy.querySelector("[id]")?.removeAttribute("id");
  find("[data-pages]").replaceChildren(...copies);
  input.value = find("#palette-results").innerHTML = "";
  filter();
  palette.showModal();
}

function filter() {
  const query = input.value.trim().toLowerCase();
  for (const link of find("[data-pages]").children) link.hidden = !link.textContent.toLowerCase().includes(query);
  choose(0);
}

const shown = () => [...palette.querySelectorAll(".palette-list :is(a, button):not([hidden])")];
function choose(index) {
  const links = shown();
  links.forEach((link, at) => link.classList.toggle("chosen", at === index));
  links[index]?.scrollIntoView({ block: "nearest" });
}

input?.addEventListener("input", filter);
// htmx brings what the server finds.
addEventListener("htmx:after:swap", ({ detail }) => detail.ctx?.sourceElement === input && choose(0));
palette?.addEventListener("keydown", (event) => {
  const links = shown();
  const now = links.findIndex((link) => link.matches(".chosen"));
  const to = { ArrowDown: Math.min(links.length - 1, now + 1), ArrowUp: Math.max(0, now - 1) }[event.key];
  if (event.key === "Enter" && event.target === input) links[now]?.click();
  else if (to === undefined) return;
  else choose(to);
  event.preventDefault();
});

addEventListener("click", (event) => {
  // Filled before clicks.js shows it.
  if (event.target.closest('[data-open="palette"]')) openPalette();
}, true);
addEventListener("keydown", (event) => {
  const { key } = event;
  const control = event.ctrlKey || event.metaKey;
  const typing = event.target.matches("input:not([type=checkbox]), textarea, select");
  const plain = !control && !event.altKey && !typing && !find("dialog[open]");
  if (control && key.toLowerCase() === "k") openPalette();
  else if (plain && body.contains("going")) {
    body.remove("going");
    find(`nav [data-go="${CSS.escape(key)}"]`)?.click();
  } else if (plain && KEYS[key]) KEYS[key]();
  else return;
  event.preventDefault();
});

// The next page has the same groups closed.
addEventListener("toggle", ({ target }) => {
  if (!target.dataset?.fold) return;
  const closed = [...document.querySelectorAll("[data-fold]:not([open])")].map((each) => each.dataset.fold);
  document.cookie = `folded=${closed.join(".")}; path=/; max-age=31536000; samesite=lax`;
}, true);
