/* SHOW: what a click on a data attribute does: copy, open a dialog, dismiss, add and remove rows, type-to-confirm. */
const byId = (id) => document.getElementById(id);
export function toast(text, kind = "") {
  const box = byId("toast").content.firstElementChild.cloneNode(true);
  box.firstElementChild.textContent = text;
  box.className += ` ${kind}`;
  byId("toasts").append(box);
  setTimeout(() => box.remove(), 10000);
}

async function copy(button) {
  const source = button.dataset.copy ? byId(button.dataset.copy) : button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 2000);
  } catch {
    toast("Copying failed. Select the text and press Ctrl C.", "bad");
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

addEventListener("click", (event) => {
  const on = (attribute) => event.target.closest(`[data-${attribute}]`);
  let found;
  if ((found = on("copy"))) copy(found);
  else if ((found = on("open"))) byId(found.dataset.open)?.showModal();
  else if ((found = on("close"))) found.closest("dialog").close();
  else if ((found = on("dismiss"))) found.closest(".toast, .banner").remove();
  else if ((found = on("add-row"))) addRow(found);
  else if ((found = on("remove-row"))) removeRow(found);
  else if ((found = on("menu"))) {
    event.preventDefault();
    byId("menu").classList.toggle("open") && document.querySelector("#menu a").focus();
  } else if (!event.target.closest("#menu")) byId("menu")?.classList.remove("open");
});

// [data-must-be] keeps the form's [data-when-confirmed] button disabled until the name is typed.
addEventListener("input", (event) => {
  const wanted = event.target.dataset.mustBe;
  if (wanted) event.target.form.querySelector("[data-when-confirmed]").disabled = event.target.value !== wanted;
});
// A filter applies itself.
addEventListener("change", (event) => event.target.closest("form[data-auto]")?.requestSubmit());

for (const box of document.querySelectorAll(".toast:not(.bad)")) setTimeout(() => box.remove(), 10000);

addEventListener("htmx:response:error", (event) => {
  const { ctx } = event.detail;
  if (ctx.sourceElement.closest("[data-live]")) return;
  const { status, headers } = ctx.response.raw;
  toast(`The server rejected this (${status}, request ${headers.get("X-Request-ID")}). Reload the page and try again.`, "bad");
});
