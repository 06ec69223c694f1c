/* SHOW: <time datetime> becomes "3 min ago" by the server's clock or a local date, with UTC on hover. */
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const UNITS = [[60, 1, "second"], [3600, 60, "minute"], [86400, 3600, "hour"], [604800, 86400, "day"]];

let ahead = 0; // how far the server's clock is ahead of the browser's, in ms

// Answers say whole seconds, and a page takes a moment to come: less than five seconds are no difference.
function hear(said) {
  const found = said - Date.now();
  ahead = Math.abs(found) < 5000 ? 0 : found || ahead;
}

function words(date) {
  const seconds = (date - Date.now() - ahead) / 1000;
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

hear(document.body.dataset.now * 1000);
refresh();
setInterval(() => document.hidden || refresh(), 5000);
addEventListener("htmx:after:swap", ({ detail }) => {
  hear(Date.parse(detail.ctx?.response?.headers.get("Date")));
  refresh();
});
