/* SHOW: what clicks on data attributes do, typing to confirm, and leaving a form. */
const byId = (id) => document.getElementById(id);
function toast(text, kind = "") {
  const box = byId("toast").content.firstElementChild.cloneNode(true);
  box.firstElementChild.textContent = text;
  box.className += ` ${kind}`;
  byId("toasts").append(box);
  setTimeout(() => box.remove(), 10000);
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

// Rows of a Django formset; its <template> has __prefix__ for the number.
function addRow(button) {
  const box = byId(button.dataset.addRow);
  const total = document.querySelector(`[name="${box.dataset.rows}-TOTAL_FORMS"]`);
  const index = total ? total.value++ : box.children.length;
  const holder = document.createElement("div");
  holder.innerHTML = box.querySelector("template").innerHTML.replaceAll("__prefix__", index);
  const row = holder.firstElementChild;
  box.append(row);
  window.htmx?.process(row);
  row.querySelector("input, select")?.focus();
}

// A row that the server knows is only marked; a new one goes away.
function removeRow(button) {
  const row = button.closest("[data-row]");
  const mark = row.querySelector('[name$="-DELETE"]');
  const next = row.parentElement.parentElement.querySelector("[data-add-row]");
  if (mark) {
    mark.checked = true;
    mark.value = "on";
    row.hidden = true;
    for (const input of row.querySelectorAll("[required]")) input.required = false;
  } else row.remove();
  next?.focus();
}

const CLICKS = {
  copy,
  open: (found) => byId(found.dataset.open)?.showModal(),
  close: (found) => found.closest("dialog").close(),
  dismiss: (found) => found.closest(".toast, .banner").remove(),
  "add-row": addRow,
  "remove-row": removeRow,
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

// [data-must-be] keeps the form's [data-when-confirmed] button disabled until the name is typed.
addEventListener("input", (event) => {
  const wanted = event.target.dataset.mustBe;
  if (wanted) event.target.form.querySelector("[data-when-confirmed]").disabled = event.target.value !== wanted;
});
// A filter applies itself.
addEventListener("change", ({ target }) => target.closest("form[data-auto]")?.requestSubmit());

// What was typed is not left unasked.
let typed;
addEventListener("input", ({ target }) => (typed ||= target.closest(".form[method=post]")));
addEventListener("submit", () => (typed = null));
addEventListener("beforeunload", (event) => typed?.isConnected && event.preventDefault());

for (const box of document.querySelectorAll(".toast:not(.bad)")) setTimeout(() => box.remove(), 10000);

addEventListener("htmx:response:error", (event) => {
  const { ctx } = event.detail;
  if (ctx.sourceElement.closest("[data-live]")) return;
  const { status, headers } = ctx.response.raw;
  toast(`The server rejected this (${status}, request ${headers.get("X-Request-ID")}). Reload and try again.`, "bad");
});
