// The dial: how much room smaller interests get.
import { find, paused } from "./dom.js";

// Show a value, without telling anybody.
export function showDial(mix) {
  const words = mix < 0.25 ? "best matches" : mix < 0.75 ? "more from smaller interests" : "mostly smaller interests";
  find("mix").value = mix;
  find("mix").setAttribute("aria-valuetext", `${Math.round(100 * mix)} percent, ${words}`);
  find("mix").style.setProperty("--at", `${100 * mix}%`);
}

export function startDial(turned) {
  const later = paused(() => turned(Number(find("mix").value)));
  find("mix").addEventListener("input", () => { showDial(Number(find("mix").value)); later(); });
}
