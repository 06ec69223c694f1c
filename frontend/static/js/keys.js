/* SHOW: keyboard: j k Enter for rows, c creates, / filters, ? helps, Ctrl K opens the palette and drives it. */
const palette = document.getElementById("palette");
const input = document.getElementById("palette-query");
const typing = (element) => element.matches("input, textarea, select, [contenteditable]");

function move(step) {
  const links = [...document.querySelectorAll("main a.row-link")];
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))]?.focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  c: () => document.querySelector("[data-create]")?.click(),
  "/": () => document.querySelector("main [type=search], main [data-filter]")?.focus(),
  "?": () => document.getElementById("shortcuts")?.showModal(),
};

function openPalette() {
  if (!palette || palette.open) return;
  const pages = palette.querySelector("[data-pages]");
  pages.innerHTML = document.querySelector("[data-palette]").innerHTML;
  input.value = palette.querySelector("#palette-results").innerHTML = "";
  filter();
  palette.showModal();
}

function filter() {
  const query = input.value.trim().toLowerCase();
  for (const link of palette.querySelectorAll("[data-pages] a")) link.hidden = !link.textContent.toLowerCase().includes(query);
  choose(0);
}

const shown = () => [...palette.querySelectorAll(".palette-list a:not([hidden])")];
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
  if (event.key === "Enter" && event.target === input) links[now]?.click();
  else if (event.key === "ArrowDown") choose(Math.min(links.length - 1, now + 1));
  else if (event.key === "ArrowUp") choose(Math.max(0, now - 1));
  else return;
  event.preventDefault();
});

addEventListener("click", (event) => {
  // Filled before clicks.js shows it.
  if (event.target.closest('[data-open="palette"]')) openPalette();
}, true);
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target) && !document.querySelector("dialog[open]")) {
    if (!KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  }
});
