// A table of names: sorted by a heading, filtered by a text; only rows that can be seen are built.

const LINE_HEIGHT = 24; // as in table.css
const SPARE_LINES = 8;
const FEW_LINES = 10;
const NAME_COLUMN = -1;
const MAX_COLUMN = 18; // letters
const NAME_WIDTH = "min(320px, 45vw)"; // of the narrowest column of names
const LETTER_WIDTH = 7.5; // of the font, on average

class NameTable {
  /** `onPick` gets a name that was chosen. */
  constructor(parts, onPick) {
    this.parts = parts;
    this.onPick = onPick;
    this.picked = "";
    this.filter = "";
    const { scroller, table } = parts;
    scroller.addEventListener("scroll", () => this.fill());
    new ResizeObserver(() => this.fill()).observe(scroller);
    table.addEventListener("keydown", (event) => this.press(event));
    table.tBodies[0].addEventListener("click", (event) => {
      const line = event.target.closest("tr[data-place]");
      if (line) this.pick(Number(line.dataset.place));
    });
  }

  /** Shows other names with their columns, in their order. */
  setData({ names, columns }) {
    this.names = names;
    this.lowered = names.map((name) => name.toLowerCase());
    this.columns = columns;
    this.units = unitsOf(columns);
    this.order = names.map((_, row) => row);
    this.sorted = null;
    this.addHeadings();
    this.refill();
  }

  addHeadings() {
    const line = element("tr", "");
    this.headings = new Map();
    line.append(this.heading("name", "", NAME_COLUMN));
    const sizes = element("colgroup", "");
    sizes.append(element("col", ""));
    let width = 0;
    this.columns.forEach((column, place) => {
      const unit = this.units[place].name;
      const hasUnit = !unit || column.title.endsWith(` ${unit}`);
      const title = hasUnit ? column.title : `${column.title} (${unit})`;
      const cell = this.heading(title, column.meaning, place);
      if (column.form !== "text") cell.className = "figure";
      line.append(cell);
      const words = title.split(" ").map((word) => word.length + 1);
      const letters = Math.min(MAX_COLUMN, Math.max(...words, this.widest(place)));
      const size = element("col", "");
      size.style.width = `calc(${letters}ch + 16px)`;
      sizes.append(size);
      width += letters;
    });
    const { table } = this.parts;
    table.querySelector("colgroup")?.remove();
    table.prepend(sizes);
    table.style.minWidth = `calc(${width}ch + ${16 * this.columns.length}px + ${NAME_WIDTH})`;
    table.tHead.replaceChildren(line);
  }

  /** How many letters the cells of a column need: its largest values are its longest. */
  widest(place) {
    const { values, form } = this.columns[place];
    const lengthOf = (value) => cellText(this.columns[place], value, this.units[place]).length;
    if (form === "text") return Math.max(0, ...values.slice(0, 1000).map(lengthOf));
    let [low, high] = [0, 0];
    for (const value of values) {
      if (value < low) low = value;
      else if (value > high) high = value;
    }
    return Math.max(lengthOf(low), lengthOf(high)) + 1; // of "<0.001", which is longer than both
  }

