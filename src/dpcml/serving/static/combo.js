// A search box with a list of matches: arrow keys move, Enter selects, Escape closes. Enter right after typing takes the
// best match, without waiting for the list.
import { make, paused } from "./dom.js";

export function combo(input, { search, show, take, nothing }) {
  const list = make("ul", { role: "listbox", id: `${input.id}-list`, class: "options", hidden: true,
    "aria-label": "Matches" });
  input.parentElement.append(list);
  const set = (name, value) => input.setAttribute(name, value);
  set("role", "combobox"); set("aria-autocomplete", "list"); set("aria-controls", list.id); set("aria-expanded", "false");
  let found = [], active = -1, asked = 0;
  let listed = ""; // the text that `found` matches
  let entered = false; // Enter was pressed before the matches were there

  function close() {
    list.hidden = true;
    [active, listed] = [-1, ""];
    set("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    active = place;
    [...list.children].forEach((option, k) => option.setAttribute("aria-selected", String(k === place)));
    if (place < 0) return input.removeAttribute("aria-activedescendant");
    set("aria-activedescendant", list.children[place].id);
    list.children[place].scrollIntoView({ block: "nearest" });
  }

  function choose(place) {
    const one = found[place];
    if (one === undefined) return;
    asked += 1; // a search under way must not open the list again
    input.value = "";
    [found, entered] = [[], false];
    close();
    take(one);
  }

  async function look() {
    const turn = ++asked;
    const text = input.value.trim();
    if (!text) return close();
    const some = await search(text).catch(() => null);
    if (turn !== asked || some === null) return; // a later search has begun, or this one failed
    [found, listed] = [some, text];
    if (entered && found.length) return choose(0);
    entered = false;
    list.replaceChildren(...found.map((one, k) => make("li", { role: "option", id: `${list.id}-${k}`, "aria-selected": "false",
      onmousedown: (event) => { event.preventDefault(); choose(k); } }, ...show(one))));
    if (!found.length) list.replaceChildren(make("li", { class: "none", role: "option", "aria-disabled": "true" }, nothing(text)));
    list.hidden = false;
    set("aria-expanded", "true");
    mark(found.length ? 0 : -1);
  }

  const later = paused(() => { if (input.value.trim() !== listed) look(); });
  input.addEventListener("input", () => { entered = false; later(); });
  input.addEventListener("focus", () => { listed = ""; later(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length && !list.hidden) {
      event.preventDefault();
      mark((active + step + found.length) % found.length);
    } else if (event.key === "Enter" && input.value.trim()) {
      event.preventDefault();
      if (input.value.trim() === listed && !list.hidden) choose(active);
      else {
        entered = true;
        look();
      }
    } else if (event.key === "Escape") close();
  });
}
