/* SHOW: <input type="range" data-slides="id of a field"> and that field say the same; only the field is sent. */
const slidersOf = ({ id }) => document.querySelectorAll(`[data-slides="${id}"]`);
addEventListener("input", ({ target }) => {
  const field = document.getElementById(target.dataset.slides);
  if (field) field.value = target.value;
  else for (const slider of slidersOf(target)) slider.value = target.value;
}, true);
