// The page: its state, the requests to the server, and where the responses are shown.
import * as address from "./address.js";
import * as api from "./api.js";
import { combo } from "./combo.js";
import { legend } from "./colours.js";
import { showDial, startDial } from "./dial.js";
import { find, make } from "./dom.js";
import { showItem, startItem } from "./item.js";
import { drawMap } from "./map.js";
import { startTheme } from "./theme.js";
import { changes, difference, interestCard, oneList, plainHistory, shares } from "./views.js";

const N = 12; // length of the list
const EACH = 6; // recommended items per interest, at most
const POOL = 100; // best items, from which each interest shows its own
const MAP_WAIT = 500; // milliseconds; after these the lists are shown without the map, which follows
const TOAST = 8000; // milliseconds in which a like or a hide can be taken back

// person: { user } or, for someone new, { items, hidden }
const state = { person: null, lastUser: null, mix: 0, compare: false, item: null, models: [], feedback: false, maps: {}, late: new Set(), turn: 0 };
const composing = () => state.person !== null && state.person.user === undefined;
const shown = () => (state.compare ? state.models : state.models.slice(0, 1));
const same = (one, other) => String(one.id) === String(other.id);

function complain(problem) {
  const box = find("problem");
  box.hidden = !problem;
  if (problem) box.replaceChildren(make("strong", {}, problem.message), problem.hint ? make("span", {}, ` ${problem.hint}`) : "");
}

// Show a user, or someone new.
function look(person, { push = true, example = false } = {}) {
  state.person = person;
  state.turn += 1; // responses for the previous person are ignored
  complain(null);
  const known = person.user !== undefined;
  if (known) state.lastUser = person.user;
  chooseTab(known ? "user" : "new");
  find("intro").hidden = !example;
  find("found").hidden = false;
  for (const pick of find("users").querySelectorAll("button"))
    pick.setAttribute("aria-current", String(known && pick.dataset.id === String(person.user)));
  if (!known) showComposed(person);
  find("person").textContent = known ? `User ${person.user}` : "Someone new";
  find("adopt").hidden = !known || !state.models[0].capabilities.recommend_new;
  address.write(state, push);
  return refresh();
}

async function refresh() {
  const turn = ++state.turn;
  const { person } = state;
  find("columns").setAttribute("aria-busy", "true");
  try {
    const found = await Promise.all(shown().map((model) => ask(person, model)));
    if (turn !== state.turn) return; // a later request has started
    complain(null);
    show(found);
  } catch (problem) {
    if (turn !== state.turn) return;
    find("columns").replaceChildren();
    find("found").hidden = Boolean(problem.unknown); // there is no user to show
    complain(problem);
  } finally {
    if (turn === state.turn) find("columns").removeAttribute("aria-busy");
  }
}

// All responses of one model for a person. The second model may not know the user; the first is shown nevertheless.
async function ask(person, model) {
  try {
    const empty = person.user === undefined && !person.items.length;
    const mixed = model.capabilities.interests && !empty;
    const [groups, { items: list, popular }, map] = await Promise.all([
      mixed ? api.interests(person, model.name) : [],
      api.recommend(person, model.name, { n: N, ...(mixed ? { mix: state.mix, mix_by: "interests" } : {}) }),
      itemMap(model),
    ]);
    const each = groups.length > 1 ? (await api.recommend(person, model.name, { n: POOL })).items : list;
    const past = mixed ? [] : person.items || await api.history(person.user, model.name);
    return { model, groups, list, each, map, past, popular };
  } catch (problem) {
    delete state.maps[model.name];
    if (model.name === "main") throw problem;
    return { model, problem };
  }
}

// The map of a model, or null if it is still being drawn: then all is asked for again when it is there.
function itemMap({ name }) {
  const map = (state.maps[name] ||= api.itemMap(name));
  const late = new Promise((resolve) => setTimeout(resolve, MAP_WAIT, null));
  return Promise.race([map, late]).then((items) => {
    if (!items && !state.late.has(name)) {
      state.late.add(name);
      map.then(refresh, (problem) => { delete state.maps[name]; complain(problem); }).finally(() => state.late.delete(name));
    }
    return items;
  });
}

function show(found) {
  const [first] = found;
  const marks = legend(first.groups);
  const change = difference(first.each.slice(0, N), first.list);
  find("columns").className = found.length > 1 ? "columns two" : "columns";
  find("columns").replaceChildren(...found.map(column));
  find("dial").classList.toggle("plain", first.groups.length < 2);
  find("shares").replaceChildren(shares(first.groups, first.list, marks));
  find("changes").replaceChildren(changes(change, marks, doable(), state.mix > 0));
  find("about").textContent = about(first);
  find("status").textContent = told(first, change);
}

