// The page: its state, the requests to the server, and where the responses are shown.
import * as api from "./api.js";
import { combo } from "./combo.js";
import { legend } from "./colours.js";
import { find, make, paused } from "./dom.js";
import { drawMap } from "./map.js";
import { startTheme } from "./theme.js";
import { interestCard, oneList, plainHistory, shares } from "./views.js";

const N = 12; // length of the list
const EACH = 6; // recommended items per interest, at most
const POOL = 100; // best items, from which each interest shows its own

const state = { person: null, liked: [], mix: 0, compare: false, models: [], maps: {}, turn: 0 };
const composing = () => find("tab-new").getAttribute("aria-selected") === "true";
const shown = () => (state.compare ? state.models : state.models.slice(0, 1));

function complain(problem) {
  const box = find("problem");
  box.hidden = !problem;
  if (problem) box.replaceChildren(make("strong", {}, problem.message), problem.hint ? make("span", {}, ` ${problem.hint}`) : "");
}

// Show a user, a new user, or nobody.
function look(person) {
  state.person = person;
  state.turn += 1; // responses for the previous user are ignored
  complain(null);
  find("welcome").hidden = Boolean(person);
  find("found").hidden = !person;
  for (const pick of find("users").querySelectorAll("button"))
    pick.setAttribute("aria-current", String(pick.dataset.id === String(person?.user)));
  if (!person) return find("status").replaceChildren();
  find("person").textContent = person.user === undefined ? "Someone new" : `User ${person.user}`;
  find("adopt").hidden = person.user === undefined || !state.models[0]?.capabilities.recommend_new;
  remember();
  return refresh();
}

function remember() {
  const parts = new URLSearchParams();
  if (state.person?.user !== undefined) parts.set("user", state.person.user);
  if (state.mix) parts.set("mix", state.mix);
  if (state.compare) parts.set("compare", "1");
  history.replaceState(null, "", `#${parts}`);
}

async function refresh() {
  const turn = ++state.turn;
  const { person } = state;
  find("columns").setAttribute("aria-busy", "true");
  try {
    const found = await Promise.all(shown().map((model) => ask(person, model)));
    if (turn !== state.turn) return; // a later request has started
    complain(null);
    find("columns").className = found.length > 1 ? "columns two" : "columns";
    find("columns").replaceChildren(...found.map(column));
    find("status").textContent = told(found[0]);
  } catch (problem) {
    if (turn !== state.turn) return;
    find("columns").replaceChildren();
    find("found").hidden = Boolean(problem.unknown); // there is no user to show
    complain(problem);
  } finally {
    if (turn === state.turn) find("columns").removeAttribute("aria-busy");
  }
}

// All responses of one model for a user. The second model may not know the user; the first is shown nevertheless.
async function ask(person, model) {
  try {
    const [groups, list, map] = await Promise.all([
      model.capabilities.interests ? api.interests(person, model.name) : [],
      api.recommend(person, model.name, { n: N, mix: model.capabilities.interests ? state.mix : 0 }),
      (state.maps[model.name] ||= api.itemMap(model.name)),
    ]);
    const each = groups.length > 1 ? await api.recommend(person, model.name, { n: POOL }) : list;
    const past = model.capabilities.interests ? [] : person.items || await api.history(person.user, model.name);
    return { model, groups, list, each, map, past };
  } catch (problem) {
    delete state.maps[model.name];
    if (model.name === "main") throw problem;
    return { model, problem };
  }
}

function told({ groups, list }) {
  const who = state.person.user === undefined ? "someone new" : `user ${state.person.user}`;
  const many = groups.length ? `${groups.length} interests, ` : "";
  return `${many}${list.length} recommendations for ${who}. First: ${list[0].title}.`;
}

function column(found) {
  const { model } = found;
  const title = state.compare ? make("h3", { class: "model-name" }, model.model_class) : null;
  if (found.problem) return make("section", { class: "column" }, title, make("p", { class: "problem" }, found.problem.message));
  const { groups, list, each, map, past } = found;
  const marks = legend(groups);
  const like = composing() ? add : null;
  const cards = groups.map((one) => interestCard(one, marks.get(one.number),
    each.filter((item) => item.reason?.interest === one.number).slice(0, EACH), like));
  const picture = drawMap(map, { interests: groups, past, recommended: list, marks, like });
  return make("section", { class: "column", "aria-label": model.model_class }, title,
    make("section", { class: "card recommended" }, make("h3", {}, "Recommended"),
      groups.length > 1 ? shares(groups, list, marks) : null, oneList(list, marks, like)),
    make("div", { class: "beside" },
      make("section", { class: "card" }, make("h3", {}, "Map of items"), picture,
        make("p", { class: "key" }, key(groups.length > 0, like))),
      make("section", { class: "groups" }, make("h3", {}, groups.length ? "Interests" : "What they like"),
        make("div", { class: "cards" }, ...(groups.length ? cards : [plainHistory(past)])))));
}

function key(withInterests, like) {
  const parts = ["Filled: liked.", "Rings: recommended."];
  if (withInterests) parts.push("Diamonds: the person's interests.");
  if (like) parts.push("Click an item to like it.");
  return parts.join(" ");
}

