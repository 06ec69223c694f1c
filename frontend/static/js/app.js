/* SHOW: what only some pages need is fetched there; the last part of console.js (apps/web/bundles.py). */
if (document.querySelector("[data-brush]")) import("./brush.js");
if (document.querySelector(".shell .table-box, .shell [data-live]")) import("./tables.js");
if (document.querySelector("[role=combobox]")) import("./offers.js");
if (document.getElementById("bulk")) import("./selection.js");
if (document.querySelector("[hx-post='?partial=capabilities']")) import("./capabilities.js");
if (document.querySelector("[data-slides]")) import("./sliders.js");
if (document.querySelector(".shell .form[method=post]")) import("./drafts.js");
if (matchMedia("(max-width: 40rem)").matches) import("./cards.js");
// A link may lead to a question (#start of a capacity test), to a drawer (#what-if), or to a field of a form.
function arrive() {
  const asked = document.getElementById(location.hash.slice(1));
  document.getElementById("palette")?.close();
  asked?.showModal?.();
  for (let fold = asked?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (asked?.id.startsWith("id_")) (asked.matches("div") ? asked.querySelector("input") : asked).focus();
}
arrive();
addEventListener("hashchange", arrive);
const charts = () => document.querySelector("[data-chart]") && import("./chart.js").then((chart) => chart.draw());
charts();
addEventListener("htmx:after:swap", charts);
// The icon of the tab says what the title says.
const icon = document.querySelector("[data-trouble]");
const signal = () => {
  const { trouble, well } = icon.dataset;
  const wanted = document.title.startsWith("●") ? trouble : well;
  if (icon.getAttribute("href") !== wanted) icon.href = wanted;
};
if (icon) new MutationObserver(signal).observe(document.head, { subtree: true, childList: true, characterData: true });
if (icon) signal();
