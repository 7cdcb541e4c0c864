// Draws the part of a flame graph that can be seen, and finds the row under the pointer.

const ROW_HEIGHT = 20;
const MIN_WIDTH = 0.6; // pixels; what is narrower becomes part of a grey mark
const MIN_LABEL = 24;
const GAP = 0.6;
const MIN_GAPPED = 4;
const FONT = "12px ui-monospace, 'DejaVu Sans Mono', monospace";

class FlameCanvas {
  /** `isUpward` draws the root at the bottom. */
  constructor(scroller, space, canvas, isUpward) {
    this.scroller = scroller;
    this.space = space;
    this.canvas = canvas;
    this.isUpward = isUpward;
    this.pen = canvas.getContext("2d");
    this.colours = new Map();
    this.pen.font = FONT;
    this.letter = this.pen.measureText("M").width;
  }

  setRows(rows) {
    this.rows = rows;
    // Of one height, whatever it is zoomed to, so that nothing below it moves.
    this.scroller.style.minHeight = `min(${this.levelsBelow(0) * ROW_HEIGHT + 2}px, 55vh)`;
    this.forgetColours();
  }

  forgetColours() {
    this.colours.clear();
  }

  /** Gives the canvas the size of what can be seen of the graph below `zoom`. */
  resize(zoom) {
    this.levels = this.levelsBelow(zoom);
    this.space.style.height = `${this.levels * ROW_HEIGHT}px`;
    const width = Math.max(this.scroller.clientWidth, 1);
    const height = Math.max(Math.min(this.scroller.clientHeight, this.levels * ROW_HEIGHT), ROW_HEIGHT);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    this.height = height;
  }

  levelsBelow(zoom) {
    const { depths, ends } = this.rows;
    let deepest = depths[zoom];
    for (let row = zoom; row < ends[zoom]; row++) if (depths[row] > deepest) deepest = depths[row];
    return deepest - depths[zoom] + 1;
  }

  /** The upper edge of a level, or the level at a height: one is the inverse of the other. */
  turned(level) {
    return this.isUpward ? this.levels - 1 - level : level;
  }

  /** Draws; `view` has zoom, selected, hovered and what was found. */
  draw(view) {
    const { rows, pen } = this;
    const ink = inks();
    const dark = isDark();
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, this.width, this.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const top = this.scroller.scrollTop;
    const edges = [Math.floor(top / ROW_HEIGHT), Math.ceil((top + this.height) / ROW_HEIGHT)];
    const [first, last] = edges.map((edge) => this.turned(edge)).sort((one, other) => one - other);
    const scale = this.scale(view.zoom);
    const tinyUntil = new Float64Array(last - first + 2).fill(-1);
    const end = rows.ends[view.zoom];
    let drawn = 0;
    for (let row = view.zoom; row < end; ) {
      const level = rows.depths[row] - rows.depths[view.zoom];
      const width = rows.widths[row] * scale;
      const x = (rows.starts[row] - rows.starts[view.zoom]) * scale;
      const y = this.turned(level) * ROW_HEIGHT - top;
      if (level > last || width < MIN_WIDTH) {
        if (level >= first && level <= last && width > 0 && x + 1 > tinyUntil[level - first]) {
          pen.fillStyle = ink.tiny;
          pen.fillRect(x, y, 1, ROW_HEIGHT - 1);
          tinyUntil[level - first] = x + 1;
        }
        row = rows.ends[row];
        continue;
      }
      if (level >= first) {
        this.frame(row, { x, y, width, ink, dark, view });
        drawn++;
      }
      row++;
    }
    this.mark(view.hovered, view, ink, 1);
    this.mark(view.selected, view, ink, 2);
    return drawn;
  }

  scale(zoom) {
    const total = this.rows.widths[zoom];
    return total > 0 ? this.width / total : 0;
  }

