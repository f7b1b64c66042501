// A walk as a picture: one lane per service, a dot per call, a pill per visit, an arrow per value that travels.
const LANES = 8;
const MOST_CROSSINGS = 2;
const SPOTS = 24;
const laneClass = (picture, service) => {
  const place = picture.lanes.indexOf(service);
  return place < 0 ? "" : `lane-${place % LANES}`;
};

function drawWalk(picture) {
  const dots = picture.visits.flatMap((visit) => visit.dots.map((dot) => ({ ...dot, service: visit.service })));
  if (!dots.length) return null;
  const lanes = [...picture.lanes];
  const told = picture.arrows.some((arrow) => arrow.target === "answer");
  if (told) lanes.push("answer");
  const left = Math.min(190, Math.max(90, ...lanes.map((name) => 7.4 * name.length + 26)));
  const dx = Math.min(74, Math.max(picture.arrows.length ? 50 : 30, 780 / (dots.length + 1)));
  const dy = picture.arrows.length ? 62 : 40;
  const top = picture.arrows.length ? 58 : 26;
  const width = left + dx * (dots.length + (told ? 1 : 0)) + 24;
  const height = top + dy * (lanes.length - 1) + 34;
  const y = (service) => top + dy * lanes.indexOf(service);
  const at = new Map(dots.map((dot, place) => [dot.id, { x: left + dx * (place + 0.5), y: y(dot.service), service: dot.service }]));
  if (told) at.set("answer", { x: left + dx * (dots.length + 0.5), y: y("answer"), service: "" });

  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `A walk over ${picture.lanes.length} services in ${picture.visits.length} visits` });
  root.style.minWidth = `${Math.round(0.8 * width)}px`;
  root.style.maxWidth = `${Math.round(1.2 * width)}px`;
  lanes.forEach((name) => {
    root.append(svg("line", { class: "rail", x1: left - 6, x2: width - 8, y1: y(name), y2: y(name) }));
    const shown = name.length > 22 ? `${name.slice(0, 21)}…` : name;
    root.append(svg("text", { class: `lane-name ${laneClass(picture, name)}`, x: 2, y: y(name) + 4 }, svg("title", null, name), shown));
  });
  root.append(...route(picture, at), ...dotMarks(picture, at));
  const boxes = [...at.values()].map((point) => [point.x - 8, point.y - 9, point.x + 8, point.y + 9]);
  for (const point of at.values()) boxes.push([point.x - 12, point.y + 14, point.x + 12, point.y + 29]);
  const arrows = picture.arrows.filter((arrow) => at.has(arrow.source) && at.has(arrow.target));
  const curves = arrows.map((arrow) => curveOf(arrow, at, dy));
  const traces = curves.map((curve) => Array.from({ length: SPOTS + 1 }, (_, place) => point(curve, place / SPOTS)));
  const named = new Set();
  const drawn = arrows.map((arrow, place) => {
    const value = `${arrow.source} ${arrow.label}`; // one that goes to several steps is named once
    const others = traces.filter((_, other) => other !== place);
    const label = named.has(value) ? null : labelPlace(curves[place], short(arrow.label), boxes, others, width);
    if (label && !label.crowded) named.add(value);
    return drawArrow(arrow, curves[place], label, at, picture);
  });
  root.append(...drawn);
  const focus = (wanted) => {
    root.classList.toggle("focus", wanted !== null);
    drawn.forEach((node, place) => {
      node.classList.toggle("hot", wanted !== null && wanted(arrows[place], place));
      if (node.classList.contains("hot")) root.append(node);
    });
  };
  drawn.forEach((node, place) => hover(node, focus, (_, other) => other === place));
  root.querySelectorAll("[data-step]").forEach((node) => {
    hover(node, focus, (arrow) => arrow.source === node.dataset.step || arrow.target === node.dataset.step);
  });
  return { node: el("div", { class: "walk" }, root), arrows, focus };
}

function hover(node, focus, wanted) {
  node.addEventListener("pointerenter", () => focus(wanted));
  node.addEventListener("pointerleave", () => focus(null));
}

function route(picture, at) {
  const nodes = [];
  picture.visits.forEach((visit, order) => {
    const first = at.get(visit.dots[0].id);
    const last = at.get(visit.dots[visit.dots.length - 1].id);
    const lane = laneClass(picture, visit.service);
    nodes.push(svg("rect", { class: `visit ${lane}`, x: first.x - 14, y: first.y - 14, width: last.x - first.x + 28, height: 28, rx: 14 }, svg("title", null, `visit ${order + 1}: ${visit.service}`)));
    const next = picture.visits[order + 1];
    if (!next) return;
    const to = at.get(next.dots[0].id);
    const middle = (last.x + to.x) / 2;
    nodes.unshift(svg("path", { class: "route", d: `M${last.x} ${last.y} C${middle} ${last.y} ${middle} ${to.y} ${to.x} ${to.y}` }));
  });
  return nodes;
}