// Someone new.
function add(item) {
  if (state.liked.some((one) => String(one.id) === String(item.id))) return;
  state.liked = [...state.liked, item];
  compose();
}

function drop(item) {
  state.liked = state.liked.filter((one) => one !== item);
  compose();
  (find("liked").querySelector("button") || find("item-search")).focus();
}

function compose() {
  find("liked-count").textContent = state.liked.length ? `(${state.liked.length})` : "";
  find("clear").hidden = !state.liked.length;
  find("liked").replaceChildren(...state.liked.map((item) => make("li", {},
    make("button", { type: "button", "aria-label": `Remove ${item.title}`, onclick: () => drop(item) }, item.title, make("span", { "aria-hidden": "true" }, " ×")))));
  for (const button of find("popular").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(state.liked.some((one) => String(one.id) === button.dataset.id)));
  return look(state.liked.length ? { items: state.liked } : null);
}

function toggle(item) {
  const known = state.liked.find((one) => String(one.id) === String(item.id));
  return known ? (state.liked = state.liked.filter((one) => one !== known), compose()) : add(item);
}

function choose(tab) {
  for (const name of ["user", "new"]) {
    const chosen = name === tab;
    find(`tab-${name}`).setAttribute("aria-selected", String(chosen));
    find(`tab-${name}`).tabIndex = chosen ? 0 : -1;
    find(`panel-${name}`).hidden = !chosen;
  }
  if (tab === "new") compose();
  else look(null);
}

function startTabs() {
  const tabs = [find("tab-user"), find("tab-new")];
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => choose(tab.id.slice(4)));
    tab.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key) || tabs[1 - k].disabled) return;
      tabs[1 - k].focus();
      choose(tabs[1 - k].id.slice(4));
    });
  });
}

function startDial() {
  const say = () => {
    const words = state.mix < 0.25 ? "best matches" : state.mix < 0.75 ? "more from smaller interests" : "mostly smaller interests";
    find("mix").setAttribute("aria-valuetext", `${Math.round(100 * state.mix)} percent, ${words}`);
    find("mix").style.setProperty("--at", `${100 * state.mix}%`);
  };
  const turned = paused(() => { remember(); if (state.person) refresh(); });
  find("mix").addEventListener("input", (event) => {
    state.mix = Number(event.target.value);
    say();
    turned();
  });
  find("mix").value = state.mix;
  say();
}

async function startPicks() {
  const [some, popular] = await Promise.all([api.users("", 8), api.items("", 14)]);
  find("users").replaceChildren(...some.map((user) => make("li", {}, make("button", { type: "button", "data-id": user.id,
    onclick: () => look({ user: user.id }) }, make("span", {}, `User ${user.id}`), make("small", {}, `${user.likes} likes`)))));
  find("popular").replaceChildren(...popular.map((item) => make("li", {}, make("button", { type: "button", "data-id": item.id,
    "aria-pressed": "false", onclick: () => toggle(item) }, item.title))));
}

function startSearch() {
  combo(find("user-search"), {
    search: (text) => api.users(text),
    show: (user) => [make("span", {}, `User ${user.id}`), make("small", {}, `${user.likes} likes`)],
    take: (user) => look({ user: user.id }),
    nothing: (text) => `No user with "${text}" in the id`,
  });
  combo(find("item-search"), {
    search: (text) => api.items(text),
    show: (item) => [make("span", {}, item.title), make("small", {}, item.categories.join(", "))],
    take: add,
    nothing: (text) => `Nothing called "${text}"`,
  });
  find("clear").addEventListener("click", () => { state.liked = []; compose(); find("item-search").focus(); });
  find("adopt").addEventListener("click", async () => {
    state.liked = await api.history(state.person.user, "main").catch((problem) => { complain(problem); return []; });
    if (state.liked.length) choose("new");
  });
}

function startModels() {
  const [main, second] = state.models;
  find("model").replaceChildren(make("strong", {}, main.model_class),
    make("span", {}, `${main.users.toLocaleString("en")} users`), make("span", {}, `${main.items.toLocaleString("en")} items`));
  find("version").textContent = `dpcml ${main.version}, model ${main.fingerprint}`;
  find("dial").classList.toggle("plain", !main.capabilities.interests);
  find("tab-new").disabled = !main.capabilities.recommend_new;
  find("tab-new").title = main.capabilities.recommend_new ? "" : `${main.model_class} cannot recommend to users who are not in its training data`;
  if (!second) return;
  find("compare-switch").hidden = false;
  find("compare-label").textContent = `Compare with ${second.model_class}`;
  find("compare").checked = state.compare;
  find("compare").addEventListener("change", (event) => { state.compare = event.target.checked; remember(); refresh(); });
}

async function start() {
  startTheme(() => document.querySelectorAll(".map").forEach((map) => map.redraw()));
  const wanted = new URLSearchParams(location.hash.slice(1));
  try {
    state.models = await api.models();
    state.mix = Math.min(1, Math.max(0, Number(wanted.get("mix")) || 0));
    state.compare = wanted.has("compare") && state.models.length > 1;
    startModels(); startTabs(); startDial(); startSearch();
    await startPicks();
    if (wanted.has("user")) await look({ user: wanted.get("user") });
  } catch (problem) {
    complain(problem);
  }
}

start();
