const OUTCOMES = { verified: "good", world_model: "warn", quarantined: "bad" };

function serviceView(root) {
  const entries = block("services", []);
  root.append(
    el("h1", null, "Services"),
    el("p", { class: "hint" }, "By domain, then by name. Each opens to show its tools, how they were judged, and the evidence."),
    el("p", { class: "hint" }, Object.entries(WORDS.outcomes).map(([name, meaning]) => [chip(words(name), OUTCOMES[name]), ` ${meaning}. `])));
  if (!entries.length) {
    root.append(el("p", { class: "hint" }, "This run has no services."));
    return () => {};
  }
  const rows = new Map(entries.map((entry, place) => [entry, serviceRow(entry, place)]));
  const body = el("tbody");
  const heads = [["Service"], ["Origin", "wide"], ["Tools verified", "num"], ["", "meter"], ["Tables", "num wide"]];
  root.append(toolbar(
    entries,
    [["Every domain", (entry) => [entry.domain]], ["Every origin", (entry) => [entry.origin]]],
    (entry) => `${entry.id} ${entry.title} ${entry.domain}`,
    (shown) => body.replaceChildren(...byDomain(entries.filter((entry) => shown.has(entry)), rows)),
  ));
  root.append(el("table", { class: "services" }, el("thead", null, el("tr", null, heads.map(([name, kind]) => el("th", { class: kind }, name)))), body));
  return (id) => {
    const found = entries.find((entry) => entry.id === id);
    if (found) rows.get(found).open();
  };
}

// Rows in the order of the entries, with a heading where a domain begins.
function byDomain(entries, rows) {
  return entries.flatMap((entry, place) => {
    const isFirst = place === 0 || entries[place - 1].domain !== entry.domain;
    const inIt = entries.filter((other) => other.domain === entry.domain).length;
    const heading = () => el("tr", { class: "domain" }, el("th", { colspan: 5, scope: "rowgroup" }, entry.domain, el("span", { class: "sub" }, ` ${plural(inIt, "service")}`)));
    return [...(isFirst ? [heading()] : []), ...rows.get(entry).nodes()];
  });
}

function serviceRow(entry, place) {
  const toggle = el("button", { type: "button", "aria-expanded": "false", dir: "auto" }, entry.title || entry.id);
  const row = el("tr", { class: "row" },
    el("td", { class: "name" }, toggle, entry.title && entry.title !== entry.id && el("span", { class: "sub", dir: "auto" }, entry.id)),
    el("td", { class: "wide" }, chip(entry.origin, entry.origin === "library" ? "accent" : "")),
    el("td", { class: "num" }, `${number(entry.verified)} / ${number(entry.tools)}`),
    el("td", { class: "meter" }, track(entry.tools ? entry.verified / entry.tools : 0)),
    el("td", { class: "num wide" }, number(entry.tables)));
  let detail = null;
  const set = (open) => {
    if (open && !detail) detail = el("tr", { class: "detail" }, el("td", { colspan: 5 }, serviceDetail(block(`service-${place}`, null), entry)));
    row.classList.toggle("open", open);
    toggle.setAttribute("aria-expanded", String(open));
    if (open) row.after(detail);
    else if (detail) detail.remove();
  };
  row.addEventListener("click", () => set(!row.classList.contains("open")));
  return {
    nodes: () => (row.classList.contains("open") ? [row, detail] : [row]),
    open: () => {
      set(true);
      row.scrollIntoView({ block: "start" });
    },
  };
}

function serviceDetail(service, entry) {
  const facts = [["author", service.author], ["source", service.source], ["package", el("code", null, service.digest.slice(0, 16))], ["domain", entry.domain]];
  return [
    el("p", { dir: "auto" }, service.description),
    pairs(facts, "facts"),
    el("p", { class: "chips" }, service.tables.map(([name, entity, fields]) => el("span", { class: "chip", title: fields.join(", ") }, `${name}: ${plural(fields.length, "field")}`))),
    el("div", { class: "tools" }, service.tools.map(toolCard)),
  ];
}

function toolCard(tool) {
  const summary = [
    el("b", { dir: "auto" }, tool.name),
    chip(words(tool.outcome), OUTCOMES[tool.outcome]),
    tool.effect && chip(tool.effect),
    el("span", { class: "reason", dir: "auto" }, tool.reason),
  ];
  const evidence = () => el("div", { class: "inner" },
    el("p", { dir: "auto" }, tool.description),
    tool.repairs.length > 0 && el("p", { class: "hint" }, "Repaired when it was read: ", tool.repairs.map(words).join(", ")),
    tool.card.length > 0 && pairs(tool.card, "facts"),
    tool.checks.length > 0 && el("table", { class: "checks" }, el("tbody", null, tool.checks.map(checkRow))));
  return lazy(summary, evidence);
}

function checkRow([name, passed, detail, cases, isGate]) {
  const seen = passed || isGate ? mark(passed, passed ? "passed" : "failed") : el("span", { class: "mark note", title: "evidence only" }, "–");
  return el("tr", null, el("td", null, seen), el("td", null, words(name)), el("td", { dir: "auto" }, detail), el("td", { class: "num" }, cases ? plural(cases, "case") : ""));
}