function about({ groups, past, popular }) {
  if (popular) return "Nothing is known about them yet, so these are popular items. Like some.";
  const count = groups.reduce((sum, one) => sum + one.items.length, past.length);
  const many = groups.length > 1 ? `, ${groups.length} interests` : "";
  return `${count.toLocaleString("en")} ${count === 1 ? "like" : "likes"}${many}`;
}

function told({ groups, list }, { came }) {
  const who = composing() ? "someone new" : `user ${state.person.user}`;
  const many = groups.length ? `${groups.length} interests, ` : "";
  const moved = state.mix && groups.length > 1 ? ` The dial has brought ${came.length} of them.` : "";
  return `${many}${list.length} recommendations for ${who}. First: ${list[0].title}.${moved}`;
}

function column(found) {
  const { model } = found;
  const title = state.compare ? make("h3", { class: "model-name" }, model.model_class) : null;
  if (found.problem) return make("section", { class: "column" }, title, make("p", { class: "problem" }, found.problem.message));
  const { groups, list, each, map, past, popular } = found;
  const [marks, does] = [legend(groups), doable()];
  const came = new Set(difference(each.slice(0, N), list).came.map((one) => String(one.item.id)));
  const cards = groups.map((one) => interestCard(one, marks.get(one.number),
    each.filter((item) => item.reason?.interest === one.number).slice(0, EACH), does));
  const picture = map ? drawMap(map, { interests: groups, past, recommended: list, marks, open: does.open })
    : make("p", { class: "none" }, "The map is being drawn. It appears here by itself.");
  const nothing = !groups.length && !past.length;
  return make("section", { class: "column", "aria-label": model.model_class }, title,
    make("section", { class: "card recommended" }, make("h3", {}, popular ? "Popular" : "Recommended"),
      state.compare && groups.length > 1 ? shares(groups, list, marks) : null, oneList(list, marks, does, came)),
    make("div", { class: "beside" },
      nothing ? null : make("section", { class: "groups" }, make("h3", {}, groups.length ? "Interests" : "What they like"),
        make("div", { class: "cards" }, ...(groups.length ? cards : [plainHistory(past, does)]))),
      make("section", { class: "card around" }, make("h3", {}, "Map of items"), picture,
        map ? make("p", { class: "key" }, key(groups.length > 0, nothing)) : null)));
}

function key(withInterests, nothing) {
  const parts = nothing ? ["Rings: popular."] : ["Filled: liked.", "Rings: recommended."];
  if (withInterests) parts.push("Diamonds: the person's interests.");
  return `${parts.join(" ")} Click an item to open it.`;
}

// What can be done with an item.
function doable() {
  const user = (id) => look({ user: id });
  if (composing()) return { open, user, like: add, hide };
  return state.feedback ? { open, user, like: (item) => say(item, "like"), hide: (item) => say(item, "hide") } : { open, user };
}

function open(item) {
  state.item = item;
  address.write(state);
  const { person } = state;
  return showItem(item, { person, model: state.models[0], does: doable() });
}

// A known user: likes and hidden items go to the server, which changes the lists at once.
async function say(item, action) {
  const { user } = state.person;
  try {
    await api.say(user, item.id, action);
  } catch (problem) {
    return complain(problem);
  }
  toast(`${{ like: "Liked", hide: "Hidden", clear: "Taken back" }[action]}: ${item.title}`, action !== "clear" && (() => say(item, "clear")));
  return state.person.user === user ? refresh() : undefined;
}

let fading = 0;
function toast(text, undo) {
  clearTimeout(fading);
  const box = find("toast");
  const gone = () => { box.hidden = true; };
  box.replaceChildren(make("span", {}, text), undo ? make("button", { type: "button", onclick: () => { gone(); undo(); } }, "Undo") : "");
  box.hidden = false;
  fading = setTimeout(gone, TOAST);
}

// Someone new.
const liked = () => (composing() ? state.person.items : []);
const compose = (items, hidden = state.person.hidden) => look({ items, hidden }, { push: false });

function add(item) {
  if (!composing()) return look({ items: [item], hidden: [] });
  return liked().some((one) => same(one, item)) ? undefined : compose([...liked(), item]);
}

function hide(item) {
  const before = state.person;
  toast(`Hidden: ${item.title}`, () => composing() && compose(state.person.items, state.person.hidden.filter((one) => !same(one, item))));
  return compose(before.items.filter((one) => !same(one, item)), [...before.hidden, item]);
}

