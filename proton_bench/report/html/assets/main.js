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
