// The page: the key, tabs, filters, and when what is drawn.

const BASE = document.body.dataset.base;
const REDRAW_MS = 300; // between two drawings that only the stream asks for
const EVENTS_MS = 60_000;
const KEY = "oddsengine.key";

let known = 0; // moves when names arrive
let key = "";
let tab = "ev";
let events = [];
let drawn = 0;
let waiting = 0;
let readAt = 0;

const lists = new Lists();
const board = new Board();
const opportunities = new Listener((name, payload) => lists.take(name, payload) && later(), showState);
const prices = new Listener((name, payload) => board.take(name, payload) && later(), showState);

// ---- drawing: once a frame, and no more often than is needed ----

function draw() {
  clearTimeout(waiting);
  waiting = 0;
  requestAnimationFrame(() => {
    drawn = performance.now();
    for (const kind of Object.keys(KINDS)) {
      const count = $(`tab-${kind}`)?.querySelector(".count");
      if (count) write(count, lists.waiting ? "" : String(lists.count(kind)));
    }
    if (tab === "board") {
      board.render();
      board.seed(ask);
    } else lists.render();
  });
}

function later() {
  if (!waiting) waiting = setTimeout(draw, Math.max(0, drawn + REDRAW_MS - performance.now()));
}

// ---- the state of the stream ----

const SAID = { idle: "Not connected", connecting: "Connecting", live: "Live", late: "Late", broken: "Broken", refused: "Refused" };
const WORST = ["refused", "broken", "late", "connecting", "live", "idle"];

function worst() {
  const [a, b] = [opportunities, prices];
  return WORST.indexOf(a.state) <= WORST.indexOf(b.state) ? a : b;
}

function showState(listener) {
  if (listener.state === "refused") return refused(listener);
  const it = worst();
  $("connection").dataset.state = it.state === "refused" ? "broken" : it.state;
  write($("state"), it.state === "broken" ? `Broken: ${it.reason}` : SAID[it.state]);
  $("live").classList.toggle("old", it.state === "broken" || it.state === "late");
  $("again").hidden = it.state !== "broken";
  showAge();
}

function showAge() {
  const now = Date.now();
  const it = worst();
  const parts = [];
  if (it.heard) parts.push(`last event ${span(Math.max(0, (now - it.heard) / 1000))} ago`);
  if (it.state === "broken") parts.push(`next try in ${span(Math.max(0, (it.nextTry - now) / 1000))}`);
  write($("age"), parts.join(", "));
}

function refused(listener) {
  const reason = listener.reason;
  if (listener === prices) {
    write($("board-summary"), reason);
    $("connection").dataset.state = "broken";
    write($("state"), `Board: ${reason}`);
    return;
  }
  leave(reason);
}

// ---- the key ----

function enter(given) {
  key = given;
  sessionStorage.setItem(KEY, key);
  write($("key-error"), "");
  $("key").removeAttribute("aria-invalid");
  $("entry").hidden = true;
  $("live").hidden = $("tools").hidden = false;
  lists.clear();
  listen();
  learn();
  show(tab);
}

function leave(why = "") {
  sessionStorage.removeItem(KEY);
  key = "";
  opportunities.close();
  prices.close();
  lists.clear();
  board.choose("");
  $("entry").hidden = false;
  $("live").hidden = $("tools").hidden = true;
  write($("key-error"), why);
  if (why) $("key").setAttribute("aria-invalid", "true");
  $("connection").dataset.state = why ? "broken" : "idle";
  write($("state"), why ? "Not connected: the key was refused" : "Not connected");
  write($("age"), "");
  $("key").focus();
}

function listen() {
  const query = new URLSearchParams({ min_ev: "0", min_profit: "0" });
  if (lists.filter.books) query.set("sportsbook", [...lists.filter.books].join(",") || "none");
  opportunities.open(`${BASE}/stream/opportunities?${query}`, key);
}

