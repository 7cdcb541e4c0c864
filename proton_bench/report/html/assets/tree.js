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

// Makes a tree of rows of another one. Rows of one name below one parent become one row.

class Merger {
  /** Begins with a root that is called as a row of the source. */
  constructor(flame, row) {
    this.flame = flame;
    this.widths = flame.widths.map((_, place) => widthValues(flame, place));
    this.parents = [];
    this.sources = [];
    this.counts = [];
    this.sums = flame.columns.map(() => []);
    this.sizes = flame.widths.map(() => []);
    this.nodes = new Map();
    this.make(-1, row);
  }

  make(parent, named) {
    const node = this.parents.push(parent) - 1;
    this.sources.push(named);
    this.counts.push(0);
    for (const sums of this.sums) sums.push(null);
    for (const sizes of this.sizes) sizes.push(0);
    return node;
  }

  /** Returns the node below a parent that is called as a row. */
  below(parent, named) {
    const { names, kinds, devices, strings, kindNames, deviceNames } = this.flame;
    const what = (names[named] * kindNames.length + kinds[named]) * deviceNames.length + devices[named];
    const key = parent * strings.length * kindNames.length * deviceNames.length + what;
    let node = this.nodes.get(key);
    if (node === undefined) {
      node = this.make(parent, named);
      this.nodes.set(key, node);
    }
    return node;
  }

  /** Adds the values of a row to a node; what does not add up is only known of a single row. */
  add(node, row) {
    this.counts[node]++;
    const isFirst = this.counts[node] === 1;
    this.flame.columns.forEach((column, place) => {
      const sums = this.sums[place];
      const value = column.values[row];
      if (isFirst) sums[node] = value;
      else if (!column.sums) sums[node] = null;
      else if (value !== null) sums[node] = Number(sums[node] ?? 0) + Number(value);
    });
    this.sizes.forEach((sizes, place) => (sizes[node] += Math.max(this.widths[place][row] ?? 0, 0)));
  }

  /** Returns the tree, the widest of siblings first, and the row that each node became. */
  finish() {
    const { flame } = this;
    const order = this.order();
    const rowOf = new Int32Array(order.length);
    order.forEach((node, row) => (rowOf[node] = row));
    const taken = (values) => order.map((node) => values[node]);
    const sources = taken(this.sources);
    const columns = flame.columns.map((column, place) => ({
      ...column,
      values: taken(this.sums[place]),
    }));
    const notes = {};
    sources.forEach((source, row) => {
      if (this.counts[order[row]] === 1 && flame.notes[source]) notes[row] = flame.notes[source];
    });
    const made = {
      ...flame,
      parents: order.map((node) => (node === 0 ? -1 : rowOf[this.parents[node]])),
      names: sources.map((source) => flame.names[source]),
      kinds: sources.map((source) => flame.kinds[source]),
      devices: sources.map((source) => flame.devices[source]),
      sources,
      columns,
      widths: flame.widths.map((each, place) => ({ ...each, values: taken(this.sizes[place]) })),
      notes,
      tints: flame.tints && order.map((_, row) => tintOf(columns, row)),
    };
    return { flame: made, rowOf };
  }

  order() {
    const below = this.parents.map(() => null);
    for (let node = 1; node < below.length; node++) (below[this.parents[node]] ??= []).push(node);
    const [sizes] = this.sizes;
    const order = [];
    const open = [0];
    while (open.length) {
      const node = open.pop();
      order.push(node);
      // The last one is taken first.
      below[node]?.sort((one, other) => sizes[one] - sizes[other] || other - one);
      for (const each of below[node] ?? []) open.push(each);
    }
    return order;
  }
}

/** The change of a row of a comparison, whose first columns are both sides. */
function tintOf([fresh, base], row) {
  const [after, before] = [fresh.values[row] ?? 0, base.values[row] ?? 0];
  const larger = Math.max(Math.abs(after), Math.abs(before));
  return larger > 0 ? Math.max(-1, Math.min(1, (after - before) / larger)) : 0;
}

/** The tree without frames of libraries, what they called being below their callers. */
function withoutLibraries(flame) {
  const merger = new Merger(flame, 0);
  const nodes = new Int32Array(flame.parents.length);
  merger.add(0, 0);
  for (let row = 1; row < nodes.length; row++) {
    const above = nodes[flame.parents[row]];
    nodes[row] = above;
    if (flame.isLibrary[flame.names[row]] === 1) continue;
    nodes[row] = merger.below(above, row);
    merger.add(nodes[row], row);
  }
  const made = merger.finish();
  return { flame: made.flame, rowOf: nodes.map((node) => made.rowOf[node]) };
}

const MAX_CALLERS = 200; // levels above a name; a deeper graph is not read

/** Returns the callers of a name as one tree, from the name outwards. */
function callersOf(rows, occurrences) {
  const merger = new Merger(rows.flame, occurrences[0]);
  for (const row of occurrences) {
    let node = 0;
    merger.add(node, row);
    const levels = Math.min(rows.depths[row] - 1, MAX_CALLERS);
    for (let above = rows.parents[row], level = 0; level < levels; level++) {
      node = merger.below(node, above);
      merger.add(node, row);
      above = rows.parents[above];
    }
  }
  return shared(rows, merger);
}

/** Returns what a name calls as one tree. */
function calleesOf(rows, occurrences) {
  const merger = new Merger(rows.flame, occurrences[0]);
  const nodes = new Map();
  for (const row of occurrences) {
    nodes.set(row, 0);
    merger.add(0, row);
    for (let each = row + 1; each < rows.ends[row]; each++) {
      const node = merger.below(nodes.get(rows.parents[each]), each);
      nodes.set(each, node);
      merger.add(node, each);
    }
  }
  return shared(rows, merger);
}

/** Shares of a part stay those of the whole. */
function shared(rows, merger) {
  const totals = rows.flame.widths.map((_, place) => widthValues(rows.flame, place)[0]);
  return new Rows({ ...merger.finish().flame, totals: rows.flame.totals ?? totals });
}
