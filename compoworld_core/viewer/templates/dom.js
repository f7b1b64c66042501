// Elements are made here and nowhere else: data only ever becomes text nodes, ids in a hash, or titles.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) throw new Error("listeners are added with addEventListener");
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function block(id, otherwise) {
  const node = document.getElementById(id);
  return node ? JSON.parse(node.textContent) : otherwise;
}

// What the project's own words mean, as `glossary.py` says it.
const WORDS = { splits: {}, outcomes: {}, capabilities: {}, ...block("words", {}) };

const link = (kind, id, attributes, ...children) =>
  el("a", { ...attributes, href: `#${kind}=${encodeURIComponent(id)}` }, ...children);
const chip = (text, kind, meaning) => el("span", { class: `chip ${kind || ""}`, dir: "auto", title: meaning ? `${text}: ${meaning}` : text }, text);
const meaningOf = (words, name) => (Object.hasOwn(words, name) ? words[name] : "");
const mark = (ok, title) => el("span", { class: `mark ${ok ? "good" : "bad"}`, title }, ok ? "✓" : "✗");
const words = (name) => String(name).replaceAll("_", " ");
const number = (value) => Number(value).toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const brief = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// A <details> whose content is built when it is first opened.
function lazy(summary, build, attributes) {
  const node = el("details", attributes, el("summary", null, summary));
  let built = false;
  const open = () => {
    if (!node.open || built) return;
    built = true;
    node.append(build());
  };
  node.addEventListener("toggle", open);
  if (node.open) open();
  return node;
}

const json = (summary, value) => lazy(summary, () => el("pre", null, pretty(value)));

// Text parts as `wording.spoken` writes them: plain text, and values by name with the step that they come from.
function spoken(parts, tone) {
  if (!Array.isArray(parts)) return [String(parts)];
  return parts.map((part) => {
    if (!Array.isArray(part)) return String(part);
    if (part[0] !== "value") return String(part[1]);
    return el("span", { class: `val ${tone ? tone(part[2]) : ""}`, title: part[2] ? `from step ${part[2]}` : "" }, part[1], part[2] && el("sup", null, part[2]));
  });
}

function pairs(entries, kind) {
  return el("dl", { class: kind }, entries.map(([name, ...value]) => [el("dt", { dir: "auto" }, name), el("dd", { dir: "auto" }, ...value)]));
}

function track(share) {
  const bar = svg("svg", { class: "track", "aria-hidden": "true" });
  bar.append(svg("rect", { class: "bed", width: "100%", height: "100%", rx: 3 }));
  bar.append(svg("rect", { class: "fill", width: `${(100 * share).toFixed(1)}%`, height: "100%", rx: 3 }));
  return bar;
}

// A search box and drop-downs; `change` is called with a predicate over index entries.
function toolbar(entries, fields, text, change) {
  const search = el("input", { type: "search", placeholder: "Search …", "aria-label": "Search" });
  const count = el("span", { class: "count", "aria-live": "polite" });
  const selects = fields.map(([label, of]) => {
    const values = [...new Set(entries.flatMap(of))].sort();
    return [el("select", { "aria-label": label }, el("option", { value: "" }, label), values.map((value) => el("option", { value: `=${value}` }, words(value)))), of];
  });
  const update = () => {
    const needle = search.value.trim().toLowerCase();
    const passes = (entry) =>
      (!needle || text(entry).toLowerCase().includes(needle)) &&
      selects.every(([select, of]) => !select.value || of(entry).includes(select.value.slice(1)));
    const shown = entries.filter(passes);
    count.textContent = shown.length === entries.length ? number(entries.length) : `${number(shown.length)} of ${number(entries.length)}`;
    change(new Set(shown));
  };
  for (const input of [search, ...selects.map(([select]) => select)]) input.addEventListener("input", update);
  update();
  return el("div", { class: "toolbar" }, search, selects.filter(([select]) => select.options.length > 2).map(([select]) => select), count);
}
