// The address says what is open: #services, #task=<id>, … so that every part can be linked to.
const VIEWS = {
  overview: { items: null, build: () => () => {} },
  services: { items: "service", build: serviceView },
  tasks: { items: "task", build: taskView },
  trajectories: { items: "trajectory", build: trajectoryView },
};
const built = new Map();

function address() {
  const [kind, id] = location.hash.slice(1).split(/=(.*)/s);
  const name = Object.keys(VIEWS).find((view) => view === kind || VIEWS[view].items === kind) || "overview";
  try {
    return [name, id === undefined ? "" : decodeURIComponent(id)];
  } catch {
    return [name, ""];
  }
}

function show() {
  const [name, id] = address();
  for (const view of Object.keys(VIEWS)) document.getElementById(`view-${view}`).hidden = view !== name;
  for (const item of document.querySelectorAll("[data-view]")) {
    if (item.dataset.view === name) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  if (!built.has(name)) built.set(name, VIEWS[name].build(document.getElementById(`view-${name}`)));
  if (!id) window.scrollTo(0, 0);
  built.get(name)(id, VIEWS[name].items);
}

window.addEventListener("hashchange", show);
show();
