// Small helpers. Elements are made from data, never from markup, so that a title cannot become a script.

export const find = (id) => document.getElementById(id);

// make("li", {class: "a", onclick: f, "aria-label": "b"}, "text", otherElement)
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "style") for (const [rule, to] of Object.entries(value)) element.style.setProperty(rule, to);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const percent = (share) => `${Math.round(100 * share)}%`;

// Debounce: runs only the last of several calls in quick succession.
export function paused(work, milliseconds = 140) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}
