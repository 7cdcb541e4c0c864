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
