// How busy devices were over time, with what the host did under the pointer.

const TRACK_HEIGHT = 18;
const STEP_KEYS = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 };

class Strip {
  constructor(data, parts, tip) {
    this.data = data;
    this.parts = parts;
    this.tip = tip;
    this.bins = data.host.length;
    this.chosen = -1;
    this.span = { title: "", form: "time", values: [data.span] };
    this.unit = unitOf("time", [[data.span]]);
    const { box, canvas } = parts;
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => {
      this.tip.hide();
      this.mark(-1);
    });
    box.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(box);
    document.addEventListener("themechange", () => this.draw());
    box.setAttribute("aria-valuemax", String(this.bins - 1));
    this.choose(-1);
  }

  binAt(event) {
    const box = this.parts.canvas.getBoundingClientRect();
    const bin = Math.floor(((event.clientX - box.left) / box.width) * this.bins);
    return Math.min(Math.max(bin, 0), this.bins - 1);
  }

  hover(event) {
    const bin = this.binAt(event);
    this.mark(bin);
    this.tip.show(event, (box) => {
      box.replaceChildren(...this.lines(bin).map((text) => element("div", "", text)));
    });
  }

  /** What happened in a bin: when, how busy devices were, and where the host was. */
  lines(bin) {
    const at = (edge) => (edge * this.data.span) / this.bins;
    const [from, until] = [at(bin), at(bin + 1)].map((time) => cellText(this.span, time, this.unit));
    const busy = this.data.tracks.map((track) => `${track.name} busy ${percentText(track.busy[bin])}`);
    const path = this.data.paths[this.data.host[bin]];
    const host = path ? ["host:", ...path.map(readable)] : ["host: no call recorded"];
    return [`${from} to ${until} ${this.unit.name}`, ...busy, ...host];
  }

  press(event) {
    const step = STEP_KEYS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.chosen + step, 0), this.bins - 1));
  }

  choose(bin) {
    this.mark(bin);
    const { box, text } = this.parts;
    const said = bin < 0 ? this.whole() : this.lines(bin).join(" \u203a ");
    text.textContent = said;
    box.setAttribute("aria-valuenow", String(Math.max(bin, 0)));
    box.setAttribute("aria-valuetext", said);
  }

  mark(bin) {
    this.chosen = bin;
    this.draw();
  }

  /** The whole window: each track's share. */
  whole() {
    const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
    const shares = this.data.tracks.map((track) => `${track.name} busy ${percentText(mean(track.busy))}`);
    const hidden = this.data.hidden ? `, ${this.data.hidden} more devices` : "";
    return `${shares.join(", ")}${hidden} of ${valueText(this.span, this.data.span, this.unit)}`;
  }

  draw() {
    const { box, canvas } = this.parts;
    const { tracks } = this.data;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.max(box.clientWidth, 1), tracks.length * TRACK_HEIGHT];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = inks();
    const bin = width / this.bins;
    tracks.forEach((track, place) => {
      const bottom = (place + 1) * TRACK_HEIGHT - 2;
      pen.fillStyle = ink.idle;
      pen.fillRect(0, bottom - TRACK_HEIGHT + 3, width, TRACK_HEIGHT - 3);
      pen.fillStyle = ink.busy;
      track.busy.forEach((share, each) => {
        const size = share * (TRACK_HEIGHT - 3);
        const [left, right] = [Math.floor(each * bin), Math.floor((each + 1) * bin)];
        if (size > 0) pen.fillRect(left, bottom - size, Math.max(right - left, 1), size);
      });
    });
    if (this.chosen < 0) return;
    pen.fillStyle = ink.edge;
    pen.fillRect(this.chosen * bin, 0, 1, height);
  }
}