  frame(row, { x, y, width, ink, dark, view }) {
    const { pen } = this;
    const isFound = view.found !== null && view.found.flags[row] === 1;
    pen.globalAlpha = view.found !== null && !isFound ? 0.45 : 1;
    pen.fillStyle = isFound ? ink.found : this.colour(row, dark);
    // Between narrow frames a gap would be all that is seen.
    pen.fillRect(x, y, width > MIN_GAPPED ? width - GAP : width, ROW_HEIGHT - 1);
    pen.globalAlpha = 1;
    if (width < MIN_LABEL) return;
    const text = this.label(row, Math.floor((width - 6) / this.letter));
    pen.fillStyle = isFound ? ink.foundText : ink.text;
    // The last argument narrows letters that are wider than most.
    pen.fillText(text, x + 3, y + ROW_HEIGHT / 2, width - 6);
  }

  /** The longest form of a name that has room, or the beginning of the shortest. */
  label(row, room) {
    const { rows } = this;
    const note = rows.flame.notes[row];
    const state = note ? /^[A-Z]{3,}/.exec(note) : null;
    const labels = labelsOf(rows.name(row), rows.kind(row), this.layerAbove(row));
    const forms = state ? labels.map((label) => `${state[0]} ${label}`) : labels;
    const fitting = forms.find((form) => form.length <= room);
    return fitting ?? `${forms.at(-1).slice(0, Math.max(room - 1, 0))}\u2026`;
  }

  /** The name of the closest layer above a layer; in a graph of callers what is above is inside. */
  layerAbove(row) {
    const { rows } = this;
    if (this.isUpward || rows.kind(row) !== "layer") return "";
    let above = rows.parents[row];
    while (above >= 0 && rows.kind(above) !== "layer") above = rows.parents[above];
    return above >= 0 ? rows.text(above) : "";
  }

  colour(row, dark) {
    const { rows } = this;
    const { tints, names, kinds } = rows.flame;
    if (tints !== null) return changeColour(tints[row], dark);
    const key = names[row] * 32 + kinds[row];
    let colour = this.colours.get(key);
    if (colour === undefined) {
      const kind = rows.isLibrary(row) ? "library" : rows.kind(row);
      colour = kindColour(kind, rows.text(row), dark);
      this.colours.set(key, colour);
    }
    return colour;
  }

  /** Draws the edge of a row, wide enough to be seen however narrow the row is. */
  mark(row, view, ink, thickness) {
    const { rows, pen } = this;
    if (row < view.zoom || row >= rows.ends[view.zoom]) return;
    const scale = this.scale(view.zoom);
    const x = (rows.starts[row] - rows.starts[view.zoom]) * scale;
    const y = this.top(row, view.zoom) - this.scroller.scrollTop;
    pen.strokeStyle = ink.edge;
    pen.lineWidth = thickness;
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(rows.widths[row] * scale - 1, 2), ROW_HEIGHT - 2);
  }

  top(row, zoom) {
    return this.turned(this.rows.depths[row] - this.rows.depths[zoom]) * ROW_HEIGHT;
  }

  /** The row at a place of the canvas, -1 for none. */
  rowAt(x, y, zoom) {
    const { rows } = this;
    const level = this.turned(Math.floor((y + this.scroller.scrollTop) / ROW_HEIGHT));
    const at = x / this.scale(zoom) + rows.starts[zoom];
    let row = zoom;
    while (row >= 0 && rows.depths[row] - rows.depths[zoom] < level) {
      const end = rows.ends[row];
      let child = rows.firstChild(row);
      while (child >= 0 && child < end && at >= rows.starts[child] + rows.widths[child]) {
        child = rows.ends[child];
      }
      row = child >= 0 && child < end && at >= rows.starts[child] ? child : -1;
    }
    return row;
  }

  /** Scrolls until a row can be seen. */
  reveal(row, zoom) {
    const y = this.top(row, zoom);
    const lowest = y + ROW_HEIGHT - this.scroller.clientHeight;
    if (y < this.scroller.scrollTop) this.scroller.scrollTop = y;
    else if (lowest > this.scroller.scrollTop) this.scroller.scrollTop = lowest;
  }
}

// What is said of a row in words.