function dotMarks(picture, at) {
  const nodes = picture.visits.flatMap((visit) =>
    visit.dots.map((dot) => {
      const point = at.get(dot.id);
      const kind = `${dot.is_write ? "write" : "read"}${dot.failed ? " failed" : ""}`;
      return svg("g", { "data-step": dot.id, class: laneClass(picture, visit.service) },
        svg("title", null, `${dot.id}: ${visit.service}.${dot.tool}${dot.is_write ? " (writes)" : ""}${dot.failed ? " — refused" : ""}`),
        svg("circle", { class: `dot ${kind}`, cx: point.x, cy: point.y, r: 6 }),
        svg("text", { class: "dot-id", x: point.x, y: point.y + 25 }, dot.id));
    }));
  const answer = at.get("answer");
  if (answer) nodes.push(svg("g", { "data-step": "answer" }, svg("rect", { class: "dot", x: answer.x - 7, y: answer.y - 6, width: 14, height: 12, rx: 3 })));
  return nodes;
}

function curveOf(arrow, at, dy) {
  const a = at.get(arrow.source);
  const b = at.get(arrow.target);
  const reach = b.x - a.x;
  const lift = Math.min(dy * 0.62, 16 + Math.abs(reach) * 0.12);
  const bend = Math.max(18, Math.min(Math.abs(reach) * 0.45, 130));
  const controls = a.y === b.y
    ? [{ x: a.x + reach * 0.2, y: a.y - lift * 1.3 }, { x: b.x - reach * 0.2, y: b.y - lift * 1.3 }]
    : [{ x: a.x + bend, y: a.y }, { x: b.x - bend * 0.55, y: b.y + Math.sign(a.y - b.y) * dy * 0.55 }];
  return [a, ...controls, b];
}

function drawArrow(arrow, curve, label, at, picture) {
  const [a, ...rest] = curve;
  const controls = rest.slice(0, 2);
  const b = curve[3];
  const reach = b.x - a.x;
  const tip = point(curve, 0.5 + 0.5 * (1 - 9 / Math.max(30, Math.hypot(reach, b.y - a.y))));
  const angle = Math.atan2(b.y - tip.y, b.x - tip.x);
  const end = { x: b.x - 8 * Math.cos(angle), y: b.y - 8 * Math.sin(angle) };
  const d = `M${r(a.x)} ${r(a.y)} C${r(controls[0].x)} ${r(controls[0].y)} ${r(controls[1].x)} ${r(controls[1].y)} ${r(end.x)} ${r(end.y)}`;
  const wing = (turn) => `${r(end.x - 7 * Math.cos(angle + turn))} ${r(end.y - 7 * Math.sin(angle + turn))}`;
  const middle = point(curve, 0.5);
  const place = label || { x: middle.x, y: middle.y - 1, crowded: true };
  const group = svg("g", { class: `arrow ${laneClass(picture, at.get(arrow.source).service)}${place.crowded ? " crowded" : ""}` });
  group.append(svg("title", null, `${arrow.label}: ${arrow.source} → ${arrow.target}; without it ${arrow.criterion} fails`));
  group.append(svg("path", { d }), svg("path", { class: "reach", d }));
  group.append(svg("path", { class: "head", d: `M${r(end.x)} ${r(end.y)} L${wing(0.42)} L${wing(-0.42)} Z` }));
  group.append(svg("text", { x: r(place.x), y: r(place.y) }, short(arrow.label)));
  return group;
}

// `notice_in_Notice_Board.title` as `notice.title`; the whole name stands in the title.
const short = (name) => {
  const plain = name.replace(/_in_[^.]*\./, ".");
  return plain.length > 30 ? `${plain.slice(0, 29)}…` : plain;
};
const r = (value) => Math.round(value * 10) / 10;

function point([a, b, c, d], t) {
  const u = 1 - t;
  const mix = (axis) => u * u * u * a[axis] + 3 * u * u * t * b[axis] + 3 * u * t * t * c[axis] + t * t * t * d[axis];
  return { x: mix("x"), y: mix("y") };
}

// Widths as the browser draws them, in the font of the page.
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text) {
  ruler.font = `10.5px ${getComputedStyle(document.documentElement).getPropertyValue("--sans") || "sans-serif"}`;
  return ruler.measureText(text).width;
}

const apart = (one, other) => one[2] <= other[0] || one[0] >= other[2] || one[3] <= other[1] || one[1] >= other[3];

// Of places along and beside the curve where the label covers no other text and no dot, that which the fewest other
// arrows cross. Where there is none, or many cross it, the label shows only when pointed at.
function labelPlace(curve, label, boxes, others, width) {
  const half = textWidth(label) / 2 + 3;
  let best = null;
  for (const t of [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78]) {
    const { x, y } = point(curve, t);
    for (const lift of [-1, -9, 11]) {
      const box = [x - half, y + lift - 10, x + half, y + lift + 4];
      if (box[0] < 0 || box[2] > width || box[1] < 0 || !boxes.every((other) => apart(box, other))) continue;
      const crossings = others.filter((other) => other.some((spot) => spot.x > box[0] && spot.x < box[2] && spot.y > box[1] && spot.y < box[3])).length;
      if (!best || crossings < best.crossings) best = { x, y: y + lift, box, crossings };
    }
  }
  if (best && best.crossings <= MOST_CROSSINGS) {
    boxes.push(best.box);
    return { x: best.x, y: best.y, crowded: false };
  }
  const middle = point(curve, 0.5);
  return { x: Math.min(Math.max(middle.x, half), width - half), y: middle.y - 1, crowded: true };
}
