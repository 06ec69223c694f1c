/* SHOW: forms: rows, typing to confirm, filters, leaving one unsaved. */

// Rows of a Django formset; its <template> has __prefix__ for the number.
function addRow(button) {
  const box = document.getElementById(button.dataset.addRow);
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

addEventListener("click", ({ target }) => {
  const [add, remove] = [target.closest("[data-add-row]"), target.closest("[data-remove-row]")];
  if (add) addRow(add);
  if (remove) removeRow(remove);
});

// [data-must-be] keeps the form's [data-when-confirmed] button disabled until the name is typed.
addEventListener("input", ({ target }) => {
  const wanted = target.dataset.mustBe;
  if (wanted) target.form.querySelector("[data-when-confirmed]").disabled = target.value !== wanted;
});
// A group of boxes that is closed says how many of them are ticked.
addEventListener("change", ({ target }) => {
  const fold = target.closest("details.fold");
  const said = fold?.querySelector("[data-ticked]");
  if (said) said.textContent = `${fold.querySelectorAll(":checked").length} selected`;
});
// A filter applies itself, unless it is one of several that were unfolded, and says nothing of what is empty.
addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-auto]");
  if (!form?.querySelector(".folds")?.checkVisibility()) form?.requestSubmit();
});
addEventListener("formdata", ({ target, formData }) => {
  if (target.method !== "get") return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// What was typed is not left unasked.
let typed;
addEventListener("input", ({ target }) => (typed ||= target.closest(".form[method=post]")));
// Who presses a button again while the answer is on its way does nothing twice, and is not told that it was done before.
let sent;
addEventListener("submit", (event) => {
  typed = null;
  if (event.target.method !== "post") return;
  const again = sent?.submitter && sent.submitter === event.submitter && event.timeStamp - sent.timeStamp < 5000;
  if (again) event.preventDefault();
  else sent = event;
});
addEventListener("beforeunload", (event) => typed?.isConnected && event.preventDefault());
