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
