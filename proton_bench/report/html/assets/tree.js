// Rows of a flame graph: flat arrays in pre-order, walked without recursion.

class Rows {
  constructor(flame) {
    this.flame = flame;
    this.parents = Int32Array.from(flame.parents);
    this.length = this.parents.length;
    this.depths = new Int32Array(this.length);
    this.ends = new Int32Array(this.length);
    for (let row = 1; row < this.length; row++) {
      this.depths[row] = this.depths[this.parents[row]] + 1;
    }
    for (let row = this.length - 1; row >= 0; row--) {
      if (this.ends[row] === 0) this.ends[row] = row + 1;
      const above = this.parents[row];
      if (above >= 0 && this.ends[above] < this.ends[row]) this.ends[above] = this.ends[row];
    }
    this.useWidths(0);
  }

  /** Sizes the rows by one of the ways that the page has. */
  useWidths(place) {
    this.column = this.flame.columns[this.flame.widths[place].column];
    this.widths = Float64Array.from(widthValues(this.flame, place), (value) => (value > 0 ? value : 0));
    this.total = this.flame.totals?.[place] ?? this.widths[0];
    this.starts = new Float64Array(this.length);
    const free = new Float64Array(this.length);
    for (let row = 1; row < this.length; row++) {
      const above = this.parents[row];
      this.starts[row] = free[row] = free[above];
      free[above] += this.widths[row];
    }
  }

  /** The name alone, as names are compared. */
  text(row) {
    return this.flame.strings[this.flame.names[row]];
  }

  /** The name, with the device where there are several. */
  name(row) {
    const { deviceNames, devices } = this.flame;
    const device = deviceNames.length > 2 ? deviceNames[devices[row]] : "";
    return device ? `${this.text(row)} [${device}]` : this.text(row);
  }

  kind(row) {
    return this.flame.kindNames[this.flame.kinds[row]];
  }

  isLibrary(row) {
    return this.flame.isLibrary[this.flame.names[row]] === 1;
  }

  share(row) {
    return this.total > 0 ? this.widths[row] / this.total : 0;
  }

  firstChild(row) {
    return row + 1 < this.ends[row] ? row + 1 : -1;
  }

  /** The next row of the same depth to the right, not beyond `end`; -1 for none. */
  right(row, end) {
    const depth = this.depths[row];
    let next = this.ends[row];
    while (next < end && this.depths[next] !== depth) next++;
    return next < end ? next : -1;
  }

  /** The row of the same depth to the left, not before `first`; -1 for none. */
  left(row, first) {
    const depth = this.depths[row];
    let next = row - 1;
    while (next > first && this.depths[next] !== depth) next--;
    return next > first || (next === first && this.depths[next] === depth) ? next : -1;
  }

  /** The rows from the root down to a row. */
  path(row) {
    const found = [];
    for (let each = row; each >= 0; each = this.parents[each]) found.push(each);
    return found.reverse();
  }

  /** Which of its siblings a row is, from 1, and how many there are. */
  position(row) {
    const above = this.parents[row];
    if (above < 0) return [1, 1];
    let place = 0;
    let count = 0;
    for (let each = above + 1; each < this.ends[above]; each = this.ends[each]) {
      count++;
      if (each === row) place = count;
    }
    return [place, count];
  }

  /** What a row has beyond the rows below it, in the widths in use. */
  own(row) {
    let rest = this.widths[row];
    for (let each = row + 1; each < this.ends[row]; each = this.ends[each]) {
      rest -= this.widths[each];
    }
    return Math.abs(rest) <= this.widths[row] * 1e-6 ? 0 : rest;
  }

  /** Rows whose name is a text, or holds it, whatever its case; null for no text. */
  search(text, isWhole) {
    if (!text) return null;
    const wanted = text.toLowerCase();
    const { strings, names } = this.flame;
    const matching = strings.map((name) =>
      isWhole ? name === text : name.toLowerCase().includes(wanted),
    );
    const flags = new Uint8Array(this.length);
    const rows = [];
    const outermost = [];
    let covered = 0;
    let coveredEnd = 0;
    for (let row = 0; row < this.length; row++) {
      if (!matching[names[row]]) continue;
      flags[row] = 1;
      rows.push(row);
      if (row < coveredEnd) continue; // below one that was found: its width is counted
      outermost.push(row);
      covered += this.widths[row];
      coveredEnd = this.ends[row];
    }
    return { flags, rows, outermost, share: this.total > 0 ? covered / this.total : 0 };
  }
}

/** The values that size the rows; most often a column has them anyway. */
function widthValues(flame, place) {
  const { values, column } = flame.widths[place];
  return values ?? flame.columns[column].values;
}
