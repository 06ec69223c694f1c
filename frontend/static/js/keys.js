/* SHOW: keyboard: j k Enter for rows, c creates, / filters, ? helps, Ctrl K opens the palette and drives it. */
const palette = document.getElementById("palette");
const input = document.getElementById("palette-query");
const typing = (element) => element.matches("input, textarea, select, [contenteditable]");
let timer, asked = 0;

function move(step) {
  const links = [...document.querySelectorAll("main a.row-link")];
  if (!links.length) return;
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))].focus();
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
  input.value = "";
  filter();
  palette.showModal();
}

function filter() {
  const query = input.value.trim().toLowerCase();
  for (const link of palette.querySelectorAll("[data-pages] a")) link.hidden = !link.textContent.toLowerCase().includes(query);
  choose(0);
  clearTimeout(timer);
  timer = setTimeout(() => results(query), query ? 150 : 0);
}

async function results(query) {
  const box = palette.querySelector("[data-results]");
  const mine = ++asked;
  let html = "";
  try {
    const answer = query && (await fetch(`${box.dataset.url}?q=${encodeURIComponent(query)}`, { headers: { "HX-Request": "true" } }));
    if (answer?.ok) html = await answer.text();
  } catch { /* away: the pages below still work */ }
  if (mine !== asked) return;
  box.innerHTML = html;
  choose(0);
}

const shown = () => [...palette.querySelectorAll(".palette-list a:not([hidden])")];
function choose(index) {
  const links = shown();
  links.forEach((link, at) => link.classList.toggle("chosen", at === index));
  links[index]?.scrollIntoView({ block: "nearest" });
}

input?.addEventListener("input", filter);
palette?.addEventListener("keydown", (event) => {
  const links = shown();
  const now = links.findIndex((link) => link.matches(".chosen"));
  if (event.key === "Enter" && event.target === input) links[now]?.click();
  else if (event.key === "ArrowDown") choose(Math.min(links.length - 1, now + 1));
  else if (event.key === "ArrowUp") choose(Math.max(0, now - 1));
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  // Before clicks.js shows the dialog, so that it is filled.
  if (event.target.closest('[data-open="palette"]')) openPalette();
}, true);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target) && !document.querySelector("dialog[open]")) {
    if (!KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  }
});
