// A list beside what is open of it, the first where the address names none; used for tasks and trajectories.
function desk(root, title, entries, fields, text, card, open) {
  const list = el("div", { class: "list" });
  const reading = el("div", { class: "reading" });
  const cards = new Map(entries.map((entry) => [entry, card(entry)]));
  const grid = el("div", { class: "desk" }, list, reading);
  root.append(el("h1", null, title));
  if (root.dataset.cap) root.append(el("p", { class: "notice" }, root.dataset.cap));
  root.append(toolbar(entries, fields, text, (shown) => {
    const nodes = entries.filter((entry) => shown.has(entry)).map((entry) => cards.get(entry));
    list.replaceChildren(...(nodes.length ? nodes : [el("p", { class: "empty" }, entries.length ? "Nothing fits these filters." : "There are none in this run.")]));
  }), grid);
  return (id, kind) => {
    const place = id ? entries.findIndex((entry) => entry.id === id) : entries.length ? 0 : -1;
    root.classList.toggle("open", Boolean(id) && place >= 0); // a narrow window shows the list first
    cards.forEach((node, entry) => (entry === entries[place] ? node.setAttribute("aria-current", "true") : node.removeAttribute("aria-current")));
    if (place < 0) {
      reading.replaceChildren(el("p", { class: "empty" }, id ? "It is not among those that this page carries." : ""));
      return;
    }
    const around = [entries[place - 1], entries[place + 1]];
    reading.replaceChildren(
      el("a", { class: "back", href: `#${root.id.replace("view-", "")}` }, `← ${title}`),
      ...open(entries[place], place),
      el("p", { class: "hint around" }, around[0] && link(kind, around[0].id, null, "← previous"), " ", around[1] && link(kind, around[1].id, null, "next →")));
    if (id) cards.get(entries[place]).scrollIntoView({ block: "nearest" });
    window.scrollTo(0, 0);
  };
}

function taskView(root) {
  const entries = block("tasks", []);
  return desk(root, "Tasks", entries,
    [["Every split", (task) => [task.split]], ["Every capability", (task) => task.capabilities], ["Every service", (task) => task.core], ["Every profile", (task) => [task.difficulty]]],
    (task) => `${task.id} ${task.text} ${task.core.join(" ")}`,
    (task) => link("task", task.id, null,
      el("span", { class: "text", dir: "auto" }, task.text),
      el("span", { class: "chips" }, chip(task.split, "accent"), el("span", { class: "sub" }, `${plural(task.visits, "visit")} · ${plural(task.edges, "edge")}`))),
    openTask);
}

function openTask(entry, place) {
  const task = block(`task-${place}`, null);
  const picture = task.picture;
  const tone = (service) => laneClass(picture, service);
  const origin = new Map(picture.visits.flatMap((visit) => visit.dots.map((dot) => [dot.id, visit.service])));
  const tint = (step) => tone(origin.get(step));
  const walk = drawWalk(picture);
  const rollouts = block("trajectories", []).filter((other) => other.task === entry.id);
  return [
    el("div", { class: "ident" }, el("code", null, entry.id), el("span", { class: "chips" }, chip(entry.split, "accent"), chip(entry.difficulty), entry.capabilities.map((name) => chip(words(name), "", meaningOf(WORDS.capabilities, name))))),
    meaningOf(WORDS.splits, entry.split) && el("p", { class: "hint" }, `${entry.split}: ${meaningOf(WORDS.splits, entry.split)}.`),
    el("h2", null, "Instruction"),
    el("p", { class: "prose" }, task.instruction),
    el("h2", null, "Walk"),
    el("div", { class: "panel" }, walk && walk.node, walk && legend(picture), walk && edgeList(walk, picture)),
    el("h2", null, "Rubric"),
    el("ul", { class: "panel rubric" }, task.criteria.map(criterion)),
    el("h2", null, "Reference solution"),
    el("div", { class: "panel" }, el("ol", { class: "steps" }, task.steps.map((step) => solutionStep(step, tone, tint)), answerStep(task.answer, tint)), namedValues(task.values, tint)),
    el("h2", null, "World"),
    world(task),
    rollouts.length > 0 && [el("h2", null, "Trajectories"), el("ul", { class: "chips" }, rollouts.map((other) => el("li", null, link("trajectory", other.id, null, chip(`${other.policy} #${other.rollout}`, other.succeeded ? "good" : "bad")))))],
  ].flat().filter(Boolean);
}

