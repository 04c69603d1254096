// An opened item: why it is here, what is similar, who likes it.
import * as api from "./api.js";
import { find, make, percent } from "./dom.js";
import { opener } from "./views.js";

let turn = 0; // responses about an item that was left are ignored

export function startItem(closed) {
  const box = find("item");
  find("item-close").addEventListener("click", () => box.close());
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); }); // beside the drawer
  box.addEventListener("close", () => { turn += 1; closed(); });
}

// `person` may be null or without likes; `does` as in views.js, and user: shows another user.
export async function showItem(item, { person, model, does }) {
  const mine = ++turn;
  find("item-title").textContent = item.title;
  find("item-about").textContent = item.categories?.join(", ") ?? "";
  const close = (work) => () => { find("item").close(); work(item); };
  find("item-buttons").replaceChildren(...[
    does.like && make("button", { class: "like-this", type: "button", onclick: close(does.like) }, "Like"),
    does.hide && make("button", { class: "hide-this", type: "button", onclick: close(does.hide) }, "Hide"),
  ].filter(Boolean));
  find("item-facts").replaceChildren(make("p", { class: "none" }, "Looking it up …"));
  if (!find("item").open) find("item").showModal();
  find("item").scrollTop = 0;
  const [why, similar, fans] = await Promise.allSettled([
    person && (person.user !== undefined || person.items.length) ? reason(item, person, model) : null,
    model.capabilities.similar_items ? api.similarItems(item.id, model.name) : [],
    api.likedBy(item.id, model.name),
  ]);
  if (mine !== turn) return;
  find("item-facts").replaceChildren(...[
    section("Why here", why, (found) => found && reasonView(found, does)),
    section("Similar items", similar, (found) => found.length && similarView(found, does)),
    section("Who likes it", fans, (found) => fansView(found, model, does)),
  ].filter(Boolean));
}

async function reason(item, person, model) {
  const found = await api.recommend(person, model.name, { items: [item.id], n: 1, exclude_seen: false });
  return found.items[0].reason;
}

function section(title, { value, reason: problem }, view) {
  const inner = problem ? make("p", { class: "none" }, problem.message) : view(value);
  return inner ? make("section", {}, make("h3", {}, title), inner) : null;
}

function reasonView(found, does) {
  return make("div", {}, make("p", {}, sentence(found.text)),
    found.liked.length ? make("ul", { class: "chips small" }, ...found.liked.map((one) => make("li", {}, opener({ categories: [], ...one }, does)))) : null);
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function similarView(found, does) {
  return make("ol", { class: "similar" }, ...found.map((item) => make("li", {}, opener(item, does), make("small", {}, item.categories.join(", ")))));
}

function fansView(found, model, does) {
  return make("div", {}, make("p", {}, `${found.likes.toLocaleString("en")} of ${model.users.toLocaleString("en")} users (${percent(found.likes / Math.max(model.users, 1))}). The most active:`),
    make("ul", { class: "chips" }, ...found.users.map((user) => make("li", {}, make("button", { type: "button", onclick: () => { find("item").close(); does.user(user.id); } }, `User ${user.id}`)))));
}
