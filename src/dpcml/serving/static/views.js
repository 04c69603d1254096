// Views of a user: interests with their items, and lists. Pure functions from data to elements.
//
// `does` holds what can be done with an item: open, and where it is possible like and hide.
import { make, percent } from "./dom.js";

const LIKED = 6; // liked items of an interest that are shown at once
const FOR_INTEREST = 4;
const CHANGED = 4; // items that came or left, which are shown at once

export const badge = (mark) => make("span", { class: "badge", style: { "--c": mark.colour }, title: mark.name }, mark.letter);

const kinds = (item) => (item.categories.length ? make("span", { class: "kinds" }, item.categories.join(", ")) : null);

// The title of an item, which opens it.
export const opener = (item, does, name = "span") => make("button", { class: "open", type: "button", title: `More about ${item.title}`,
  onclick: () => does.open(item) }, make(name, {}, item.title));

export function itemButtons(item, does) {
  const button = (kind, sign, verb) => does[kind] && make("button", { class: kind, type: "button", title: verb,
    "aria-label": `${verb} ${item.title}`, onclick: () => does[kind](item) }, sign);
  return [button("like", "+", "Like"), button("hide", "×", "Hide")].filter(Boolean);
}

export function interestCard(interest, mark, recommended, does) {
  const chips = interest.items.map((item, k) => make("li", { hidden: k >= LIKED }, opener(item, does)));
  const more = make("button", { class: "quiet more", type: "button", onclick: () => {
    chips.forEach((chip) => { chip.hidden = false; });
    more.remove();
  } }, `${interest.items.length - LIKED} more`);
  const categories = interest.categories.slice(0, 3).map((one) => `${one.name} ${percent(one.share)}`).join(" · ");
  return make("article", { class: "interest", style: { "--c": mark.colour }, "aria-label": `Interest ${mark.letter}: ${interest.name}` },
    make("header", {}, badge(mark), make("h4", {}, interest.name),
      make("span", { class: "share", title: "Share of the history" }, percent(interest.share))),
    make("div", { class: "bar", "aria-hidden": "true" }, make("i", { style: { width: percent(interest.share) } })),
    categories ? make("p", { class: "kinds" }, categories) : null,
    interest.items.length ? make("ul", { class: "chips small", "aria-label": "Liked items" }, ...chips) : make("p", { class: "none" }, "No liked item belongs to this interest."),
    interest.items.length > LIKED ? more : null,
    recommended.length ? make("h5", {}, "Recommended here") : null,
    make("ul", { class: "here" }, ...recommended.slice(0, FOR_INTEREST).map((item) =>
      make("li", {}, opener(item, does), make("span", { class: "buttons" }, ...itemButtons(item, does))))));
}

// The list; items in `came` are marked as those that the dial has brought.
export function oneList(items, marks, does, came = new Set()) {
  return make("ol", { class: "list" }, ...items.map((item, k) => {
    const mark = marks.get(item.reason?.interest);
    const fresh = came.has(String(item.id));
    return make("li", { class: fresh ? "came" : null, style: { "--c": mark ? mark.colour : "var(--line)" } },
      make("span", { class: "place", "aria-hidden": "true" }, String(k + 1)),
      mark ? badge(mark) : null,
      make("div", { class: "what" },
        opener(item, does, "strong"), " ", fresh ? make("span", { class: "fresh" }, "came in") : null, " ", kinds(item),
        item.reason ? make("p", { class: "why" }, item.reason.text) : null),
      make("span", { class: "buttons" }, ...itemButtons(item, does)));
  }));
}

// Which items the dial has brought into the list and which have left it, with their places.
export function difference(base, list) {
  const placed = (items) => new Map(items.map((item, k) => [String(item.id), { item, place: k + 1 }]));
  const [before, now] = [placed(base), placed(list)];
  const only = (some, others) => [...some].filter(([id]) => !others.has(id)).map(([, one]) => one);
  return { came: only(now, before), left: only(before, now) };
}

export function changes({ came, left }, marks, does, turned) {
  if (!turned) return make("p", { class: "none" }, "Turn the dial: what comes into the list and what leaves it is shown here.");
  if (!came.length) return make("p", { class: "none" }, "The list is the same as without the dial.");
  const row = (title, kind, some, word) => make("div", { class: `change ${kind}` }, make("span", { class: "row-name" }, `${title} ${some.length}`),
    make("ul", {}, ...some.slice(0, CHANGED).map(({ item, place }) => {
      const mark = marks.get(item.reason?.interest);
      return make("li", {}, mark ? badge(mark) : null, opener(item, does), make("small", {}, `${word} ${place}`));
    }), some.length > CHANGED ? make("li", { class: "rest" }, make("small", {}, `and ${some.length - CHANGED} more`)) : null));
  return make("div", {}, row("Came", "in", came, "now"), row("Left", "out", left, "was"));
}

// Two bars: the shares of the interests in the history and in the list.
export function shares(interests, items, marks) {
  const counted = interests.map((one) => items.filter((item) => item.reason?.interest === one.number).length / Math.max(items.length, 1));
  const row = (title, parts) => {
    const told = interests.map((one, k) => `${one.name} ${percent(parts[k])}`).join(", ");
    return [make("span", { class: "row-name" }, title),
      make("div", { class: "parts", role: "img", "aria-label": `${title}: ${told}` }, ...interests.map((one, k) =>
        make("i", { style: { width: `${100 * parts[k]}%`, "--c": marks.get(one.number).colour }, title: `${one.name} ${percent(parts[k])}` },
          parts[k] > 0.07 ? marks.get(one.number).letter : "")))];
  };
  return make("div", { class: "shares" }, ...row("History", interests.map((one) => one.share)), ...row("This list", counted));
}

export function plainHistory(items, does) {
  return make("article", { class: "interest" }, make("header", {}, make("h4", {}, "History")),
    make("ul", { class: "chips small plain" }, ...items.slice(0, 40).map((item) => make("li", {}, opener(item, does)))),
    items.length > 40 ? make("p", { class: "none" }, `and ${items.length - 40} more`) : null);
}
