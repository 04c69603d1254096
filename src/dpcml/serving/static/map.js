// The map: items as dots, liked items in the colour of their interest, recommendations as rings, interests as diamonds
// with letters. The lists hold the same information, for people who cannot see the map.
import { make } from "./dom.js";

const HIT = 10; // distance in pixels at which the pointer hits a dot
const PAD = 18;
const ROOM = 25; // minimum distance between two diamonds in pixels

export function drawMap(items, { interests, past, recommended, marks, open }) {
  const canvas = make("canvas", { role: "img", "aria-label": spoken(items, interests, marks) });
  const tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const box = make("div", { class: "map" }, canvas, tip);
  const owner = new Map([...past.map((item) => [String(item.id), null]), // liked, without a known interest
    ...interests.flatMap((one) => one.items.map((item) => [String(item.id), one.number]))]);
  const rings = new Map(recommended.map((item) => [String(item.id), item]));
  const most = Math.max(...items.map((item) => item.likes), 1);
  let width = 0, height = 0, near = null;

  const at = ([x, y]) => [PAD + ((x + 1) / 2) * (width - 2 * PAD), PAD + ((1 - y) / 2) * (height - 2 * PAD)];

  function dot(pen, [x, y], radius, fill, stroke) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    if (fill) { pen.fillStyle = fill; pen.fill(); }
    if (stroke) { pen.strokeStyle = stroke; pen.lineWidth = 2; pen.stroke(); }
  }

  function diamond(pen, [x, y], mark, colour, paper) {
    pen.beginPath();
    pen.moveTo(x, y - 13); pen.lineTo(x + 13, y); pen.lineTo(x, y + 13); pen.lineTo(x - 13, y); pen.closePath();
    pen.fillStyle = colour; pen.fill();
    pen.strokeStyle = paper; pen.lineWidth = 2; pen.stroke();
    pen.fillStyle = paper; pen.font = "700 12px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle";
    pen.fillText(mark.letter, x, y + 0.5);
  }

  function draw() {
    const rules = getComputedStyle(document.documentElement);
    const colour = (name) => rules.getPropertyValue(name).trim();
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale; canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const size = (item) => 2 + 2.5 * Math.sqrt(item.likes / most);
    for (const item of items) if (!owner.has(String(item.id))) dot(pen, at([item.x, item.y]), size(item), colour("--dot"));
    for (const item of items) {
      const number = owner.get(String(item.id));
      const fill = marks.get(number)?.variable || "--ink";
      if (number !== undefined) dot(pen, at([item.x, item.y]), size(item) + 1, colour(fill));
    }
    for (const item of items) {
      const ring = rings.get(String(item.id));
      const mark = ring && marks.get(ring.reason?.interest);
      if (ring) dot(pen, at([item.x, item.y]), size(item) + 3, colour("--card"), mark ? colour(mark.variable) : colour("--ink"));
    }
    const lying = interests.filter((one) => one.place);
    const places = apart(lying.map((one) => at(one.place)));
    lying.forEach((one, k) => {
      const mark = marks.get(one.number);
      diamond(pen, places[k], mark, colour(mark.variable), colour("--card"));
    });
  }

  function point(event) {
    const frame = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    let best = HIT * HIT;
    near = null;
    for (const item of items) {
      const [a, b] = at([item.x, item.y]);
      const apart = (a - x) ** 2 + (b - y) ** 2;
      if (apart < best) [best, near] = [apart, item];
    }
    tip.hidden = !near;
    canvas.style.cursor = near ? "pointer" : "default";
    if (!near) return;
    const [a, b] = at([near.x, near.y]);
    tip.textContent = near.title + (near.categories.length ? ` · ${near.categories.join(", ")}` : "");
    tip.style.left = `${Math.min(Math.max(a, 70), width - 70)}px`;
    tip.style.top = `${b}px`;
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => { point(event); if (near) open(near); });
  new ResizeObserver(draw).observe(canvas);
  box.redraw = draw;
  return box;
}

// Moves overlapping points apart, so that every letter can be read.
function apart(points) {
  const placed = [];
  for (let [x, y] of points) {
    for (let turn = 0; turn < 24 && placed.some(([a, b]) => Math.hypot(a - x, b - y) < ROOM); turn += 1) {
      x += 6 * turn * Math.cos(turn * 2.4); // outwards on a spiral
      y += 6 * turn * Math.sin(turn * 2.4);
    }
    placed.push([x, y]);
  }
  return placed;
}

function spoken(items, interests, marks) {
  const groups = interests.map((one) => `${marks.get(one.number).letter}, ${one.name}`).join("; ");
  return `Map of ${items.length} items; items that the same users like are close together. ${groups ? `Interests on it: ${groups}.` : ""}`;
}
