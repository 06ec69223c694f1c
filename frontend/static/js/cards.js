/* SHOW: on a phone a page of more than three screens begins with its later cards folded; who opened one keeps it. */
const MOST = 2.75; // screens, for charts and fonts come a little later
const FROM = [2, 1.5, 1, 0.5]; // screens above what is folded: the first that is enough
const folded = new Set(); // keys of cards
const headOf = (card) => card.querySelector(":scope > header:has(h2), :scope > legend");
const titleOf = (card) => (headOf(card).querySelector("h2") ?? headOf(card).firstChild).textContent.trim();
const keyOf = (card) => card.id || titleOf(card);
const cards = () => [...document.querySelectorAll("main :is(.card, .plain-part, fieldset.group)")].filter(headOf);
// What is wrong or was asked for stays in sight.
const wanted = (card) => card.querySelector("[aria-invalid=true], :target, :focus") || card.matches(":target");
const screens = () => document.documentElement.scrollHeight / innerHeight;

function open(card, focus) {
  folded.delete(keyOf(card));
  dress(card);
  if (focus) card.querySelector("a, button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")?.focus();
}

function dress(card) {
  const closed = folded.has(keyOf(card));
  card.classList.toggle("folded", closed);
  const button = headOf(card).querySelector(":scope > .unfold-card");
  if (!closed) return button?.remove();
  if (button) return;
  const made = Object.assign(document.createElement("button"), { type: "button", className: "btn quiet small push unfold-card" });
  made.innerHTML = 'Show<span class="sr"></span>';
  made.lastChild.textContent = ` ${titleOf(card)}`;
  made.onclick = () => open(card, true);
  headOf(card).append(made);
}

const dressAll = () => cards().forEach(dress);

for (const from of FROM) {
  if (screens() <= MOST) break;
  const top = from * innerHeight;
  for (const card of cards()) {
    if (card.getBoundingClientRect().top + scrollY > top && !wanted(card)) folded.add(keyOf(card));
  }
  dressAll();
}
// What is still too long is a form of many parts: those that say something close as well, from the second screen on.
for (const fold of screens() > MOST ? document.querySelectorAll("main details.fold[open]") : []) {
  if (fold.getBoundingClientRect().top + scrollY > innerHeight && !wanted(fold)) fold.open = false;
}
addEventListener("htmx:after:swap", dressAll);
// The browser wants to show a field that it does not take.
addEventListener("invalid", ({ target }) => target.closest(".folded") && open(target.closest(".folded")), true);
addEventListener("hashchange", () => cards().filter(wanted).forEach((card) => open(card)));
matchMedia("(max-width: 40rem)").addEventListener("change", () => (folded.clear(), dressAll()), { once: true });
