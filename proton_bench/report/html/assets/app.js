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

// Light and dark: what the system says, unless the reader chooses.

function listenToTheme(select) {
  const tell = () => document.dispatchEvent(new Event("themechange"));
  select.addEventListener("change", () => {
    document.documentElement.dataset.theme = select.value;
    tell();
  });
  darkSystem.addEventListener("change", tell);
  // A page that was open before comes back with the reader's choice in the field.
  document.documentElement.dataset.theme = select.value;
}

// The flame graph, the sandwich and the table, and what connects them.

class App {
  constructor(report, find, tip) {
    this.find = find;
    this.tip = tip;
    this.data = report.flame;
    this.kernels = report.kernels;
    this.state = readLink(window.location.hash);
    this.data.isLibrary = new Uint8Array(this.data.strings.length);
    for (const name of this.data.libraries) this.data.isLibrary[name] = 1;
    const told = {
      select: (flame, row) => this.selected(flame, row),
      zoom: (flame, row) => this.zoomed(flame, row),
      hover: (flame, row, event) => this.hovered(flame, row, event),
      key: (flame, key) => this.actionOf(flame, key),
    };
    this.arrange();
    this.flame = new Flame(find("flame"), this.rows, told);
    this.sandwich = new Sandwich(
      {
        box: find("sandwich"),
        title: find("sandwich-title"),
        callers: find("sandwich-callers"),
        callees: find("sandwich-callees"),
      },
      told,
    );
    this.table = new NameTable(
      { scroller: find("table-scroll"), table: find("kernels"), count: find("table-count") },
      (name) => this.pick(name === this.state.name ? "" : name),
    );
    this.fillChoices();
    this.listen();
    this.apply();
  }

  /** Makes the rows: with or without frames of libraries. */
  arrange() {
    const whole = { ...this.data, sources: null };
    if (this.state.libraries || !this.data.libraries.length) {
      this.rows = new Rows(whole);
      this.rowOf = null;
    } else {
      const folded = withoutLibraries(whole);
      this.rows = new Rows(folded.flame);
      this.rowOf = folded.rowOf;
    }
    this.rows.useWidths(this.widths());
  }

  /** Which of the ways to size rows is chosen. */
  widths() {
    const place = this.data.widths.findIndex(({ title }) => title === this.state.metric);
    return Math.max(place, 0);
  }

  fillChoices() {
    const { find, data } = this;
    const metrics = find("metric");
    data.widths.forEach(({ title }) => metrics.append(new Option(title)));
    find("metric-tool").hidden = data.widths.length < 2;
    find("libraries-tool").hidden = data.libraries.length === 0;
    const isBoth = this.kernels !== null;
    find("table-of").value = isBoth ? "kernels" : "names";
    find("table-of").disabled = !isBoth;
  }

  listen() {
    const { find } = this;
    for (const view of VIEWS) {
      find(`view-${view}`).addEventListener("click", () => this.changeView(view));
    }
    find("metric").addEventListener("change", () => this.change({ metric: find("metric").value }));
    find("libraries").addEventListener("change", () => {
      this.change({ libraries: find("libraries").checked });
    });
    find("flame-out").addEventListener("click", () => this.flame.zoomOut());
    find("sandwich-open").addEventListener("click", () => this.open(this.flame));
    find("table-of").addEventListener("change", () => this.fillTable());
    find("flame-search").addEventListener("input", () => {
      this.change({ search: find("flame-search").value, name: "" });
    });
    find("flame-search").addEventListener("keydown", (event) => this.searchKey(event));
    document.addEventListener("keydown", (event) => this.slash(event));
    window.addEventListener("hashchange", () => {
      this.state = readLink(window.location.hash);
      this.arrange();
      this.apply();
    });
    document.addEventListener("click", (event) => {
      const found = event.target.closest?.("[data-name]");
      if (found) this.lookUp(found.dataset.name, found.dataset.top !== undefined);
    });
  }

