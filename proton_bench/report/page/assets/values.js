// Numbers as text. A column of the page has a form; times come in nanoseconds.

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
const MISSING = "-";
const GROUPS = /\B(?=(\d{3})+(?!\d))/g;

/** The unit in which all of a column is written, and how many decimals: what fits `largest`. */
function unitOf(column, largest) {
  if (column.form !== "time") {
    return { scale: 1, name: column.form === "percent" ? "%" : "", decimals: decimalsOf(largest) };
  }
  const [scale, name] = TIME_UNITS.find(([size]) => largest >= size) ?? TIME_UNITS.at(-1);
  return { scale, name, decimals: scale === 1 ? 0 : decimalsOf(largest / scale) };
}

/** The unit of each column; changes are written in that of the values that changed. */
function unitsOf(columns) {
  const found = [];
  for (const column of columns) {
    const values = column.signed ? columns.find(({ form }) => form === column.form) : column;
    const unit = unitOf(column, largestOf(values.values));
    const isWhole = column.values.every((value) => value === null || Number.isInteger(value));
    if (isWhole && unit.scale === 1) {
      unit.decimals = 0;
    }
    found.push(unit);
  }
  return found;
}

function largestOf(values) {
  let largest = 0;
  for (const value of values) {
    const size = typeof value === "number" ? Math.abs(value) : 0;
    if (size > largest) largest = size;
  }
  return largest;
}

/** How many decimals a number needs to show four digits. */
function decimalsOf(size) {
  return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

function grouped(text) {
  return text.replace(GROUPS, "\u202f");
}

/** A number alone: four digits, or a whole one in groups of three. */
function digits(number) {
  if (Number.isInteger(number)) return grouped(String(number));
  const size = Math.abs(number);
  if (size >= 1e9 || size < 1e-3) return number.toPrecision(4);
  return number.toFixed(decimalsOf(size));
}

/** One cell of a column, without the name of the column's unit. */
function cellText(column, value, unit) {
  if (value === null || value === undefined) return column.form === "text" ? "" : MISSING;
  if (typeof value !== "number") return value;
  const sign = column.signed && value > 0 ? "+" : "";
  const number = value / unit.scale;
  const size = Math.abs(number);
  if (number === 0) return "0";
  if (size >= 1e12 || size < 0.5 * 10 ** -unit.decimals) return sign + number.toPrecision(2);
  return sign + (unit.decimals ? number.toFixed(unit.decimals) : grouped(number.toFixed(0)));
}

/** One value alone, with the unit that fits it. */
function valueText(column, value) {
  if (value === null || value === undefined) return MISSING;
  if (typeof value !== "number") return value;
  const unit = unitOf(column, Math.abs(value));
  const sign = column.signed && value > 0 ? "+" : "";
  return `${sign}${digits(value / unit.scale)} ${unit.name}`.trimEnd();
}

function percentText(share) {
  const percent = 100 * share;
  if (percent > 0 && percent < 0.01) return "<0.01 %";
  return `${percent.toFixed(percent < 1 ? 2 : 1)} %`;
}

/** Makes an element with text; text is never read as markup. */
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
