// Requests to the server. An error response becomes a Problem with the server's reason. The server's hints are for
// programs; where HINTS has one for people, the page shows that.
import { find } from "./dom.js";

const ROOT = "/api/v1";
const HINTS = {
  unknown_id: "Search for a user by id, or pick one of the most active.",
  nothing_left: "They already like every item.",
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
  for (const [key, value] of Object.entries(query)) address.searchParams.set(key, value);
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

export const models = () => call("GET", "/model").then((found) => found.models);
export const users = (q, limit = 8) => call("GET", "/users", { query: { q, limit } }).then((found) => found.users);
export const items = (q, limit = 8) => call("GET", "/items", { query: { q, limit } }).then((found) => found.items);
export const history = (user, model) => call("GET", "/history", { query: { user, model } }).then((found) => found.items);
export const itemMap = (model) => call("GET", "/map", { query: { model } }).then((found) => found.items);

export function interests(person, model) {
  const found = person.user === undefined
    ? call("POST", "/interests/new", { query: { model }, body: { history: person.items.map((item) => item.id) } })
    : call("GET", "/interests", { query: { model, user: person.user } });
  return found.then((answer) => answer.interests);
}

export function recommend(person, model, options) {
  const body = { explain: true, ...options };
  const found = person.user === undefined
    ? call("POST", "/recommend/new", { query: { model }, body: { ...body, history: person.items.map((item) => item.id) } })
    : call("POST", "/recommend", { query: { model }, body: { ...body, user: person.user } });
  return found.then((answer) => answer.items);
}
