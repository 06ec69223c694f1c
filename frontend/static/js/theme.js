/* SHOW: the theme (auto, light, dark) and the density; in cookies, so that the first paint is right. */
const button = document.querySelector("[data-theme-switch]");
const THEMES = { auto: "monitor", light: "sun", dark: "moon" };
const root = document.documentElement;
const keep = (said) => (document.cookie = `${said}; path=/; max-age=31536000; samesite=lax`);

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
    keep(`theme=${theme}`);
    show(theme);
    dispatchEvent(new Event("theme"));
  };
}

const dense = document.querySelector("[data-density-switch]");
if (dense) dense.onclick = () => {
  const compact = dense.ariaPressed !== "true";
  dense.ariaPressed = compact;
  root.toggleAttribute("data-compact", compact);
  keep(`density=${compact ? "compact" : ""}`);
};
