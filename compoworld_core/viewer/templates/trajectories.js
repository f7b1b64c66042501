function trajectoryView(root) {
  const entries = block("trajectories", []);
  const texts = new Map(block("tasks", []).map((task) => [task.id, task.text]));
  return desk(root, "Trajectories", entries,
    [["Every outcome", (item) => [outcome(item)]], ["Every policy", (item) => [item.policy]], ["Every domain", (item) => item.domains]],
    (item) => `${item.id} ${item.task} ${item.policy} ${item.domains.join(" ")} ${texts.get(item.task) || ""}`,
    (item) => link("trajectory", item.id, null,
      el("span", { class: "text", dir: "auto" }, texts.get(item.task) || item.task),
      el("span", { class: "chips" }, verdictChip(item), el("span", { class: "sub", dir: "auto" }, `${item.policy} #${item.rollout} · ${plural(item.calls, "call")}`))),
    openTrajectory);
}

const outcome = (item) => (item.succeeded ? "verified" : item.error ? `error: ${item.error}` : "criteria fail");
const verdictChip = (item) => chip(item.succeeded ? "verified" : item.error ? `error: ${item.error}` : `${Math.round(100 * item.score)} % of the criteria`, item.succeeded ? "good" : item.error ? "bad" : "warn");

function openTrajectory(entry, place) {
  const detail = block(`trajectory-${place}`, null);
  const walk = drawWalk(detail.picture);
  const known = block("tasks", []).findIndex((task) => task.id === entry.task);
  const [prompt, completion] = detail.usage;
  return [
    el("div", { class: "ident" }, el("code", null, entry.id), el("span", { class: "chips" }, verdictChip(entry), chip(entry.policy), chip(`rollout ${entry.rollout}`), entry.predicted > 0 && chip(`${plural(entry.predicted, "call")} predicted by a world model`, "warn"))),
    el("p", { class: "hint" }, `${plural(entry.steps, "step")}, ${plural(entry.calls, "call")} of services' tools`, prompt + completion > 0 && `, ${number(prompt)} + ${number(completion)} tokens`, "; task ", known >= 0 ? link("task", entry.task, null, entry.task) : entry.task),
    detail.error && el("p", { class: "notice" }, `Ended with an error (${detail.error[0]}): ${detail.error[1]}`),
    known >= 0 && [el("h2", null, "Instruction"), el("p", { class: "prose" }, block(`task-${known}`, {}).instruction)],
    walk && [el("h2", null, "The way it went"), el("div", { class: "panel" }, walk.node, el("p", { class: "legend" }, el("span", null, "● changed something"), el("span", null, "○ read"), el("span", null, "dashed: refused")))],
    el("h2", null, "Verdict"),
    detail.verdict.length ? el("ul", { class: "panel rubric" }, detail.verdict.map(verdictRow)) : el("p", { class: "hint" }, "Nothing was judged."),
    el("h2", null, "Final answer"),
    detail.answer === null ? el("p", { class: "hint" }, "There is none.") : el("p", { class: "panel final prose" }, detail.answer),
    el("h2", null, "Step by step"),
    el("div", { class: "turns" }, detail.turns.map((turn, step) => turnRow(turn, step, detail.picture))),
    detail.left_out > 0 && el("p", { class: "notice" }, `${plural(detail.left_out, "further call")} are not on this page.`),
  ].flat().filter(Boolean);
}

function verdictRow([id, description, passed, initially]) {
  return el("li", null, mark(passed, passed ? "holds" : "does not hold"), el("div", { class: "what" }, el("span", { dir: "auto" }, description || words(id)), " ", initially && chip("held at the start", "")));
}

function turnRow(turn, step, picture) {
  return el("div", { class: "turn" }, el("span", { class: "id" }, step + 1), el("div", null,
    turn.thought && lazy("what it thought", () => el("p", { class: "thought" }, turn.thought)),
    turn.said && el("p", { class: "said" }, turn.said),
    turn.calls.map((call) => callCard(call, picture))));
}

function callCard(call, picture) {
  const kind = `call${call.is_real ? "" : " looking"}${call.succeeded ? "" : " refused"}`;
  const isObject = call.arguments !== null && typeof call.arguments === "object" && !Array.isArray(call.arguments);
  const entries = isObject ? Object.entries(call.arguments) : [["arguments", call.arguments]];
  const inline = !call.is_real && !call.is_malformed;
  const head = el("span", { class: "head" },
      mark(call.succeeded, call.succeeded ? "answered" : "refused"),
      call.service && el("span", { class: `lane ${laneClass(picture, call.service)}` }, call.service),
      el("span", { class: "what", dir: "auto" }, call.tool || call.name),
      inline && el("span", { class: "inline", dir: "auto" }, entries.map(([, value]) => brief(value)).join(", ")),
      call.code && chip(words(call.code), "bad"),
      call.world_model && chip("world model", "warn"),
      call.is_malformed && chip("arguments are not an object", "bad"),
      call.bug && chip("bug in the service", "bad"));
  if (inline && !call.changes.length && !call.bug) return el("div", { class: kind }, lazy(head, () => el("pre", null, pretty(call.envelope))));
  return el("div", { class: kind },
    head,
    !inline && entries.length > 0 && pairs(entries.map(([name, value]) => [name, brief(value)]), "args"),
    call.changes.map(changeRow),
    call.more_changes > 0 && el("p", { class: "hint" }, `${plural(call.more_changes, "further change")} are not on this page.`),
    call.bug && json("evidence of the bug", call.bug),
    json("result", call.envelope));
}

function changeRow(change) {
  const fields = change.fields.map(([name, before, after]) => [
    name,
    change.kind !== "created" && el("span", { class: "before" }, brief(before)),
    change.kind === "updated" && " → ",
    change.kind !== "deleted" && el("span", { class: "after" }, brief(after)),
  ]);
  return el("div", { class: `diff ${change.cause}` },
    el("div", { class: "title" }, el("b", { dir: "auto" }, `${change.row} ${change.key}`), el("span", { class: "sub" }, change.kind), change.cause === "reaction" && chip("the world's own move", "warn")),
    change.kind === "updated" ? pairs(fields, "fields") : lazy(plural(fields.length, "field"), () => pairs(fields, "fields"), { open: fields.length <= 14 }));
}