/** The values of a row with their names and units, its shares, and its kind. */
function factsOf(rows, row) {
  const { columns } = rows.flame;
  const units = unitsOf(columns, row);
  const found = columns
    .map((column, place) => [column, valueText(column, column.values[row], units[place])])
    .filter(([, text]) => text !== MISSING)
    .map(([column, text]) => `${column.title} ${text}`);
  const shares = [];
  if (rows.total > 0) {
    const of = columns.length > 1 && rows.flame.tints === null ? ` of all ${rows.column.title}` : " of all";
    shares.push(`${percentText(rows.share(row))}${of}`);
    const above = rows.parents[row];
    if (above > 0 && rows.widths[above] > 0) {
      shares.push(`${percentText(rows.widths[row] / rows.widths[above])} of the row above`);
    }
  }
  found.splice(1, 0, ...shares);
  const own = rows.own(row);
  if (rows.flame.tints === null && rows.firstChild(row) >= 0 && own > 0) {
    const unit = units[columns.indexOf(rows.column)];
    found.push(`${valueText(rows.column, own, unit)} of its own`);
  }
  if (rows.kind(row) !== "unknown") found.push(rows.isLibrary(row) ? "library" : rows.kind(row));
  return found;
}

/** Fills a box with the name and values of a row. */
function describe(box, rows, row) {
  const facts = element("div", "facts-line");
  for (const text of factsOf(rows, row)) facts.append(element("span", "fact", text), " ");
  const note = rows.flame.notes[row];
  if (note) facts.append(element("span", "note", note));
  box.replaceChildren(element("span", "name", rows.name(row)), facts);
}

/** A box beside the pointer. */
class Tip {
  constructor(box) {
    this.box = box;
  }

  show(event, fill) {
    fill(this.box);
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 4));
    const isLow = event.clientY + 18 + height > window.innerHeight;
    const top = Math.max(4, isLow ? event.clientY - height - 10 : event.clientY + 18);
    this.box.style.transform = `translate(${left}px, ${top}px)`;
  }

  hide() {
    this.box.hidden = true;
  }
}

// A flame graph with pointer and keyboard: what is zoomed to, selected and found.

class Flame {
  /**
   * `told` gets what happens: select(row), zoom(row), hover(row, event), and keys that mean
   * something beyond the graph.
   */
  constructor(scroller, rows, told, isUpward = false) {
    this.scroller = scroller;
    this.told = told;
    this.isUpward = isUpward;
    this.build();
    this.view = { zoom: 0, selected: 0, hovered: -1, found: null };
    this.history = [];
    this.turn = 0;
    this.isWaiting = false;
    this.listen();
    this.setRows(rows);
  }

  build() {
    const { scroller } = this;
    this.canvasBox = element("canvas", "");
    this.canvasBox.setAttribute("aria-hidden", "true");
    const space = element("div", "space");
    space.append(this.canvasBox);
    this.items = [0, 1].map((turn) => {
      const item = element("div", "unseen");
      item.id = `${scroller.id}-item-${turn}`;
      item.setAttribute("role", "treeitem");
      item.hidden = true;
      return item;
    });
    scroller.replaceChildren(space, ...this.items);
    this.canvas = new FlameCanvas(scroller, space, this.canvasBox, this.isUpward);
  }

  listen() {
    const { scroller, canvasBox } = this;
    scroller.addEventListener("keydown", (event) => this.press(event));
    scroller.addEventListener("scroll", () => this.redraw());
    scroller.addEventListener("focus", () => this.announce(this.view.selected));
    canvasBox.addEventListener("pointermove", (event) => this.hover(this.rowUnder(event), event));
    canvasBox.addEventListener("pointerleave", (event) => this.hover(-1, event));
    canvasBox.addEventListener("click", (event) => {
      const row = this.rowUnder(event);
      scroller.focus({ preventScroll: true });
      if (row >= 0) this.zoomTo(row);
    });
    new ResizeObserver(() => this.show(false)).observe(scroller);
    document.addEventListener("themechange", () => {
      this.canvas.forgetColours();
      this.redraw();
    });
  }