function drop(item) {
  compose(liked().filter((one) => one !== item));
  (find("liked").querySelector("button") || find("item-search")).focus();
}

function toggle(item) {
  const known = liked().find((one) => same(one, item));
  return known ? compose(liked().filter((one) => one !== known)) : add(item);
}

function showComposed({ items }) {
  find("liked-count").textContent = items.length ? `(${items.length})` : "";
  find("clear").hidden = !items.length;
  find("liked-none").hidden = items.length > 0;
  find("liked").replaceChildren(...items.map((item) => make("li", {},
    make("button", { type: "button", "aria-label": `Remove ${item.title}`, onclick: () => drop(item) }, item.title, make("span", { "aria-hidden": "true" }, " ×")))));
  for (const button of find("popular").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(items.some((one) => String(one.id) === button.dataset.id)));
}

function chooseTab(tab) {
  for (const name of ["user", "new"]) {
    const chosen = name === tab;
    find(`tab-${name}`).setAttribute("aria-selected", String(chosen));
    find(`tab-${name}`).tabIndex = chosen ? 0 : -1;
    find(`panel-${name}`).hidden = !chosen;
  }
}

function startTabs() {
  const tabs = [find("tab-user"), find("tab-new")];
  let composed = { items: [], hidden: [] }; // is there again when one comes back from a user
  const choose = (tab) => {
    if (tab === find("tab-new")) return composing() ? undefined : look(composed);
    if (!composing()) return undefined;
    composed = state.person;
    return look({ user: state.lastUser ?? state.models[0].example });
  };
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key) || tabs[1 - k].disabled) return;
      tabs[1 - k].focus();
      choose(tabs[1 - k]);
    });
  });
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
  find("clear").addEventListener("click", () => { compose([], []); find("item-search").focus(); });
  find("adopt").addEventListener("click", async () => {
    const items = await api.history(state.person.user, "main").catch((problem) => { complain(problem); return []; });
    if (items.length) look({ items, hidden: [] });
  });
  find("link").hidden = !navigator.clipboard; // browsers give it to safe addresses only
  find("link").addEventListener("click", () => navigator.clipboard.writeText(location.href).then(
    () => toast("The link is copied."), () => toast("The browser does not allow it: copy the address.")));
}

function startModels() {
  const [main, second] = state.models;
  find("model").replaceChildren(make("strong", {}, main.model_class),
    make("span", {}, `${main.users.toLocaleString("en")} users`), make("span", {}, `${main.items.toLocaleString("en")} items`));
  find("version").textContent = `dpcml ${main.version}, model ${main.fingerprint}`;
  find("tab-new").disabled = !main.capabilities.recommend_new;
  find("tab-new").title = main.capabilities.recommend_new ? "" : `${main.model_class} cannot recommend to users who are not in its training data`;
  if (!second) return;
  find("compare-switch").hidden = false;
  find("compare-label").textContent = `Compare with ${second.model_class}`;
  find("compare").addEventListener("change", (event) => { state.compare = event.target.checked; address.write(state); refresh(); });
}

// Show what the address says; without a person, an example.
async function follow() {
  const wanted = address.read();
  [state.mix, state.compare] = [wanted.mix, wanted.compare && state.models.length > 1];
  find("compare").checked = state.compare;
  showDial(state.mix);
  const known = wanted.composed && state.models[0].capabilities.recommend_new
    ? await Promise.all([wanted.liked, wanted.hidden, wanted.item ? [wanted.item] : []].map(api.itemsById))
    : [[], [], wanted.item ? await api.itemsById([wanted.item]) : []];
  const [items, hidden, [opened]] = known;
  state.item = opened ?? null;
  if (!opened && find("item").open) find("item").close();
  const looked = wanted.composed ? look({ items, hidden }, { push: false })
    : look({ user: wanted.user ?? state.models[0].example }, { push: false, example: wanted.user === null });
  if (opened) open(opened);
  await looked;
}

async function start() {
  startTheme(() => document.querySelectorAll(".map").forEach((map) => map.redraw()));
  try {
    const served = await api.models();
    [state.models, state.feedback] = [served.models, served.feedback];
    startModels(); startTabs(); startSearch();
    startItem(() => { state.item = null; address.write(state); });
    startDial((mix) => { state.mix = mix; address.write(state); refresh(); });
    await startPicks();
    await follow();
    addEventListener("popstate", () => follow().catch(complain));
  } catch (problem) {
    complain(problem);
  }
}

start();
