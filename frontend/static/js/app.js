/* SHOW: starts the small scripts of every page; each finds its elements by data attributes and needs no set-up. */
import "./live.js";
import "./theme.js";
import "./times.js";
import "./clicks.js";
import "./keys.js";

if (document.querySelector("[data-brush]")) import("./brush.js");
const charts = () => document.querySelector("[data-chart]") && import("./chart.js").then((chart) => chart.draw());
charts();
addEventListener("htmx:after:swap", charts);
