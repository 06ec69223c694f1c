/* SHOW: the theme: auto, light, dark; in a cookie, so that the first paint is right. */
const button = document.querySelector("[data-theme-switch]");
const THEMES = { auto: "monitor", light: "sun", dark: "moon" };
const root = document.documentElement;

function show(theme) {
  if (theme === "auto") root.removeAttribute("data-theme");
  else root.dataset.theme = theme;
  const { href } = button.querySelector("use");
  href.baseVal = href.baseVal.replace(/#.*/, `#${THEMES[theme]}`);
  button.ariaLabel = button.title = `Theme: ${theme}`;
}

if (button) {
  show(root.dataset.theme ?? "auto");
  button.onclick = () => {
    const names = Object.keys(THEMES);
    const theme = names[(names.indexOf(root.dataset.theme ?? "auto") + 1) % 3];
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    show(theme);
    dispatchEvent(new Event("theme"));
  };
}
