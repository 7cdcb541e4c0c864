// Names in boxes: the longest form that fits.

// `file:line@function` as recorded, `file:line function` as it is read.
const FRAME = /^(.*):(\d+)[@ ](.*)$/s;
const OLD_FRAME = /^(.*):([^:@]*)@(\d+)$/s;
const KEPT_FOLDERS = 2;

/** The function, file and line of a Python frame; null for other names. */
function frameParts(name) {
  const found = FRAME.exec(name);
  if (found) return { file: found[1], line: found[2], called: found[3] };
  const old = OLD_FRAME.exec(name);
  return old && { file: old[1], line: old[3], called: old[2] };
}

/**
 * A name as it is read: of a Python frame the function first, then the end of its path.
 */
function readable(name) {
  const frame = frameParts(name);
  if (!frame) return name;
  const end = frame.file.split("/").slice(-KEPT_FOLDERS).join("/");
  return `${frame.called} (${end}:${frame.line})`;
}

/** Forms of a name, the longest first; that of a layer relative to the layer above it. */
function labelsOf(name, kind, layerAbove) {
  if (kind === "layer") return layerLabels(name, layerAbove);
  if (kind === "kernel" || kind === "copy") return [name, kernelStem(name)];
  const frame = frameParts(name);
  if (!frame) return [name];
  const file = frame.file.split("/").at(-1);
  return [readable(name), `${frame.called} (${file}:${frame.line})`, frame.called];
}

/** `transformer.h.3.attn (Attention)` below `transformer.h.3 (Block)` is `attn (Attention)`. */
function layerLabels(name, above) {
  const [path] = name.split(" (", 1);
  const outer = above ? `${above.split(" (", 1)[0]}.` : "";
  if (outer && path.startsWith(outer)) return [name, name.slice(outer.length), path.slice(outer.length)];
  return [name, path, path.split(".").slice(-2).join(".")];
}

/** `elementwise add<float> vec4` is `elementwise add`. */
function kernelStem(name) {
  return name.split(/[<(]/, 1)[0].trim() || name;
}

// Colours of frames: by what they are, or by how much they changed.

// Hue, saturation, lightness on light paper, lightness on dark paper.
const KINDS = {
  kernel: [24, 75, 76, 36],
  op: [115, 38, 76, 34],
  graph: [50, 60, 74, 36],
  scope: [213, 60, 80, 38],
  state: [213, 25, 82, 34],
  layer: [190, 55, 76, 34],
  python: [270, 45, 84, 40],
  library: [270, 12, 88, 32],
  test: [176, 42, 76, 33],
  copy: [46, 20, 82, 36],
  line: [10, 45, 82, 38],
  root: [213, 10, 86, 28],
  unknown: [30, 55, 80, 37],
};
const HUE_SPREAD = 14;
const DARK_SATURATION = 0.75;
const WORSE_HUE = 4;
const BETTER_HUE = 212;

const LIGHT_INKS = {
  paper: "#ffffff",
  text: "#1b1f24",
  tiny: "#c3cad2",
  edge: "#000000",
  idle: "#eceef1",
  busy: "#e8833a",
  found: "#ffd60a",
  foundText: "#1b1f24",
};
const DARK_INKS = {
  paper: "#16181d",
  text: "#f2f4f6",
  tiny: "#4a525d",
  edge: "#ffffff",
  idle: "#262b33",
  busy: "#b9652d",
  found: "#e6c229",
  foundText: "#16181d",
};

const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen === "auto" && darkSystem.matches);
}

function inks() {
  return isDark() ? DARK_INKS : LIGHT_INKS;
}

/** A number from 0 to 1 that is always the same for a text. */
function spread(text) {
  let hash = 2166136261;
  const length = Math.min(text.length, 64);
  for (let place = 0; place < length; place++) {
    hash = Math.imul(hash ^ text.charCodeAt(place), 16777619);
  }
  return (hash >>> 0) / 4294967296;
}

function kindColour(kind, name, dark) {
  const [hue, saturation, light, darkLight] = KINDS[kind] ?? KINDS.unknown;
  const turned = hue + (spread(name) - 0.5) * 2 * HUE_SPREAD;
  const depth = dark ? saturation * DARK_SATURATION : saturation;
  return `hsl(${turned.toFixed(0)} ${depth.toFixed(0)}% ${dark ? darkLight : light}%)`;
}

/** The colour of a change, which is a share of the row's larger side: 1 is new, -1 is gone. */
function changeColour(share, dark) {
  if (!share) return dark ? "hsl(215 8% 30%)" : "hsl(215 12% 90%)";
  const strength = Math.min(Math.abs(share), 1) ** 0.7;
  const hue = share > 0 ? WORSE_HUE : BETTER_HUE;
  const light = dark ? 30 + 10 * strength : 92 - 22 * strength;
  return `hsl(${hue} ${(20 + (dark ? 35 : 55) * strength).toFixed(0)}% ${light.toFixed(0)}%)`;
}
