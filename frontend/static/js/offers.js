/* SHOW: names that a field (role=combobox) is offered while somebody types: one list below it, filled by htmx. */
const list = document.getElementById("offers");
const rows = () => [...list.children];
const isCombobox = (target) => target?.matches?.("[role=combobox]");
let field; // whose names stand in the list
let picked;

function place() {
  const { left, top, bottom, width } = field.getBoundingClientRect();
  list.style.minWidth = `${width}px`;
  const below = bottom + 4 + list.offsetHeight <= innerHeight;
  list.style.top = `${below ? bottom + 4 : Math.max(0, top - 4 - list.offsetHeight)}px`;
  list.style.left = `${Math.max(0, Math.min(left, document.documentElement.clientWidth - list.offsetWidth))}px`;
}

function choose(at) {
  rows().forEach((row, index) => (row.ariaSelected = index === at));
  const row = rows()[at];
  if (!row) return field?.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", row.id);
  row.scrollIntoView({ block: "nearest" });
}

function show(open) {
  if (field) field.ariaExpanded = open;
  list.togglePopover(open);
  if (open) place();
  choose(-1);
}

// A field that adds to another one takes the next name then.
function pick({ dataset: { value } }) {
  if (!value) return;
  const other = document.getElementById(field.dataset.adds);
  if (other) other.value = `${other.value.trim()}\n${value}\n`.trimStart();
  if (other) field.value = "";
  else picked = field.value = value;
  show(false);
  for (const name of ["input", "change"]) (other ?? field).dispatchEvent(new Event(name, { bubbles: true }));
}

// What stood there before belongs to another text.
function unread(asked) {
  if (!isCombobox(asked) || asked !== document.activeElement) return;
  field = asked;
  const row = Object.assign(document.createElement("li"), { id: "offer-1", role: "option", ariaDisabled: "true" });
  row.textContent = "Suggestions could not be read. Type the whole name, or try again.";
  list.replaceChildren(row);
  show(true);
}

// Nobody asks for more of what was picked, and what comes when another field has the focus is not for that one.
for (const name of ["htmx:before:request", "htmx:before:swap"])
  addEventListener(name, (event) => {
    const asked = event.detail.ctx?.sourceElement;
    if (isCombobox(asked) && (asked !== document.activeElement || asked.value === picked)) event.preventDefault();
  });
addEventListener("htmx:after:swap", ({ detail }) => {
  const asked = detail.ctx?.sourceElement;
  if (!isCombobox(asked)) return;
  if (detail.ctx.response.status >= 400) return unread(asked);
  field = asked;
  show(rows().length > 0);
});
addEventListener("htmx:error", ({ detail }) => unread(detail.ctx?.sourceElement));
addEventListener("input", ({ target }) => isCombobox(target) && target.value !== picked && (picked = undefined));
addEventListener("click", ({ target }) => {
  const row = target.closest?.("#offers > li");
  if (row) pick(row);
  else if (isCombobox(target)) target.dispatchEvent(new Event("offer"));
});
// The field keeps the focus.
list.addEventListener("mousedown", (event) => event.preventDefault());
addEventListener("focusout", ({ target }) => target === field && show(false));
addEventListener("scroll", ({ target }) => target !== list && list.matches(":popover-open") && place(), true);
addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!isCombobox(target)) return;
  const open = list.matches(":popover-open") && target === field;
  const now = rows().findIndex((row) => row.ariaSelected === "true");
  if (open && key === "ArrowDown") choose(Math.min(rows().length - 1, now + 1));
  else if (open && key === "ArrowUp") choose(now - 1);
  else if (open && key === "Enter" && now >= 0) pick(rows()[now]);
  else if (open && key === "Escape") show(false);
  else if (!open && key === "ArrowDown") {
    picked = undefined;
    target.dispatchEvent(new Event("offer"));
  } else return;
  event.preventDefault();
});
