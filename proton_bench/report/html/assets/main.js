// Puts the page together from the data that stands in it.

const find = (id) => document.getElementById(id);

function makeFlame(data) {
  const flame = new Flame(data, {
    scroller: find("flame"),
    space: find("flame-space"),
    canvas: find("flame-canvas"),
    details: find("flame-details"),
    path: find("flame-path"),
    items: [find("flame-item-0"), find("flame-item-1")],
    search: find("flame-search"),
    found: find("flame-found"),
    widths: find("flame-widths"),
    out: find("flame-out"),
  });
  document.addEventListener("click", (event) => {
    const kernel = event.target.closest?.("circle.kernel");
    if (kernel) flame.lookUp(kernel.dataset.name);
  });
  return flame;
}

function makeTable(data, flame) {
  const parts = {
    table: find("kernels"),
    filter: find("kernels-filter"),
    more: find("kernels-more"),
    count: find("kernels-count"),
  };
  return new KernelTable(data, parts, (name) => flame?.lookUp(name));
}

function start() {
  const report = JSON.parse(find("report").textContent);
  listenToTheme(find("theme"));
  const flame = report.flame ? makeFlame(report.flame) : null;
  if (report.kernels) makeTable(report.kernels, flame);
  document.documentElement.dataset.ready = "yes";
}

start();
