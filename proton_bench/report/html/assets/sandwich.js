// The sandwich: one name over all its call paths, its callers above and what it calls below.

class Sandwich {
  constructor(parts, told) {
    this.parts = parts;
    this.told = told;
    this.graphs = null;
  }

  /** Shows a name of some rows in the widths in use; the rows may not have it. */
  show(rows, widths, name) {
    const { title, callers, callees } = this.parts;
    const found = rows.search(name, true);
    const outermost = found?.outermost.filter((row) => row > 0) ?? [];
    const isThere = outermost.length > 0;
    this.parts.box.classList.toggle("is-empty", !isThere);
    if (!isThere) {
      title.textContent = name
        ? `${name} is not in the graph: frames of libraries may be folded`
        : "Choose a name in the table, or a row of the flame graph and press s.";
      return;
    }
    const above = callersOf(rows, outermost);
    const below = calleesOf(rows, outermost);
    for (const each of [above, below]) each.useWidths(widths);
    const places = outermost.length === 1 ? "1 call path" : `${digits(outermost.length)} call paths`;
    title.replaceChildren(element("span", "name", name), ` ${places}, ${percentText(above.share(0))} of all`);
    if (this.graphs === null) {
      this.graphs = [new Flame(callers, above, this.told, true), new Flame(callees, below, this.told)];
    } else {
      this.graphs[0].setRows(above);
      this.graphs[1].setRows(below);
    }
    this.told.select(this.graphs[1], 0);
  }
}