  /** Shows other rows, or the same ones in other widths; the zoom stays if it is one of them. */
  setRows(rows, zoom = 0, selected = zoom) {
    this.rows = rows;
    this.canvas.setRows(rows);
    this.history = [];
    const isGone = zoom >= rows.length || rows.widths[zoom] === 0;
    this.view.zoom = isGone ? 0 : zoom;
    this.view.selected = isGone ? 0 : Math.min(selected, rows.length - 1);
    this.view.hovered = -1;
    this.show();
  }

  rowUnder(event) {
    const box = this.canvasBox.getBoundingClientRect();
    return this.canvas.rowAt(event.clientX - box.left, event.clientY - box.top, this.view.zoom);
  }

  hover(row, event) {
    this.told.hover(this, row, event);
    if (row === this.view.hovered) return;
    this.view.hovered = row;
    this.redraw();
  }

  select(row) {
    if (row < 0) return;
    this.view.selected = row;
    this.announce(row);
    this.canvas.reveal(row, this.view.zoom);
    this.redraw();
    this.told.select(this, row);
  }

  zoomTo(row, isKept = true) {
    if (row < 0) return;
    if (isKept && row !== this.view.zoom) this.history.push(this.view.zoom);
    this.view.zoom = row;
    this.view.selected = row;
    this.show();
    this.announce(row);
    this.told.select(this, row);
    this.told.zoom(this, row);
  }

  zoomOut() {
    const left = this.view.zoom;
    const before = this.history.pop() ?? this.rows.parents[left];
    if (before < 0) return;
    this.zoomTo(before, false);
    if (left >= before && left < this.rows.ends[before]) this.select(left);
  }

  /** Marks what was found, and leaves the rest pale. */
  mark(found) {
    this.view.found = found;
    this.redraw();
  }

  nextFound(isBackwards) {
    const found = this.view.found?.rows ?? [];
    if (!found.length) return;
    const { selected } = this.view;
    const next = isBackwards
      ? found.findLast((row) => row < selected) ?? found.at(-1)
      : found.find((row) => row > selected) ?? found[0];
    if (next < this.view.zoom || next >= this.rows.ends[this.view.zoom]) this.zoomTo(0);
    this.select(next);
  }

  show(isMoved = true) {
    this.canvas.resize(this.view.zoom);
    if (isMoved) this.scroller.scrollTop = this.isUpward ? this.scroller.scrollHeight : 0;
    this.redraw();
  }

  /** Draws before the browser shows its next frame, once, however often it is asked. */
  redraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      const { dataset } = this.scroller;
      dataset.drawn = String(this.canvas.draw(this.view));
      dataset.zoom = String(this.view.zoom);
      dataset.selected = String(this.view.selected);
    });
  }

  /** Tells assistive technology which row is selected: a new active item is read out. */
  announce(row) {
    const { rows } = this;
    this.turn = 1 - this.turn;
    const item = this.items[this.turn];
    const [place, count] = rows.position(row);
    item.textContent = `${rows.name(row)}, ${factsOf(rows, row).join(", ")}`;
    item.setAttribute("aria-level", String(rows.depths[row] + 1));
    item.setAttribute("aria-posinset", String(place));
    item.setAttribute("aria-setsize", String(count));
    item.setAttribute("aria-selected", "true");
    item.hidden = false;
    this.items[1 - this.turn].hidden = true;
    this.scroller.setAttribute("aria-activedescendant", item.id);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = this.actionOf(event.key);
    if (action === null) return;
    event.preventDefault();
    action();
  }

  /** What a key does, or null where it means nothing. */
  actionOf(key) {
    const { rows, view } = this;
    const { selected, zoom } = view;
    const [inwards, outwards] = this.isUpward ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    switch (key) {
      case inwards:
        return () => this.select(rows.firstChild(selected));
      case outwards:
        return () => this.select(selected > zoom ? rows.parents[selected] : zoom);
      case "ArrowRight":
        return () => this.select(rows.right(selected, rows.ends[zoom]));
      case "ArrowLeft":
        return () => this.select(rows.left(selected, zoom));
      case "Home":
        return () => this.select(zoom);
      case "Enter":
      case " ":
        return () => this.zoomTo(selected);
      case "Escape":
      case "Backspace":
        return () => this.zoomOut();
      default:
        return this.told.key(this, key);
    }
  }
}

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
