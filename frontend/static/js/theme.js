/* SHOW: the theme switch: auto, light, dark; in a cookie, so that the first paint is right. */
const button = document.querySelector("[data-theme-switch]");
const ICONS = { auto: "monitor", light: "sun", dark: "moon" };
const ORDER = Object.keys(ICONS);
const root = document.documentElement;

function show(theme) {
  if (theme === "auto") root.removeAttribute("data-theme");
  else root.dataset.theme = theme;
  const { href } = button.querySelector("use");
  href.baseVal = href.baseVal.replace(/#.*/, `#${ICONS[theme]}`);
  button.ariaLabel = button.title = `Theme: ${theme}`;
}

if (button) {
  let theme = root.dataset.theme ?? "auto";
  show(theme);
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    show(theme);
    dispatchEvent(new Event("theme"));
  });
}