async function ask(path) {
  try {
    const answer = await fetch(BASE + path, { headers: { "X-API-Key": key } });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

// Names of sports, leagues, books and markets, and the events there are.
async function learn() {
  const mine = key;
  await Promise.all(Object.keys(names).map(async (what) => {
    const found = await ask(`/${what}`);
    if (!found || key !== mine) return;
    names[what] = new Map(found.data.map((each) => [each.id, each.name]));
    if (what === "markets") for (const map of Object.values(lists.held)) for (const it of map.values()) Object.assign(it, item(it.kind, it.row));
  }));
  if (key !== mine) return;
  known += 1;
  choose($("sport"), [["", [["", "All"], ...names.sports]]], lists.filter.sport);
  drawBooks();
  await learnEvents();
  draw();
}

async function learnEvents() {
  const mine = key;
  readAt = Date.now();
  const found = [];
  for (let offset = 0; offset !== null; ) {
    const page = await ask(`/events?limit=200&offset=${offset}`);
    if (!page || key !== mine) return;
    found.push(...page.data);
    offset = page.pagination.next_offset;
  }
  events = found;
  drawEvents();
}

// ---- tabs ----

const TABS = [...Object.keys(KINDS), "board"];

function makeTabs() {
  $("tabs").append(...TABS.map((id) => el(
    "button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id === "board" ? "panel-board" : "panel-list" },
    id === "board" ? "Compare books" : KINDS[id].tab, id !== "board" && el("span", { class: "count" }),
  )));
  $("tabs").addEventListener("click", (event) => {
    const button = event.target.closest("[role=tab]");
    if (button) show(button.id.slice(4));
  });
  $("tabs").addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const at = TABS.indexOf(tab);
    const to = event.key === "Home" ? 0 : event.key === "End" ? TABS.length - 1 : event.key in steps ? (at + steps[event.key] + TABS.length) % TABS.length : -1;
    if (to < 0) return;
    event.preventDefault();
    show(TABS[to]);
    $(`tab-${tab}`).focus();
  });
}

function show(id) {
  tab = id;
  const isBoard = id === "board";
  for (const each of TABS) {
    $(`tab-${each}`).setAttribute("aria-selected", String(each === id));
    $(`tab-${each}`).tabIndex = each === id ? 0 : -1;
  }
  $("panel-board").hidden = !isBoard;
  $("panel-list").hidden = isBoard;
  $(isBoard ? "panel-board" : "panel-list").setAttribute("aria-labelledby", `tab-${id}`);
  for (const node of document.querySelectorAll(".list-only")) node.hidden = isBoard;
  for (const node of document.querySelectorAll(".board-only")) node.hidden = !isBoard;
  if (isBoard) {
    if (Date.now() - readAt > EVENTS_MS) learnEvents();
    if (!board.event && events.length) board.choose(eventsOf()[0]?.id ?? "");
    drawEvents();
    openBoard();
  } else {
    prices.close();
    lists.kind = id;
    write($("least-label"), KINDS[id].threshold);
    $("least").value = lists.least[id];
  }
  draw();
}

// ---- the board's event ----

const eventsOf = () => events.filter((each) => !lists.filter.sport || each.sport === lists.filter.sport);

function drawEvents() {
  const leagues = new Map();
  for (const each of eventsOf()) {
    const list = leagues.get(each.league) ?? leagues.set(each.league, []).get(each.league);
    const at = new Date(each.start_time);
    const when = each.is_live ? "in play" : at.toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit" });
    list.push([each.id, `${each.away_team} @ ${each.home_team} (${when})`]);
  }
  const groups = [...leagues].map(([league, list]) => [called("leagues", league), list]);
  if (board.event && !events.some((each) => each.id === board.event)) groups.unshift(["", [[board.event, "This event"]]]);
  choose($("event"), groups, board.event);
  if (tab === "board" && !board.event && events.length) show("board");
}

function openBoard() {
  if (board.event) prices.open(`${BASE}/stream/events/${encodeURIComponent(board.event)}`, key);
}

function compare(it) {
  if (it.eventId !== board.event) board.choose(it.eventId);
  board.market = "";
  board.wanted = marketKey({ market_type: it.market, market_segment: it.row.market_segment ?? "full_game" });
  if (it.row.is_alternate_line) $("alternates").checked = board.alternates = true;
  show("board");
  $("tab-board").focus();
}

// ---- books ----

function drawBooks() {
  $("books-boxes").replaceChildren(...[...names.sportsbooks].sort((a, b) => collator.compare(a[1], b[1])).map(([id, name]) => {
    const box = el("input", { type: "checkbox", value: id });
    box.checked = !lists.filter.books || lists.filter.books.has(id);
    return el("label", {}, box, name);
  }));
}

