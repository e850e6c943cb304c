// Elements and words. Text becomes text nodes and nothing else.

const $ = (id) => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Make one element look like another and touch only what differs: focus and what is marked in it stay.
function morph(old, made) {
  if (old.nodeName !== made.nodeName) return old.replaceWith(made);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...made.childNodes]];
  after.forEach((child, i) => (before[i] ? morph(before[i], child) : old.append(child)));
  for (const node of before.slice(after.length)) node.remove();
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Option lists are touched only where they differ: an open one stays open.
function choose(select, groups, chosen) {
  const mark = JSON.stringify(groups);
  if (select.dataset.mark !== mark) {
    select.dataset.mark = mark;
    const options = (list) => list.map(([value, text]) => el("option", { value }, text));
    select.replaceChildren(
      ...groups.flatMap(([label, list]) => (label ? [el("optgroup", { label }, ...options(list))] : options(list))),
    );
  }
  if (select.value !== chosen) select.value = chosen;
}

const names = { sports: new Map(), leagues: new Map(), sportsbooks: new Map(), markets: new Map() };
// Ids with their names, by name.
const byName = (ids) => [...ids].sort((a, b) => collator.compare(a[1], b[1]));
const spelled = (id) => (id ? id.charAt(0).toUpperCase() + id.slice(1).replaceAll("_", " ") : "");
const counted = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;
const called = (what, id) => names[what].get(id) ?? spelled(id);

// American odds as books show them: whole, a half to the even number as everywhere else, and +100 for −100.
function wholeOdds(american) {
  const near = Math.round(american), even = Math.abs(american % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near;
  return even === -100 ? 100 : even;
}
function odds(american, decimal) {
  if (settings.format === "decimal") return decimal === null || decimal === undefined ? "" : decimal.toFixed(2);
  if (american === null || american === undefined) return "";
  const whole = wholeOdds(american);
  return whole < 0 ? `−${-whole}` : `+${whole}`;
}
const americanOf = (decimal) => (decimal >= 2 ? 100 * (decimal - 1) : -100 / (decimal - 1));
const oddsText = (decimal) => odds(americanOf(decimal), decimal);
const decimalOf = (american) => (american === null ? null : american > 0 ? 1 + american / 100 : 1 - 100 / american);
// A price as somebody would type it, and back: in decimal odds, nan if it is no price. A field that nobody changed has
// the exact price in `data-decimal`.
const typed = (decimal) => {
  if (settings.format === "decimal") return String(Number(decimal.toFixed(4)));
  const american = wholeOdds(americanOf(decimal));
  return american > 0 ? `+${american}` : String(american);
};
const decimalIn = (input) => (input.value === input.defaultValue && input.dataset.decimal ? Number(input.dataset.decimal) : priceOf(input.value));
function priceOf(text) {
  const value = numeral(text);
  // Nobody means 4900 by 50: it is neither an American price nor a usual decimal one.
  if (settings.format === "american" && value >= 20 && value < 100) return NaN;
  return value <= -100 || (settings.format === "american" && value >= 100) ? decimalOf(value) : value;
}
// A number as somebody types it: 1,000 is a thousand, and 2,5 is two and a half.
function numeral(text) {
  const plain = text.replace(/[\s\u202f]/g, "").replace("−", "-");
  const digits = /^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain) ? plain.replaceAll(",", "") : plain.replace(",", ".");
  return digits === "" ? NaN : Number(digits);
}
function percent(value, digits = 2) {
  if (value === null) return "";
  const size = Math.abs(value).toFixed(digits);
  return `${value < 0 && Number(size) ? "−" : ""}${size} %`;
}
const signed = (line) => (line > 0 ? `+${line}` : line < 0 ? `−${-line}` : "0");

// A moment in the time zone of the settings.
const formats = new Map(); // making one takes longer than a row
const WHOLE_TIME = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
function local(at, options = WHOLE_TIME) {
  const mark = `${settings.zone} ${JSON.stringify(options)}`;
  const format = formats.get(mark) ?? formats.set(mark, new Intl.DateTimeFormat([], { timeZone: settings.zone || undefined, ...options })).get(mark);
  return format.format(new Date(at));
}
function span(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}
function relative(at, now) {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}
function time(text) {
  const at = Date.parse(text ?? "");
  if (Number.isNaN(at)) return el("span", {}, "");
  const title = local(at);
  return el("time", { datetime: text, title, "data-at": at }, relative(at, clock()));
}
// When a game starts, by the clock on the wall, and how long until then: in two lines, or in one.
function onClock(text) {
  const at = Date.parse(text ?? "");
  if (Number.isNaN(at)) return "";
  const date = { month: "short", day: "numeric" };
  const day = local(at, date) === local(clock(), date) ? {} : at - clock() > 6 * 86_400_000 ? date : { weekday: "short" };
  return local(at, { ...day, hour: "numeric", minute: "2-digit" });
}
const kickOff = (text) => (onClock(text) ? [onClock(text), el("span", { class: "under" }, time(text))] : []);
const starts = (text) => (onClock(text) ? [`${onClock(text)}, `, time(text)] : []);
// A time that has passed, by a clock that may be a little ahead of this one.
function past(text) {
  const node = time(text);
  if (node.dataset.at) {
    node.dataset.at = Math.min(node.dataset.at, clock());
    write(node, relative(Number(node.dataset.at), clock()));
  }
  return node;
}
// The server's clock: this machine's may be wrong.
let ahead = 0;
const clock = () => Date.now() + ahead;
function setClock(answer) {
  const at = Date.parse(answer.headers.get("Date") ?? "");
  if (!Number.isNaN(at) && Math.abs(at + 500 - clock()) > 2000) ahead = at + 500 - Date.now(); // it tells whole seconds
}
// An age that ticks.
const aged = (seen) => el("time", { class: "seen", "data-seen": seen, title: `last seen ${local(seen)}` }, span(Math.max(0, (clock() - seen) / 1000)));
function tickTimes() {
  const now = clock();
  for (const node of document.querySelectorAll("time[data-seen]")) write(node, span(Math.max(0, (now - Number(node.dataset.seen)) / 1000)));
  for (const node of document.querySelectorAll("time[data-at]")) write(node, relative(Number(node.dataset.at), now));
}

const SVG = "http://www.w3.org/2000/svg";
function sparkline(points, width, height, label) {
  const svg = document.createElementNS(SVG, "svg");
  const values = points.map((point) => point.odds);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [first, last] = [points[0].at, Math.max(points[points.length - 1].at, Date.now())]; // it still holds
  const x = (at) => ((at - first) / Math.max(last - first, 1)) * (width - 4) + 2;
  const y = (value) => height - 2 - ((value - low) / Math.max(high - low, 1e-9)) * (height - 4);
  const steps = [];
  points.forEach((point, i) => {
    if (i) steps.push(`${x(point.at).toFixed(1)},${y(points[i - 1].odds).toFixed(1)}`);
    steps.push(`${x(point.at).toFixed(1)},${y(point.odds).toFixed(1)}`);
  });
  steps.push(`${x(last).toFixed(1)},${y(values[values.length - 1]).toFixed(1)}`);
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", steps.join(" "));
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const moved = values[values.length - 1] - values[0];
  svg.setAttribute("class", moved > 0 ? "up" : moved < 0 ? "down" : "");
  if (label) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
  } else svg.setAttribute("aria-hidden", "true");
  svg.append(line);
  return svg;
}

function flash(node, rises) {
  node.classList.remove("up-now", "down-now");
  requestAnimationFrame(() => node.classList.add(rises ? "up-now" : "down-now"));
}
