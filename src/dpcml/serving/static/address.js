// What is shown, in the part of the address after #, so that a link shows the same to others.

const clamp = (value) => Math.min(1, Math.max(0, Number(value) || 0));

// user: an id; like, hide: ids of a composed person; new: somebody new without likes; mix; compare; item: an opened one.
export function read() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const [liked, hidden] = [parts.getAll("like"), parts.getAll("hide")];
  return { user: parts.get("user"), composed: parts.has("new") || liked.length + hidden.length > 0, liked, hidden,
    mix: clamp(parts.get("mix")), compare: parts.has("compare"), item: parts.get("item") };
}

export function write({ person, mix, compare, item }, push = false) {
  const parts = new URLSearchParams();
  if (person?.user !== undefined) parts.set("user", person.user);
  else if (person) {
    if (!person.items.length && !person.hidden.length) parts.set("new", "1");
    for (const one of person.items) parts.append("like", one.id);
    for (const one of person.hidden) parts.append("hide", one.id);
  }
  if (mix) parts.set("mix", mix);
  if (compare) parts.set("compare", "1");
  if (item) parts.set("item", item.id);
  const next = `#${parts}`;
  if (next === location.hash) return;
  if (push) history.pushState(null, "", next);
  else history.replaceState(null, "", next);
}
