/* SHOW: <time datetime> becomes "3 min ago" or a local date, with UTC on hover. */
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const UNITS = [[60, 1, "second"], [3600, 60, "minute"], [86400, 3600, "hour"], [604800, 86400, "day"]];

function words(date) {
  const seconds = (date - Date.now()) / 1000;
  const unit = UNITS.find(([below]) => Math.abs(seconds) < below);
  return unit ? relative.format(Math.trunc(seconds / unit[1]), unit[2]) : local.format(date);
}

function refresh() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const date = new Date(element.dateTime);
    const text = element.hasAttribute("data-absolute") ? local.format(date) : words(date);
    if (element.textContent !== text) element.textContent = text;
    element.title = `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }
}

refresh();
setInterval(() => document.hidden || refresh(), 5000);
addEventListener("htmx:after:swap", refresh);