function legend(picture) {
  return el("p", { class: "legend" }, el("span", null, "● changes something"), el("span", null, "○ reads"), el("span", null, `${plural(picture.visits.length, "visit")} to ${plural(picture.lanes.length, "service")}`), picture.arrows.length > 0 && el("span", null, `${plural(picture.arrows.length, "value")} travel; point at one to follow it and read its name`));
}

function edgeList(walk, picture) {
  if (!walk.arrows.length) return null;
  const service = new Map(picture.visits.flatMap((visit) => visit.dots.map((dot) => [dot.id, visit.service])));
  return lazy(`${plural(walk.arrows.length, "information edge")}, and the criterion that fails without each`, () =>
    el("ul", { class: "edges" }, walk.arrows.map((arrow, place) => {
      const node = el("li", null, el("span", { class: `val ${laneClass(picture, service.get(arrow.source))}` }, arrow.label), " ",
        el("span", { class: `lane ${laneClass(picture, service.get(arrow.source))}` }, arrow.source), " → ", el("span", { class: `lane ${laneClass(picture, service.get(arrow.target))}` }, arrow.target),
        el("span", { class: "sub" }, ` ${words(arrow.criterion)}`));
      hover(node, walk.focus, (_, other) => other === place);
      return node;
    })));
}

function criterion(item) {
  const initially = item.initially ? chip("holds at the start", "warn") : chip("must be brought about", "");
  const checked = () => el("p", { class: "words", dir: "auto" }, "checked as: ", item.words);
  return el("li", null, el("span", { class: "mark note" }, item.initially ? "=" : "→"), lazy([el("span", { dir: "auto" }, item.description), " ", initially], checked, { class: "what" }));
}

function solutionStep(step, tone, tint) {
  return el("li", null, el("span", { class: "id" }, step.id), el("div", null,
    el("span", { class: `lane ${tone(step.service)}` }, step.service), " ", el("code", null, step.tool), " ",
    step.effect === "write" && chip("write", "accent"), step.after.length > 0 && el("span", { class: "sub" }, ` after ${step.after.join(", ")}`),
    step.arguments.length > 0 && pairs(step.arguments.map(([name, parts]) => [name, ...spoken(parts, tint)]), "args")));
}

function answerStep(answer, tint) {
  if (!answer.length) return null;
  return el("li", null, el("span", { class: "id" }, "↩"), el("div", null, el("span", { class: "lane" }, "final answer"), pairs(answer.map(([label, parts]) => [label, ...spoken(parts, tint)]), "args")));
}

function namedValues(values, tint) {
  if (!values.length) return null;
  return lazy(`${plural(values.length, "named value")}: where each comes from`, () =>
    pairs(values.map(([name, , parts]) => [name, ...spoken(parts, tint)]), "args"));
}

function world(task) {
  const nothing = el("p", { class: "hint" }, "None.");
  const planted = task.plants.map(([what, values, facts]) => el("li", null, el("div", { class: "what" }, what), Object.keys(facts).length > 0 && pairs(Object.entries(facts).map(([name, value]) => [name, brief(value)]), "args"), json("values", values)));
  const reacting = task.reactions.map(([when, moves]) => el("li", null, el("div", { class: "what", dir: "auto" }, `Once this holds: ${when}`), moves.map(([what, values]) => [el("div", null, what), pairs(Object.entries(values).map(([name, value]) => [name, brief(value)]), "args")])));
  return el("div", { class: "grid2" },
    el("div", { class: "panel" }, el("h3", null, "Planted before the start"), planted.length ? el("ul", { class: "world" }, planted) : nothing.cloneNode(true)),
    el("div", { class: "panel" }, el("h3", null, "The world's own moves"), reacting.length ? el("ul", { class: "world" }, reacting) : nothing.cloneNode(true)),
    el("div", { class: "panel" }, el("h3", null, "Distractors"), task.distractors.length ? el("p", { class: "chips" }, task.distractors.map(([name, tools]) => chip(`${name} · ${plural(tools, "tool")}`))) : nothing.cloneNode(true),
      el("h3", null, "Made with"), pairs([["author", task.author], ["starts", task.start_time], ["universe", `${task.seed} (${task.scale})`], ["shape", el("code", null, task.shape), task.shape_words.map(([part, meaning]) => el("div", { class: "sub" }, `${part}: ${meaning}`))]], "args")));
}
