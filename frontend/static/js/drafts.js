/* SHOW: what was typed into a form and not sent is there again after a reload; refused ones list their errors. */
// Users of a policy stand with their passwords; the URL of a channel can be all that it takes to write to it.
const SECRET = /password|passphrase|secret|token|key|pem|credential|users|url|pasted|environment/i;
const form = document.querySelector(".shell .form[method=post]");
const place = `draft:${location.pathname}${location.search}`;
const all = (selector) => [...form.querySelectorAll(selector)];

// Secrets are never kept.
const entries = () => [...new FormData(form)].filter(([name, value]) => !SECRET.test(name) && typeof value === "string");
const keep = () => sessionStorage.setItem(place, JSON.stringify(entries()));
const forget = () => sessionStorage.removeItem(place);

function restore(pairs) {
  const said = Map.groupBy(pairs, ([name]) => name);
  const values = (name) => (said.get(name) ?? []).map(([, value]) => value);
  for (const button of all("[data-add-row]")) {
    const total = form.elements[`${document.getElementById(button.dataset.addRow).dataset.rows}-TOTAL_FORMS`];
    while (total && Number(total.value) < Number(values(total.name)[0])) button.click();
  }
  for (const field of form.elements) {
    const [value] = values(field.name);
    if (!field.name || SECRET.test(field.name)) continue;
    if (/^(checkbox|radio)$/.test(field.type)) field.checked = values(field.name).includes(field.value);
    else if (field.name.endsWith("-DELETE") && value) field.closest("[data-row]").querySelector("[data-remove-row]")?.click();
    else if (value !== undefined && field.type !== "hidden") field.value = value;
    if (field.getAttribute("hx-post") === "?partial=capabilities") field.dispatchEvent(new Event("change"));
  }
  // What follows what is typed follows this as well.
  form.dispatchEvent(new Event("input", { bubbles: true }));
  form.dispatchEvent(new Event("change", { bubbles: true }));
  document.activeElement.blur();
  const note = Object.assign(document.createElement("p"), { className: "banner", role: "status" });
  const discard = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: "Discard input" });
  discard.onclick = () => {
    form.dispatchEvent(new Event("submit", { bubbles: true })); // nothing is sent: there is nothing to ask for
    forget();
    location.reload();
  };
  note.append("What you typed before is here again. It is not saved.", discard);
  form.before(note);
}

function listErrors(refused) {
  const list = Object.assign(document.createElement("ul"), { className: "error-list" });
  for (const error of all(".field .error")) {
    const field = error.closest(".field");
    const input = field.querySelector("input:not([type=hidden]), select, textarea");
    if (!input?.id) continue;
    const link = Object.assign(document.createElement("a"), { href: `#${input.id}` });
    link.textContent = `${field.querySelector("label, legend").firstChild.textContent.trim()}: ${error.textContent}`;
    list.append(document.createElement("li"));
    list.lastChild.append(link);
  }
  if (list.children.length) refused.append(list);
  refused.tabIndex = -1;
  refused.focus();
}

// A tab may be somebody else's by now, or act for another account.
function forgetOthers() {
  const whose = document.querySelector("#user-menu .who").textContent;
  if (sessionStorage.getItem("drafts-of") === whose) return;
  for (const name of Object.keys(sessionStorage)) if (name.startsWith("draft:")) sessionStorage.removeItem(name);
  sessionStorage.setItem("drafts-of", whose);
}

if (form) {
  forgetOthers();
  const refused = document.querySelector("main .banner.bad[role=alert]");
  const kept = JSON.parse(sessionStorage.getItem(place) ?? "null");
  const version = (pairs) => pairs.find(([name]) => name === "version")?.[1];
  // What the server sent back is not written over, nor what somebody else stored meanwhile.
  if (refused) listErrors(refused);
  else if (kept && version(kept) === version(entries())) restore(kept);
  else forget();
  form.addEventListener("input", keep);
  form.addEventListener("click", ({ target }) => target.closest("[data-add-row], [data-remove-row]") && keep());
  form.addEventListener("submit", forget);
}
