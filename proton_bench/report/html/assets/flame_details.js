// What is said of a row in words: the box above the graph, the path to the zoom, the tree item.

const PATH_ENDS = 4;

class FlameDetails {
  constructor(rows, parts, onPath) {
    this.rows = rows;
    this.box = parts.details;
    this.path = parts.path;
    this.items = parts.items;
    this.scroller = parts.scroller;
    this.onPath = onPath;
    this.turn = 0;
  }

  show(row) {
    const { rows } = this;
    const name = element("span", "name", rows.name(row));
    const facts = element("div", "");
    for (const text of this.facts(row)) facts.append(element("span", "fact", text), " ");
    this.box.replaceChildren(name, facts);
    const note = rows.flame.notes[row];
    if (note) facts.append(element("span", "note", note));
  }

  facts(row) {
    const { rows } = this;
    const { columns } = rows.flame;
    const units = unitsOf(columns, row);
    const found = columns.map(
      (column, place) => `${column.title} ${valueText(column, column.values[row], units[place])}`,
    );
    const isComparison = rows.flame.tints !== null;
    if (rows.widths[0] > 0) {
      found.splice(1, 0, `${percentText(rows.widths[row] / rows.widths[0])} of all`);
      const above = rows.parents[row];
      if (above > 0 && rows.widths[above] > 0) {
        const share = percentText(rows.widths[row] / rows.widths[above]);
        found.splice(2, 0, `${share} of the row above`);
      }
    }
    const own = rows.own(row);
    if (!isComparison && rows.firstChild(row) >= 0 && own > 0) {
      found.push(`${valueText(columns[0], own, units[0])} of its own`);
    }
    if (rows.kind(row) !== "unknown") found.push(rows.kind(row));
    return found;
  }

  /** Tells assistive technology which row is selected: a new active item is read out. */
  announce(row) {
    const { rows } = this;
    this.turn = 1 - this.turn;
    const item = this.items[this.turn];
    const [place, count] = rows.position(row);
    item.textContent = `${rows.name(row)}, ${this.facts(row).join(", ")}`;
    item.setAttribute("aria-level", String(rows.depths[row] + 1));
    item.setAttribute("aria-posinset", String(place));
    item.setAttribute("aria-setsize", String(count));
    item.setAttribute("aria-selected", "true");
    item.hidden = false;
    this.items[1 - this.turn].hidden = true;
    this.scroller.setAttribute("aria-activedescendant", item.id);
  }

  /** Shows the rows above the zoom as buttons; of a long path the two ends. */
  showPath(zoom) {
    const all = this.rows.path(zoom);
    const left = all.length - 2 * PATH_ENDS;
    const shown = left > 0 ? [...all.slice(0, PATH_ENDS), -1, ...all.slice(-PATH_ENDS)] : all;
    this.path.replaceChildren(...shown.map((row) => this.step(row, zoom, left)));
  }

  step(row, zoom, left) {
    const item = element("li", "");
    if (row < 0) {
      item.textContent = `${left} more`;
      return item;
    }
    const button = element("button", "", this.rows.name(row));
    button.type = "button";
    button.title = this.rows.name(row);
    if (row === zoom) button.setAttribute("aria-current", "location");
    button.addEventListener("click", () => this.onPath(row));
    item.append(button);
    return item;
  }
}
