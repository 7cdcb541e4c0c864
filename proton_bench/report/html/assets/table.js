// The kernel table: sorted by a heading, filtered by a text, and no more rows than can be read.

const PAGE_ROWS = 100;
const NAME_COLUMN = -1;

class KernelTable {
  constructor(data, parts, onName) {
    this.names = data.names;
    this.lowered = data.names.map((name) => name.toLowerCase());
    this.columns = data.columns;
    this.units = unitsOf(data.columns);
    this.parts = parts;
    this.onName = onName;
    this.order = data.names.map((_, row) => row);
    this.sorted = null;
    this.limit = PAGE_ROWS;
    this.addHeadings();
    parts.filter.addEventListener("input", () => this.refill());
    parts.more.addEventListener("click", () => {
      this.limit += 10 * PAGE_ROWS;
      this.fill();
    });
    this.refill();
  }

  addHeadings() {
    const line = element("tr", "");
    this.headings = new Map();
    line.append(this.heading("name", "", NAME_COLUMN));
    this.columns.forEach((column, place) => {
      const unit = this.units[place].name;
      const hasUnit = !unit || column.title.endsWith(` ${unit}`);
      const title = hasUnit ? column.title : `${column.title} (${unit})`;
      const cell = this.heading(title, column.meaning, place);
      if (column.form !== "text") cell.className = "figure";
      line.append(cell);
    });
    this.parts.table.tHead.replaceChildren(line);
  }

  heading(title, meaning, place) {
    const cell = element("th", "");
    cell.scope = "col";
    const button = element("button", "", title);
    button.type = "button";
    if (meaning) button.title = meaning;
    button.addEventListener("click", () => this.sortBy(place));
    cell.append(button);
    this.headings.set(place, cell);
    return cell;
  }

  /** Sorts by a column: figures from the largest, texts from the first; again turns it round. */
  sortBy(place) {
    const isText = place === NAME_COLUMN || this.columns[place].form === "text";
    const before = this.sorted?.place === place ? this.sorted.isRising : !isText;
    const isRising = !before;
    this.sorted = { place, isRising };
    const values = place === NAME_COLUMN ? this.names : this.columns[place].values;
    const sign = isRising ? 1 : -1;
    this.order.sort((one, other) => comparison(values[one], values[other], sign) || one - other);
    for (const [each, cell] of this.headings) {
      if (each === place) cell.setAttribute("aria-sort", isRising ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    }
    this.refill();
  }

  refill() {
    const wanted = this.parts.filter.value.toLowerCase();
    this.shown = this.order.filter((row) => this.lowered[row].includes(wanted));
    this.limit = PAGE_ROWS;
    this.fill();
  }

  fill() {
    const rows = this.shown.slice(0, this.limit).map((row) => this.line(row));
    this.parts.table.tBodies[0].replaceChildren(...rows);
    const left = this.shown.length - rows.length;
    this.parts.more.hidden = left === 0;
    this.parts.more.textContent = `Show more (${digits(left)} left)`;
    this.parts.count.textContent = `${digits(this.shown.length)} of ${digits(this.names.length)}`;
  }

  line(row) {
    const line = element("tr", "");
    const name = element("th", "");
    name.scope = "row";
    const button = element("button", "link", this.names[row]);
    button.type = "button";
    button.addEventListener("click", () => this.onName(this.names[row]));
    name.append(button);
    line.append(name);
    this.columns.forEach((column, place) => {
      const value = column.values[row];
      const cell = element("td", column.form === "text" ? "" : "figure");
      cell.textContent = cellText(column, value, this.units[place]);
      if (column.signed && value) cell.classList.add(value > 0 ? "worse" : "better");
      line.append(cell);
    });
    return line;
  }
}

/** Compares two cells; those without a value stand last, whichever way it is sorted. */
function comparison(one, other, sign) {
  const isMissing = (value) => value === null || value === undefined;
  if (isMissing(one) || isMissing(other)) return isMissing(one) - isMissing(other);
  if (one === other) return 0;
  return one < other ? -sign : sign;
}