  heading(title, meaning, place) {
    const cell = element("th", "");
    cell.scope = "col";
    const button = element("button", "", title);
    button.type = "button";
    button.title = meaning ? `${title}: ${meaning}` : title;
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

  setFilter(text) {
    this.filter = text.toLowerCase();
    this.refill();
  }

  refill() {
    this.shown = this.order.filter((row) => this.lowered[row].includes(this.filter));
    const all = digits(this.names.length);
    this.parts.count.textContent =
      this.shown.length === this.names.length ? all : `${digits(this.shown.length)} of ${all}`;
    const isShort = this.names.length <= FEW_LINES;
    this.parts.scroller.closest(".screen")?.classList.toggle("is-short", isShort);
    this.parts.scroller.scrollTop = 0;
    this.fill();
  }

  /** Builds the rows in sight, between two empty ones as high as all others. */
  fill() {
    if (!this.shown) return;
    const { scroller, table } = this.parts;
    const count = this.shown.length;
    const first = Math.max(0, Math.floor(scroller.scrollTop / LINE_HEIGHT) - SPARE_LINES);
    const seen = Math.ceil(scroller.clientHeight / LINE_HEIGHT) + 2 * SPARE_LINES;
    const last = Math.min(count, first + seen);
    const { clientWidth } = this.headings.get(NAME_COLUMN);
    this.room = Math.floor((clientWidth - 16) / LETTER_WIDTH);
    const lines = this.shown.slice(first, last).map((row, place) => this.line(row, first + place));
    const [above, below] = [first, count - last].map((lines) => {
      const gap = element("tr", "gap");
      gap.setAttribute("aria-hidden", "true");
      gap.style.height = `${lines * LINE_HEIGHT}px`;
      return gap;
    });
    const focused = document.activeElement?.closest?.("tr[data-place]")?.dataset.place;
    table.tBodies[0].replaceChildren(above, ...lines, below);
    table.setAttribute("aria-rowcount", String(count + 1));
    if (focused !== undefined) this.buttonAt(Number(focused))?.focus({ preventScroll: true });
  }

  buttonAt(place) {
    return this.parts.table.querySelector(`tr[data-place="${place}"] button`);
  }

  line(row, place) {
    const line = element("tr", "");
    line.dataset.place = String(place);
    line.setAttribute("aria-rowindex", String(place + 2));
    if (this.names[row] === this.picked) line.setAttribute("aria-selected", "true");
    const name = element("th", "");
    name.scope = "row";
    const button = element("button", "link", shortened(readable(this.names[row]), this.room));
    button.type = "button";
    button.title = this.names[row];
    name.append(button);
    line.append(name);
    this.columns.forEach((column, each) => line.append(this.cell(column, row, this.units[each])));
    return line;
  }

  cell(column, row, unit) {
    const value = column.values[row];
    const cell = element("td", column.form === "text" ? "" : "figure");
    cell.textContent = cellText(column, value, unit);
    if (column.form === "text") cell.title = cell.textContent;
    if (column.signed && value) cell.classList.add(value > 0 ? "worse" : "better");
    if (column.form === "percent" && !column.signed) {
      cell.classList.add("part");
      cell.style.setProperty("--part", `${Math.min(Math.max(value ?? 0, 0), 100)}%`);
    }
    return cell;
  }

  pick(place) {
    const row = this.shown[place];
    if (row !== undefined) this.onPick(this.names[row]);
  }

  /** Marks a name; it is scrolled to if it is there. */
  show(name, isRevealed) {
    this.picked = name;
    const place = this.shown.findIndex((row) => this.names[row] === name);
    if (isRevealed && place >= 0) this.reveal(place);
    this.fill();
  }

  reveal(place) {
    const { scroller, table } = this.parts;
    const room = scroller.clientHeight - table.tHead.offsetHeight - LINE_HEIGHT;
    const top = place * LINE_HEIGHT;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
  }

  /** Arrow keys go from name to name. */
  press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const line = event.target.closest("tr[data-place]");
    if (step === undefined || !line) return;
    event.preventDefault();
    const place = Math.min(Math.max(Number(line.dataset.place) + step, 0), this.shown.length - 1);
    this.reveal(place);
    this.fill();
    this.buttonAt(place)?.focus({ preventScroll: true });
  }
}

/** A name with its two ends where it has no room: names that differ often do so at the end. */
function shortened(name, room) {
  if (name.length <= room) return name;
  const end = Math.floor((room - 1) / 2);
  return `${name.slice(0, room - 1 - end)}\u2026${name.slice(name.length - end)}`;
}

/** Compares two cells; those without a value stand last, whichever way it is sorted. */
function comparison(one, other, sign) {
  const isMissing = (value) => value === null || value === undefined || String(value) === "NaN";
  if (isMissing(one) || isMissing(other)) return isMissing(one) - isMissing(other);
  if (one === other) return 0;
  return one < other ? -sign : sign;
}

/** The table of every name of a flame graph: values over all its call paths. */
function everyName(rows) {
  const { flame } = rows;
  const summed = flame.columns.filter((column) => column.sums);
  const found = new Map();
  const nodeOf = (row) => {
    const name = flame.names[row];
    let node = found.get(name);
    if (!node) found.set(name, (node = { width: 0, own: 0, paths: 0, end: 0, sums: summed.map(() => null) }));
    return node;
  };
  for (let row = 1; row < rows.length; row++) {
    const node = nodeOf(row);
    node.own += rows.own(row);
    node.paths++;
    if (row < node.end) continue; // below itself: its values are counted
    node.end = rows.ends[row];
    node.width += rows.widths[row];
    summed.forEach((column, place) => {
      const value = column.values[row];
      if (value !== null) node.sums[place] = (node.sums[place] ?? 0) + Number(value);
    });
  }
  const all = [...found].sort(([, one], [, other]) => other.width - one.width);
  const nodes = all.map(([, node]) => node);
  const { title, form } = rows.column;
  const columns = summed.map((column, place) => ({
    ...column,
    values: nodes.map((node) => node.sums[place]),
  }));
  const share = (node) => (rows.total > 0 ? (100 * node.width) / rows.total : null);
  const added = [{ title: "share", form: "percent", values: nodes.map(share), meaning: `share of all ${title}` }];
  if (flame.tints === null) {
    const own = nodes.map((node) => node.own);
    // Beside the whole, and in its unit.
    const group = rows.column.group || title;
    columns[columns.findIndex((column) => column.title === title)].group = group;
    const meaning = "of rows of this name alone, without those below";
    added.push({ title: `own ${title}`, form, values: own, meaning, group });
  }
  columns.splice(1, 0, ...added);
  columns.push({ title: "paths", form: "count", values: nodes.map((node) => node.paths), meaning: "call paths" });
  return { names: all.map(([name]) => flame.strings[name]), columns };
}
