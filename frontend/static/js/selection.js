/* SHOW: the bar of the selected rows; with Shift, all from the one that was ticked before. */
const bar = document.getElementById("bulk");
const ticks = () => [...document.querySelectorAll("input[type=checkbox][form=bulk]")];
const said = Object.assign(document.createElement("p"), { className: "sr", role: "status" }); // the bar itself comes and goes
let last = ticks().find((tick) => tick.checked)?.value; // rows may be replaced, and ticked before this is here
function count() {
  const chosen = ticks().filter((tick) => tick.checked).length;
  const words = `${chosen} of ${ticks().length} selected`;
  bar.querySelector("[data-chosen]").textContent = words;
  bar.querySelector("[data-choose=all]").textContent = `Select all ${ticks().length}`;
  if (said.textContent || chosen) said.textContent = words;
  for (const head of document.querySelectorAll("[data-choose-all]")) {
    head.checked = chosen && chosen === ticks().length;
    head.indeterminate = chosen && !head.checked;
  }
}
bar.after(said);
addEventListener("click", ({ target, shiftKey }) => {
  const button = target.closest("[data-choose]");
  const every = button ? button.dataset.choose === "all" : target.matches?.("[data-choose-all]") ? target.checked : undefined;
  if (every !== undefined) for (const tick of ticks()) tick.checked = every;
  else if (!target.matches?.("[form=bulk]")) return;
  const before = ticks().findIndex(({ value }) => value === last);
  const [from, to] = [before, ticks().indexOf(target)].sort((one, other) => one - other);
  if (shiftKey && from >= 0) for (const tick of ticks().slice(from, to + 1)) tick.checked = target.checked;
  last = target.value;
  count();
});
addEventListener("htmx:after:swap", count);
count();
