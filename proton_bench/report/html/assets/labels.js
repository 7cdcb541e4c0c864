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
