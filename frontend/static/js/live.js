/* SHOW: one event stream per visible tab; its events become `spillway:<topic>` on <body>. */
const TOPICS = ["samples", "nodes", "rollouts", "runs", "stacks", "zones", "definitions", "lines"];
// What a page shows that was just made may be over before its first stream stands.
const SOON_OVER = ["rollouts", "runs", "stacks", "zones"];
const STATES = { live: ["good", "Live"], waiting: ["idle", "Connecting"], lost: ["warn", "Reconnecting…"], behind: ["warn", "Not updated"] };
// Samples come every two seconds. Where none do, a collector or Redis is away, or nobody may listen any more: then the
// page asks by itself, and the server says how old its numbers are.
const SILENCE = 10000;
const url = document.body.dataset.events;
const sign = document.getElementById("live");
let stream, stands, timer, silence, failures = 0;
let again = document.hidden; // opened in the background, it is looked at later

const fire = (topic, detail) => document.body.dispatchEvent(new CustomEvent(`spillway:${topic}`, { detail }));

function show(state) {
  const [kind, word] = STATES[state];
  sign.hidden = false;
  sign.classList.remove("good", "idle", "warn");
  sign.classList.add(kind);
  sign.querySelector("use").setAttribute("href", `#shape-${kind === "idle" ? "unknown" : kind}`);
  const text = sign.querySelector("[data-word]");
  if (text.textContent !== word) text.textContent = word;
  document.body.classList.toggle("is-stale", state === "lost");
}

const ask = (topics) => topics.forEach((topic) => fire(topic, {}));
function wait() {
  clearTimeout(silence);
  silence = setTimeout(() => (ask(TOPICS), wait()), SILENCE);
}

// A part that could not be read anew is as old as it is, however well the stream does.
const showLive = () => show(document.querySelector("[data-live].is-stale") ? "behind" : "live");

function open() {
  clearTimeout(timer);
  if (stream) return;
  show(failures ? "lost" : "waiting");
  stream = new EventSource(url);
  stream.onopen = () => {
    stands = true;
    showLive();
    // What nobody heard.
    ask(again ? TOPICS : SOON_OVER);
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
    stream.addEventListener(topic, (event) => {
      if (topic === "samples") wait();
      fire(topic, JSON.parse(event.data || "{}"));
    });
  }
}

function close() {
  stream?.close();
  stream = stands = undefined;
}

function sleep() {
  clearTimeout(timer);
  clearTimeout(silence);
  close();
}

if (url && sign) {
  const look = () => (document.hidden ? sleep() : (wait(), open()));
  addEventListener("visibilitychange", look);
  addEventListener("pagehide", sleep);
  addEventListener("pageshow", look);
  look();
}

// A redirected fetch met another page (signed out, a form's result): go there, swap nothing.
addEventListener("htmx:before:swap", (event) => {
  const answer = event.detail.ctx?.response?.raw;
  if (answer?.redirected) {
    event.preventDefault();
    location.assign(answer.url);
  }
});
function mark({ detail: { ctx } }, stale) {
  ctx?.sourceElement?.closest("[data-live]")?.classList.toggle("is-stale", stale);
  if (stands) showLive();
}
addEventListener("htmx:error", (event) => mark(event, true));
// Also said of an error, of which nothing is swapped. A busy console answers with what it has.
addEventListener("htmx:after:swap", (event) => {
  const got = event.detail.ctx?.response;
  mark(event, got?.status >= 400 || got?.headers.get("Age") > 10);
});
