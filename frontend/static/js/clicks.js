/* SHOW: what clicks on data attributes do, and toasts. */
const byId = (id) => document.getElementById(id);
function toast(text, kind = "") {
  for (const said of byId("toasts").children) if (said.firstElementChild.textContent === text) said.remove();
  const box = byId("toast").content.firstElementChild.cloneNode(true);
  box.firstElementChild.textContent = text;
  box.className += ` ${kind}`;
  byId("toasts").append(box);
  fade(box);
}

async function copy(button) {
  const source = byId(button.dataset.copy) ?? button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 2000);
  } catch {
    toast("Copying failed. Select the text, press Ctrl C.", "bad");
  }
}

const CLICKS = {
  copy,
  open: (found) => byId(found.dataset.open)?.showModal(),
  close: (found) => found.closest("dialog").close(),
  print: () => print(),
  dismiss: (found) => found.closest(".toast, .banner").remove(),
  menu(_, event) {
    event.preventDefault();
    byId("menu").classList.toggle("open") && document.querySelector("#menu a").focus();
  },
};
addEventListener("click", (event) => {
  const { target } = event;
  for (const name in CLICKS) {
    const found = target.closest(`[data-${name}]`);
    if (found) return CLICKS[name](found, event);
  }
  if (!target.closest("#menu")) byId("menu")?.classList.remove("open");
});

// Ten seconds to undo, and as long as somebody points at it.
const fade = (box) => setTimeout(() => (box.matches(":hover, :focus-within") ? fade(box) : box.remove()), 10000);
document.querySelectorAll(".toast:not(.bad)").forEach(fade);
addEventListener("spillway:say", ({ detail }) => toast(detail));

// What the page asks by itself says in the top bar that it was not answered (live.js), suggestions in their list.
for (const name of ["htmx:response:error", "htmx:error"]) addEventListener(name, ({ detail: { ctx } }) => {
  if (!ctx?.sourceEvent?.isTrusted || ctx.sourceElement.closest("[data-live], [role=combobox]")) return;
  const { status, headers } = ctx.response?.raw ?? {};
  toast(status ? `The server rejected this (${status}, request ${headers.get("X-Request-ID")}). Reload and try again.` : "The console does not answer. Try again.", "bad");
});