let relisten = 0;
function chooseBooks() {
  const boxes = [...$("books-boxes").querySelectorAll("input")];
  const on = boxes.filter((box) => box.checked).map((box) => box.value);
  const books = on.length === boxes.length ? null : new Set(on);
  lists.filter.books = board.books = books;
  write($("books"), books === null ? "All" : on.length === 1 ? called("sportsbooks", on[0]) : `${on.length} books`);
  clearTimeout(relisten);
  relisten = setTimeout(listen, 700); // the best prices of fewer books are other opportunities
  draw();
}

function openBooks(open) {
  $("books-list").hidden = !open;
  $("books").setAttribute("aria-expanded", String(open));
}

// ---- what people do ----

function changed() {
  for (const kind of Object.keys(KINDS)) lists.pages[kind] = 0;
  draw();
}
function on(id, kind, act) {
  $(id).addEventListener(kind, act);
}

on("entry-form", "submit", (event) => {
  event.preventDefault();
  const given = $("key").value.trim();
  if (!given) return;
  // A header has room for printable ASCII only.
  if (/^[\x21-\x7e]+$/.test(given)) enter(given);
  else leave("A key has letters, digits and signs, and no spaces.");
});
on("leave", "click", () => leave());
on("again", "click", () => [opportunities, prices].forEach((each) => each.again()));
on("pause", "click", () => {
  const paused = !lists.paused;
  lists.pause(paused);
  board.pause(paused);
  $("pause").setAttribute("aria-pressed", String(paused));
  draw();
});
on("sport", "change", () => {
  lists.filter.sport = $("sport").value;
  if (tab === "board" && !eventsOf().some((each) => each.id === board.event)) {
    board.choose(eventsOf()[0]?.id ?? "");
    openBoard();
  }
  drawEvents();
  changed();
});
on("when", "change", () => { lists.filter.when = $("when").value; changed(); });
on("find", "input", () => { lists.filter.find = $("find").value.trim().toLowerCase(); changed(); });
on("least", "input", () => {
  const value = $("least").valueAsNumber;
  lists.least[lists.kind] = Number.isNaN(value) ? "" : value;
  changed();
});
on("filters", "submit", (event) => event.preventDefault());
on("event", "change", () => { board.choose($("event").value); openBoard(); draw(); });
on("market", "change", () => { board.market = $("market").value; board.wipe(); draw(); });
on("alternates", "change", () => { board.alternates = $("alternates").checked; draw(); });
on("books", "click", () => openBooks($("books-list").hidden));
on("books-boxes", "change", chooseBooks);
for (const [id, checked] of [["books-all", true], ["books-none", false]]) {
  on(id, "click", () => {
    for (const box of $("books-boxes").querySelectorAll("input")) box.checked = checked;
    chooseBooks();
  });
}
on("before", "click", () => turn(-1));
on("after", "click", () => turn(1));
function turn(by) {
  lists.pages[lists.kind] += by;
  draw();
  requestAnimationFrame(() => $("summary").scrollIntoView({ block: "nearest" }));
}
on("list", "click", (event) => {
  const sorted = event.target.closest("th button");
  if (sorted) { lists.sort(sorted.parentElement.dataset.column); draw(); }
  const game = event.target.closest("[data-compare]");
  if (game) compare(game.closest("tr").item);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("books-list").hidden) { openBooks(false); $("books").focus(); }
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".books")) openBooks(false);
});
for (const input of document.querySelectorAll("[name=format]")) {
  input.addEventListener("change", () => { format = input.value; draw(); });
}
addEventListener("online", () => [opportunities, prices].forEach((each) => each.again()));
setInterval(() => {
  const now = Date.now();
  opportunities.look(now);
  prices.look(now);
  showAge();
  tickTimes();
}, 1000);

// ---- the beginning ----

makeTabs();
const demo = document.body.dataset.demoKey;
$("demo-help").hidden = !demo;
$("key").value = demo;
if (demo) $("key").type = "text"; // everybody knows it
const kept = sessionStorage.getItem(KEY);
if (kept) enter(kept);
