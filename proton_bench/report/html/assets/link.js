// The part of the page's address after "#": what is shown, so that a copied address shows it again.

const VIEWS = ["flame", "sandwich", "table"];

/** What an address asks for; what cannot be is left out. */
function readLink(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const wholeOf = (key) => (/^\d{1,9}$/.test(given.get(key) ?? "") ? Number(given.get(key)) : 0);
  return {
    view: VIEWS.includes(given.get("view")) ? given.get("view") : "flame",
    zoom: wholeOf("zoom"),
    metric: given.get("metric") ?? "",
    search: given.get("search") ?? "",
    name: given.get("name") ?? "",
    libraries: given.get("libraries") === "shown",
  };
}

/** The address of what is shown; what is as at the beginning is left out. */
function linkOf(state) {
  const kept = new URLSearchParams();
  if (state.view !== "flame") kept.set("view", state.view);
  if (state.zoom > 0) kept.set("zoom", String(state.zoom));
  for (const key of ["metric", "search", "name"]) if (state[key]) kept.set(key, state[key]);
  if (state.libraries) kept.set("libraries", "shown");
  return `#${kept}`;
}

/** Changes the address without a step of the browser's history. */
function writeLink(state) {
  const link = linkOf(state);
  if (link === (window.location.hash || "#")) return;
  window.history.replaceState(null, "", link === "#" ? window.location.href.replace(/#.*$/, "") : link);
}
