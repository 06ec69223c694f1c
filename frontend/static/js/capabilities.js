/* SHOW: fields of a form follow the notes of what targets can do, which come anew with what is chosen. */
// Notes of what targets can do came anew: fields follow what is said of them, and keep what is typed in them.
function follow() {
  const copies = [...document.querySelectorAll("template")].map(({ content }) => content);
  for (const field of [document, ...copies].flatMap((root) => [...root.querySelectorAll("[aria-describedby*=told-]")])) {
    const notes = field.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id)?.dataset ?? {});
    field.disabled = notes.some(({ told }) => told === "greyed" || (told && "addRow" in field.dataset));
    const refused = notes.flatMap(({ refusedValues }) => (refusedValues ? refusedValues.split(" ") : []));
    for (const option of field.options ?? []) option.disabled = !option.selected && refused.includes(option.value);
  }
}
addEventListener("htmx:after:swap", ({ target }) => target.getAttribute?.("hx-post") === "?partial=capabilities" && follow());
follow();
