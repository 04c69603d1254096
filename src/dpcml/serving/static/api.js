// Requests to the server. An error response becomes a Problem with the server's reason. The server's hints are for
// programs; where HINTS has one for people, the page shows that.
import { find } from "./dom.js";

const ROOT = "/api/v1";
const HINTS = {
  unknown_id: "Search for a user by id, or pick one of the most active.",
  nothing_left: "They already like every item, or have hidden the rest.",
};

export class Problem extends Error {
  constructor(status, body) {
    super(body.reason || `The server answered with status ${status}.`);
    this.status = status;
    this.unknown = body.error === "unknown_id";
    this.hint = HINTS[body.error] ?? body.hint ?? "";
  }
}

async function call(method, path, { query = {}, body } = {}) {
  const address = new URL(ROOT + path, location.origin);
  for (const [key, value] of Object.entries(query))
    for (const one of [value].flat()) address.searchParams.append(key, one);
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(address, { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Problem(0, { reason: "The server cannot be reached.", hint: "Is it still running?" });
  }
  if (answer.status === 401) {
    await askForToken(Boolean(token));
    return call(method, path, { query, body });
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, content);
  return content;
}

let asking = null; // all requests without a token wait for the same dialog
function askForToken(wrong) {
  asking ||= new Promise((done) => {
    const dialog = find("ask-token");
    find("token-note").textContent = wrong ? "That token was not accepted." : "It is kept in this tab only.";
    find("token").value = "";
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", find("token").value);
      asking = null;
      done();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

const BY_ID = 100; // items that one request names: addresses must not become too long

export const models = () => call("GET", "/model");
export const users = (q, limit = 8) => call("GET", "/users", { query: { q, limit } }).then((found) => found.users);
export const items = (q, limit = 8) => call("GET", "/items", { query: { q, limit } }).then((found) => found.items);
export const history = (user, model) => call("GET", "/history", { query: { user, model } }).then((found) => found.items);
export const itemMap = (model) => call("GET", "/map", { query: { model } }).then((found) => found.items);
export const similarItems = (item, model, n = 8) => call("GET", "/similar/items", { query: { item, model, n } }).then((found) => found.items);
export const likedBy = (item, model, limit = 12) => call("GET", "/likes", { query: { item, model, limit } });
export const say = (user, item, action) => call("POST", "/feedback", { body: { user, item, action } });

// Items by id, in the order of the ids; those that the model does not know are left out.
export async function itemsById(ids) {
  const parts = Array.from({ length: Math.ceil(ids.length / BY_ID) }, (_, k) => ids.slice(k * BY_ID, (k + 1) * BY_ID));
  const found = await Promise.all(parts.map((id) => call("GET", "/items", { query: { id } })));
  return found.flatMap((answer) => answer.items);
}

const idsOf = (items) => items.map((item) => item.id);

export function interests(person, model) {
  const found = person.user === undefined
    ? call("POST", "/interests/new", { query: { model }, body: { history: idsOf(person.items) } })
    : call("GET", "/interests", { query: { model, user: person.user } });
  return found.then((answer) => answer.interests);
}

// The answer has items and, where nothing is known about the person, popular: true.
export function recommend(person, model, options) {
  const body = { explain: true, ...options };
  if (person.user !== undefined) {
    return call("POST", "/recommend", { query: { model }, body: { ...body, user: person.user, on_unknown: "error" } });
  }
  if (person.hidden.length && !options.items) body.exclude = idsOf(person.hidden);
  return call("POST", "/recommend/new", { query: { model }, body: { ...body, history: idsOf(person.items) } });
}