  /** Shows everything as the state says. */
  apply() {
    const { find, state } = this;
    find("flame-search").value = state.search;
    find("libraries").checked = state.libraries;
    find("metric").value = this.data.widths[this.widths()].title;
    this.flame.setRows(this.rows, this.placeOf(state.zoom));
    this.fillTable();
    this.refresh();
  }

  /** Changes a part of the state, and shows that. */
  change(part) {
    const { zoom } = this.state;
    Object.assign(this.state, part);
    if ("libraries" in part) {
      const selected = this.sourceOf(this.flame.view.selected);
      this.arrange();
      this.flame.setRows(this.rows, this.placeOf(zoom), this.placeOf(selected));
      this.fillTable();
    } else if ("metric" in part) {
      this.rows.useWidths(this.widths());
      this.flame.setRows(this.rows, this.flame.view.zoom, this.flame.view.selected);
      this.state.zoom = this.sourceOf(this.flame.view.zoom);
      this.fillTable();
    }
    this.refresh();
  }

  /** Shows what hangs on the view, the search and the chosen name. */
  refresh() {
    const { find, state } = this;
    for (const view of VIEWS) {
      find(`view-${view}`).setAttribute("aria-pressed", String(view === state.view));
    }
    find("panes").dataset.view = state.view;
    const wanted = state.name || state.search;
    const found = this.rows.search(wanted, state.name !== "");
    this.flame.mark(found);
    find("flame-found").textContent = found ? this.foundText(found) : "";
    this.table.setFilter(state.search);
    this.table.show(state.name, true);
    this.describeSelected();
    if (state.name) this.markCircles(new Set([state.name]));
    else this.markCircles(namesBelow(this.rows, this.flame.view.selected));
    if (state.view === "sandwich") this.sandwich.show(this.rows, this.widths(), state.name);
    writeLink(state);
  }

  foundText(found) {
    return `${digits(found.rows.length)} found, ${percentText(found.share)} of all`;
  }

  fillTable() {
    const isKernels = this.find("table-of").value === "kernels" && this.kernels !== null;
    this.table.setData(isKernels ? this.kernels : everyName(this.rows));
    this.table.setFilter(this.state.search);
    this.table.show(this.state.name, true);
  }

  /** Chooses a name: it is marked in the graph and in the table. */
  pick(name) {
    this.change({ name });
    if (name && this.state.view !== "sandwich") {
      this.flame.view.selected = 0;
      this.flame.nextFound(false);
    }
  }

  /** Goes to a name from outside of the graph: a circle of a plot, or a test right below the root. */
  lookUp(name, isTop) {
    this.find("panes").parentElement.scrollIntoView({ block: "nearest" });
    if (!isTop) {
      this.change({ view: "flame", name });
      this.flame.view.selected = 0;
      this.flame.nextFound(false);
    } else {
      this.change({ view: "flame", name: "" });
      for (let row = 1; row < this.rows.length; row = this.rows.ends[row]) {
        if (this.rows.text(row) === name) this.flame.zoomTo(row);
      }
    }
    this.find("flame").focus();
  }

  /** The sandwich is that of the row or the name that was selected last. */
  changeView(view) {
    if (view === "sandwich" && this.state.view !== view) this.open(this.flame);
    else this.change({ view });
  }

  /** Opens the sandwich of the selected row. */
  open(flame) {
    const { selected } = flame.view;
    const isRoot = flame === this.flame && selected === 0;
    this.change({ view: "sandwich", name: isRoot ? this.state.name : flame.rows.text(selected) });
  }

  // -- what a graph tells ------------------------------------------------------------------------
  selected(flame, row) {
    if (flame === this.flame) this.describeSelected();
    else describe(this.find("flame-details"), flame.rows, row);
    this.table.show(flame.rows.text(row), true);
    this.markCircles(namesBelow(flame.rows, row));
  }

