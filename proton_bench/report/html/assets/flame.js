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
