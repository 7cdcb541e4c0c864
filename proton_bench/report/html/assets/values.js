// Numbers as text. A column of the page has a form; times come in nanoseconds.

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
const MISSING = "-";
const GROUPS = /\B(?=(\d{3})+(?!\d))/g;

/**
 * The unit of each column, for one row or for all; those of a group are compared with each other and
 * share it.
 */
function unitsOf(columns, row) {
  const keyOf = (column) => column.group || column;
  const found = new Map();
  for (const column of columns) {
    const key = keyOf(column);
    if (found.has(key)) continue;
    const alike = columns.filter((each) => keyOf(each) === key);
    found.set(key, unitOf(column.form, alike.map((each) => valuesOf(each, row))));
  }
  return columns.map((column) => found.get(keyOf(column)));
}

function valuesOf(column, row) {
  return row === undefined ? column.values : [column.values[row]];
}

/** The unit that fits the largest of some columns' values, and how many decimals it needs. */
function unitOf(form, columns) {
  const largest = Math.max(...columns.map(largestOf));
  const [scale, name] =
    form === "time"
      ? (TIME_UNITS.find(([size]) => largest >= size) ?? TIME_UNITS.at(-1))
      : [1, form === "percent" ? "%" : ""];
  const isWhole = scale === 1 && columns.every((values) => values.every(isMissingOrWhole));
  const decimals = isWhole ? 0 : decimalsOf(largest / scale);
  return { scale, name, decimals: form === "percent" ? Math.min(decimals, largest < 1 ? 2 : 1) : decimals };
}

function isMissingOrWhole(value) {
  return typeof value !== "number" || Number.isInteger(value);
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

/** Digits before the point in groups of three. */
function grouped(text) {
  const [whole, rest] = text.split(".");
  const shown = whole.replace(GROUPS, "\u202f");
  return rest === undefined ? shown : `${shown}.${rest}`;
}

/** A number alone: four digits, or a whole one in groups of three. */
function digits(number) {
  if (Number.isInteger(number)) return grouped(String(number));
  const size = Math.abs(number);
  if (size >= 1e9) return number.toPrecision(4);
  if (size < 0.1) return String(Number(number.toPrecision(4)));
  return number.toFixed(decimalsOf(size));
}

/**
 * One cell of a column, without the name of the column's unit. All cells have the decimals of the
 * column, so that they stand below each other; what they cannot show is "<0.001".
 */
function cellText(column, value, unit) {
  if (value === null || value === undefined) return column.form === "text" ? "" : MISSING;
  if (typeof value !== "number") return value;
  const sign = column.signed && value > 0 ? "+" : "";
  const number = value / unit.scale;
  if (Math.abs(number) >= 1e12) return sign + number.toPrecision(4);
  const fixed = number.toFixed(unit.decimals);
  if (number !== 0 && Number(fixed) === 0) {
    return `${number < 0 ? "-" : sign}<${(10 ** -unit.decimals).toFixed(unit.decimals)}`;
  }
  return (number === 0 ? "" : sign) + grouped(fixed);
}

/** One value of a sentence with its unit. */
function valueText(column, value, unit) {
  if (value === null || value === undefined) return MISSING;
  if (typeof value !== "number") return value;
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
