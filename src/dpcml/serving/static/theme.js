// Light or dark theme: that of the system, until the user chooses one.
import { find } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");

export function startTheme(changed) {
  const button = find("theme");
  const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    changed();
  };
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}