  /** Marks the circles of these kernels in the plots. */
  markCircles(names) {
    for (const circle of document.querySelectorAll("circle.kernel")) {
      circle.classList.toggle("chosen", names.has(circle.dataset.name));
    }
  }

  zoomed(flame, row) {
    if (flame !== this.flame) return;
    this.state.zoom = this.sourceOf(row);
    this.describeSelected();
    writeLink(this.state);
  }

  hovered(flame, row, event) {
    if (row < 0) this.tip.hide();
    else this.tip.show(event, (box) => describe(box, flame.rows, row));
  }

  actionOf(flame, key) {
    if (key === "s") return () => this.open(flame);
    if (key === "f") return () => this.change({ view: "flame" });
    if (key === "l" && this.data.libraries.length) {
      return () => {
        this.find("libraries").checked = !this.state.libraries;
        this.change({ libraries: !this.state.libraries });
      };
    }
    if (key === "n" || key === "N") return () => flame.nextFound(key === "N");
    return null;
  }

  describeSelected() {
    const { flame, rows } = this;
    describe(this.find("flame-details"), rows, flame.view.selected);
    this.find("flame-out").disabled = flame.view.zoom === 0;
    const path = pathSteps(rows, flame.view.zoom, (row) => flame.zoomTo(row));
    this.find("flame-path").replaceChildren(...path);
  }

  // -- rows of the file and rows that are shown --------------------------------------------------
  sourceOf(row) {
    return this.rows.flame.sources?.[row] ?? row;
  }

  placeOf(source) {
    return this.rowOf ? (this.rowOf[source] ?? 0) : source;
  }

  // -- the search --------------------------------------------------------------------------------
  searchKey(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      this.flame.nextFound(event.shiftKey);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.find("flame-search").value = "";
      this.change({ search: "", name: "" });
      this.find("flame").focus();
    }
  }

  slash(event) {
    const isTyping = event.target.closest?.("input, select, textarea") !== null;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.find("flame-search").focus();
    this.find("flame-search").select();
  }
}

/** The names of a row and of all rows below it; none of the root, which would be all. */
function namesBelow(rows, row) {
  const found = new Set();
  if (row > 0) for (let each = row; each < rows.ends[row]; each++) found.add(rows.text(each));
  return found;
}

const PATH_ENDS = 4;

/** The rows above the zoom as buttons; of a long path the two ends. */
function pathSteps(rows, zoom, onStep) {
  const all = rows.path(zoom);
  const left = all.length - 2 * PATH_ENDS;
  const shown = left > 0 ? [...all.slice(0, PATH_ENDS), -1, ...all.slice(-PATH_ENDS)] : all;
  return shown.map((row) => {
    const item = element("li", "");
    if (row < 0) {
      item.textContent = `${left} more`;
      return item;
    }
    const button = element("button", "", readable(rows.name(row)));
    button.type = "button";
    button.title = rows.name(row);
    if (row === zoom) button.setAttribute("aria-current", "location");
    button.addEventListener("click", () => onStep(row));
    item.append(button);
    return item;
  });
}

// Puts the page together from the data that stands in it.

function start() {
  const find = (id) => document.getElementById(id);
  const report = JSON.parse(find("report").textContent);
  const tip = new Tip(find("tip"));
  listenToTheme(find("theme"));
  if (report.flame) new App(report, find, tip);
  else if (report.kernels) showTable(report.kernels, find);
  if (report.strip) {
    const parts = { box: find("strip"), canvas: find("strip-canvas"), text: find("strip-text") };
    new Strip(report.strip, parts, tip);
  }
  document.documentElement.dataset.ready = "yes";
}

/** Values that do not add up have a table and no graph. */
function showTable(kernels, find) {
  const parts = { scroller: find("table-scroll"), table: find("kernels"), count: find("table-count") };
  const table = new NameTable(parts, (name) => table.show(name, false));
  table.setData(kernels);
  const search = find("flame-search");
  search.addEventListener("input", () => table.setFilter(search.value));
}

start();
