// Views of a user: interests with their items, and lists. Pure functions from data to elements.
import { make, percent } from "./dom.js";

const LIKED = 6; // liked items of an interest that are shown at once
const FOR_INTEREST = 4;

export const badge = (mark) => make("span", { class: "badge", style: { "--c": mark.colour }, title: mark.name }, mark.letter);

const kinds = (item) => (item.categories.length ? make("span", { class: "kinds" }, item.categories.join(", ")) : null);

// A button that adds an item to the history of a new user.
function likeButton(item, like) {
  return like && make("button", { class: "like", type: "button", "aria-label": `Like ${item.title}`, title: "Like",
    onclick: () => like(item) }, "+");
}

export function interestCard(interest, mark, recommended, like) {
  const chips = interest.items.map((item, k) => make("li", { hidden: k >= LIKED }, item.title));
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
      make("li", {}, make("span", {}, item.title), likeButton(item, like)))));
}

export function oneList(items, marks, like) {
  return make("ol", { class: "list" }, ...items.map((item) => {
    const mark = marks.get(item.reason?.interest);
    return make("li", { style: { "--c": mark ? mark.colour : "var(--line)" } },
      mark ? badge(mark) : null,
      make("div", { class: "what" },
        make("strong", {}, item.title), " ", kinds(item),
        item.reason ? make("p", { class: "why" }, item.reason.text) : null),
      likeButton(item, like));
  }));
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

export function plainHistory(items) {
  return make("article", { class: "interest" }, make("header", {}, make("h4", {}, "History")),
    make("ul", { class: "chips small plain" }, ...items.slice(0, 40).map((item) => make("li", {}, item.title))),
    items.length > 40 ? make("p", { class: "none" }, `and ${items.length - 40} more`) : null);
}
