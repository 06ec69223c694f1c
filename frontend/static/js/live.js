/* SHOW: one event stream per visible tab; its events become `spillway:<topic>` on <body>. */
const TOPICS = ["samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines"];
const STATES = { live: ["good", "good", "Live"], waiting: ["idle", "unknown", "Connecting"], lost: ["warn", "warn", "Reconnecting…"] };
const url = document.body.dataset.events;
const sign = document.getElementById("live");
let stream, timer, again, failures = 0;

const fire = (topic, detail) => document.body.dispatchEvent(new CustomEvent(`spillway:${topic}`, { detail }));

function show(state) {
  const [kind, shape, word] = STATES[state];
  sign.hidden = false;
  sign.classList.remove(...Object.values(STATES).map(([each]) => each));
  sign.classList.add(kind);
  sign.querySelector("use").setAttribute("href", `#shape-${shape}`);
  const text = sign.querySelector("[data-word]");
  if (text.textContent !== word) text.textContent = word;
  document.body.classList.toggle("is-stale", state === "lost");
}

function open() {
  clearTimeout(timer);
  if (stream || document.hidden) return;
  show(failures ? "lost" : "waiting");
  stream = new EventSource(url);
  stream.onopen = () => {
    show("live");
    // What nobody heard: a rollout may end before the first stream stands.
    for (const topic of again ? TOPICS : ["rollouts"]) fire(topic, {});
    failures = 0;
    again = true;
  };
  stream.onerror = () => {
    if (!again && !failures) fire("rollouts", {});
    close();
    failures += 1;
    show("lost");
    // Jitter: a restarted server shall not meet all its tabs at once.
    timer = setTimeout(open, Math.min(30000, 500 * 2 ** failures) * (0.7 + 0.6 * Math.random()));
  };
  for (const topic of TOPICS) {
    stream.addEventListener(topic, (event) => fire(topic, JSON.parse(event.data || "{}")));
  }
}

function close() {
  stream?.close();
  stream = undefined;
}

if (url && sign) {
  addEventListener("visibilitychange", () => (document.hidden ? (clearTimeout(timer), close()) : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

// A redirected fetch met another page (signed out, a form's result): go there, swap nothing.
addEventListener("htmx:before:swap", (event) => {
  const answer = event.detail.ctx?.response?.raw;
  if (answer?.redirected) {
    event.preventDefault();
    location.assign(answer.url);
  }
});
const mark = (stale) => (event) => event.detail.ctx?.sourceElement?.closest("[data-live]")?.classList.toggle("is-stale", stale);
addEventListener("htmx:response:error", mark(true));
addEventListener("htmx:error", mark(true));
addEventListener("htmx:after:swap", mark(false));
