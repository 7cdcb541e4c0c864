// The flame graph: what is zoomed to, selected and searched for.

class Flame {
  constructor(data, parts) {
    this.rows = new Rows(data);
    this.parts = parts;
    this.canvas = new FlameCanvas(this.rows, parts.scroller, parts.space, parts.canvas);
    this.details = new FlameDetails(this.rows, parts, (row) => this.zoomTo(row));
    this.view = { zoom: 0, selected: 0, hovered: -1, found: null };
    this.history = [];
    this.wasWhole = false;
    this.isWaiting = false;
    this.listen();
    this.show();
  }

  listen() {
    const { scroller, canvas, out } = this.parts;
    listenToFlameKeys(this, scroller);
    listenToSearchKeys(this, this.parts.search, scroller);
    scroller.addEventListener("scroll", () => this.redraw());
    scroller.addEventListener("focus", () => this.details.announce(this.view.selected));
    canvas.addEventListener("pointermove", (event) => this.hover(this.rowUnder(event)));
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", (event) => {
      const row = this.rowUnder(event);
      scroller.focus({ preventScroll: true });
      if (row >= 0) this.zoomTo(row);
    });
    out.addEventListener("click", () => this.zoomOut());
    new ResizeObserver(() => this.resized()).observe(scroller);
    document.addEventListener("themechange", () => {
      this.canvas.forgetColours();
      this.redraw();
    });
    this.fillWidths();
  }

  fillWidths() {
    const { widths } = this.parts;
    if (!widths) return;
    this.rows.flame.widths.forEach(({ title }, place) => {
      const option = element("option", "", title);
      option.value = String(place);
      widths.append(option);
    });
    widths.addEventListener("change", () => {
      this.rows.useWidths(Number(widths.value));
      if (this.rows.widths[this.view.zoom] === 0) this.reset(); // gone on that side
      this.search(this.parts.search.value, this.wasWhole);
      this.show();
    });
  }

  rowUnder(event) {
    const box = this.parts.canvas.getBoundingClientRect();
    return this.canvas.rowAt(event.clientX - box.left, event.clientY - box.top, this.view.zoom);
  }

  hover(row) {
    if (row === this.view.hovered) return;
    this.view.hovered = row;
    this.details.show(row >= 0 ? row : this.view.selected);
    this.redraw();
  }

  select(row) {
    if (row < 0) return;
    this.view.selected = row;
    this.details.show(row);
    this.details.announce(row);
    this.canvas.reveal(row, this.view.zoom);
    this.redraw();
  }

  zoomTo(row) {
    if (row < 0) return;
    if (row !== this.view.zoom) this.history.push(this.view.zoom);
    this.view.zoom = row;
    this.view.selected = row;
    this.show();
    this.details.announce(row);
  }

  zoomOut() {
    const before = this.history.pop();
    if (before === undefined) return;
    const left = this.view.zoom;
    this.view.zoom = before;
    this.view.selected = left >= before && left < this.rows.ends[before] ? left : before;
    this.show();
    this.details.announce(this.view.selected);
    this.canvas.reveal(this.view.selected, before);
  }

  reset() {
    this.history = [];
    this.view.zoom = 0;
    this.view.selected = 0;
  }

  /** Marks the rows whose names hold a text, or are that text. */
  search(text, isWhole = false) {
    this.wasWhole = isWhole;
    this.view.found = this.rows.search(text, isWhole);
    const found = this.view.found;
    this.parts.found.textContent = found
      ? `${digits(found.rows.length)} found, ${percentText(found.share)} of all`
      : "";
    this.redraw();
  }

  /** Searches for the rows of one name, and goes to the first of them. */
  lookUp(name) {
    this.parts.search.value = name;
    this.search(name, true);
    this.view.selected = 0;
    this.parts.scroller.focus();
    this.parts.scroller.scrollIntoView({ block: "center" });
    this.nextFound(false);
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

  show() {
    this.canvas.resize(this.view.zoom);
    this.parts.scroller.scrollTop = 0;
    this.parts.out.disabled = this.history.length === 0;
    this.details.showPath(this.view.zoom);
    this.details.show(this.view.selected);
    this.redraw();
  }

  resized() {
    this.canvas.resize(this.view.zoom);
    this.redraw();
  }

  /** Draws before the browser shows its next frame, once, however often it is asked. */
  redraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      const drawn = this.canvas.draw(this.view);
      const { dataset } = this.parts.scroller;
      dataset.drawn = String(drawn);
      dataset.zoom = String(this.view.zoom);
      dataset.selected = String(this.view.selected);
    });
  }
}
