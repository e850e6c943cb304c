// The page: the key and its rights, the streams, tabs, and when what is drawn.

const BASE = document.body.dataset.base;
const REDRAW_MS = 300; // between two drawings that only the stream asks for
const EVENTS_MS = 60_000;
const START_MS = 1000; // between two looks at whether the node has started
const AGES_MS = 10_000; // between two looks at how old prices are
const KEY = "oddsengine.key";
const NAMES_MS = 3000; // for which rows wait for the names in them
const SETTLED_MS = 1500; // a state that lasts so long is said aloud

let known = 0; // moves when names arrive
let key = "";
let tab = "ev";
let events = [];
let drawn = 0;
let waiting = 0;
let asked = 0; // the frame that is to draw; a page in the background gets none
let readAt = 0;
let rights = {};
let tierOf = new Map(); // the tier that a book needs
let places = []; // in which a book is known to take bets
let sportOf = new Map(); // of a league
let sportsOf = new Map(); // of a market
let resting = false; // hidden for long, and not listening

const lists = new Lists();
const board = new Board();
const screen = new Screen();
const games = new Games();
const details = new Details();
const movers = new Movers();
const tracker = new Tracker();
const report = new BetReport();
const trackRecord = new TrackRecord();
const betForm = new BetForm();
const betFile = new BetFile();
const sources = new Sources();
const alerts = new PageAlerts();
let opportunities = new Listener(takeList, showState);
let prices = new Listener(takePrices, showState);
const screenPrices = new Poller((name, payload) => screen.take(name, payload) && later(), showState, SCREEN_S);
const scores = new Listener((name, payload) => {
  if (name === "connected") games.clear();
  if (games.take(name, payload)) later();
}, (it) => {
  if (it.state === "refused") games.clear();
  else if (it.state === "broken") games.age();
  later();
});

function takeList(name, payload) {
  if (!(own() && name.startsWith("ev:")) && lists.take(name, payload)) later();
  if (name === "snapshot:complete" && !names.sports.size) learnNames(); // the server was away when it was asked
}
function takePrices(name, payload) {
  if (games.take(name, payload) || board.take(name, payload)) later();
}
let fairRows = [];
const fair = new Poller((name, payload) => {
  if (name === "connected") fairRows = [];
  else if (name === "ev:detected") fairRows.push(...payload);
  else lists.replace("ev", fairRows);
  later();
}, showState);
const may = (feature) => !rights.features || Boolean(rights.features[feature]);

// ---- drawing: once a frame, and no more often than is needed ----

function draw() {
  clearTimeout(waiting);
  waiting = 0;
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    drawn = performance.now();
    for (const kind of Object.keys(KINDS)) {
      const count = $(`tab-${kind}`)?.querySelector(".count");
      if (count) write(count, !may(kind) ? spelled(needs[kind]) : lists.waiting ? "" : String(lists.count(kind)));
      count?.classList.toggle("needs", !may(kind));
    }
    if (onScreen()) screen.render();
    else if (tab === "board") {
      board.render();
      board.seed(ask);
    } else if (tab in KINDS) lists.render();
  });
}

function later() {
  if (!waiting) waiting = setTimeout(draw, Math.max(0, drawn + REDRAW_MS - performance.now()));
}

// Whether the games of a league are shown, and not one event.
const onScreen = () => tab === "board" && !board.event;

// ---- the state of the stream ----

const SAID = { idle: "Not connected", connecting: "Connecting", live: "Live", late: "Late", broken: "Broken", refused: "Refused" };
const WORST = ["refused", "broken", "late", "connecting", "live", "idle"];

function worst() {
  return [opportunities, prices, fair, screenPrices].reduce((one, other) => (WORST.indexOf(other.state) < WORST.indexOf(one.state) ? other : one));
}

// Whether what stands on the page is no longer followed.
const stalled = () => resting || ["late", "broken", "refused"].includes((onScreen() ? screenPrices : tab === "board" ? prices : opportunities).state);

function stated(it) {
  if (resting) return "Paused while hidden";
  if (it.state === "refused") return `${it === prices ? "Event" : it === screenPrices ? "Odds" : "Lists"}: ${it.reason}`;
  if (it.state === "broken") return `Broken: ${it.reason}`;
  if (it.state === "idle" && key) return "Connected";
  return it.state === "live" && it.every ? `Polling every ${it.every} s` : SAID[it.state];
}

function showState(listener) {
  if (listener.state === "refused" && listener.status === 401) return leave(listener.reason);
  if (listener.state === "refused" && listener.status === 403) recheck();
  const it = worst();
  $("connection").dataset.state = it.state === "refused" ? "broken" : it.state;
  const text = stated(it);
  write($("state"), text);
  if (it.state !== "connecting" && it.state !== "idle") speak("stream", text, SETTLED_MS);
  $("live").classList.toggle("old", resting || it.state === "broken" || it.state === "late");
  const again = $("again");
  if (it.state !== "broken" && document.activeElement === again) $("main").focus();
  again.hidden = it.state !== "broken";
  showLight();
  showAge();
  later();
}

// One light for the connection and the feeds: what a phone has room for.
function showLight() {
  const said = [$("state").textContent, sources.said].filter(Boolean).join(", ");
  $("light").setAttribute("aria-label", said);
  $("light").title = said;
}

function showAge() {
  const now = Date.now();
  const it = worst();
  const parts = [];
  if (it.heard) parts.push(`last event ${span(Math.max(0, (now - it.heard) / 1000))} ago`);
  if (it.state === "broken") parts.push(it.nextTry > now ? `next try in ${span((it.nextTry - now) / 1000)}` : "trying now");
  write($("age"), parts.join(", "));
}

// Said to those who do not see it, once: the last word of each kind, if it lasts.
const speaking = {};
function speak(kind, text, wait) {
  clearTimeout(speaking[kind]?.timer);
  const said = () => {
    if (speaking[kind].text === text) return;
    speaking[kind].text = text;
    write($("said"), text);
  };
  speaking[kind] = { text: speaking[kind]?.text, timer: setTimeout(said, wait) };
}

// ---- the key ----

async function enter(given) {
  key = given;
  sessionStorage.setItem(KEY, key);
  if ($("remember").checked) localStorage.setItem(KEY, key);
  write($("key-error"), "");
  $("key").removeAttribute("aria-invalid");
  $("entry").hidden = true;
  $("live").hidden = $("tools").hidden = false;
  $("connection").dataset.state = "connecting";
  write($("state"), SAID.connecting);
  lists.clear();
  games.clear();
  await learnRights();
  if (key === given) await Promise.race([learnNames(), new Promise((resolve) => setTimeout(resolve, NAMES_MS))]); // nobody reads ids
  if (key !== given) return;
  if (tab in KINDS && !may(tab)) tab = TABS.find(may) ?? "board";
  if (document.activeElement === document.body) $("main").focus({ preventScroll: true });
  listen();
  learn();
  show(tab);
  showState(opportunities);
  if (linked && tab in KINDS) details.find(tab, linked);
  linked = "";
}

function leave(why = "") {
  sessionStorage.removeItem(KEY);
  key = "";
  for (const each of [opportunities, prices, scores, screenPrices]) each.close();
  lists.clear();
  screen.forget();
  movers.rows = null;
  games.clear();
  board.choose("");
  details.close();
  [marks, placedIds, saved, alerts.alerts] = [new Map(), new Set(), [], []];
  Object.assign(tracker, { bets: [], meta: null, more: false, page: 0 });
  $("alert-now").hidden = true;
  rights = {};
  lists.filter.books = board.books = settings.books && new Set(settings.books); // another key may have other books
  if ($("settings").open) $("settings").close();
  localStorage.removeItem(KEY);
  fair.close();
  $("entry").hidden = false;
  $("live").hidden = $("tools").hidden = true;
  write($("key-error"), why);
  if (why) $("key").setAttribute("aria-invalid", "true");
  else $("key").removeAttribute("aria-invalid");
  $("connection").dataset.state = why ? "broken" : "idle";
  write($("state"), why ? "Not connected: the key was refused" : "Not connected");
  write($("age"), "");
  $("again").hidden = true;
  $("key").focus();
  for (const id of ["alert-targets", "details-note"]) $(id).value = "";
  report.clear();
  trackRecord.clear();
  tracker.render(); // nothing of this key stays for the next one to read
  alerts.render();
  drawFilters();
}

// What the key may do. If nobody says, the streams will. A node that starts is waited for.
async function learnRights() {
  const mine = key;
  let answer = await call("GET", "/account");
  while (answer.status === 503 && key === mine) {
    write($("state"), answer.error);
    await new Promise((resolve) => setTimeout(resolve, START_MS));
    answer = await call("GET", "/account");
  }
  if (key !== mine) return;
  const found = answer.data;
  rights = found ? { tier: found.tier, features: found.features, streams: found.streaming.enabled, delay: found.limits.odds_delay_seconds } : {};
  for (const each of [opportunities, prices]) each.close();
  const Kind = rights.streams === false ? Poller : Listener;
  opportunities = new Kind(takeList, showState);
  prices = new Kind(takePrices, showState);
  const parts = [];
  if (rights.streams === false) parts.push(`The ${rights.tier} tier does not include streaming; the page polls every ${EVERY_S} s or less often.`);
  if (rights.delay) parts.push(`Prices are delayed by ${rights.delay} s.`);
  write($("notice"), parts.join(" "));
}

// A right was taken away or given while we listened.
async function recheck() {
  const before = JSON.stringify(rights);
  const [mine, found] = [key, (await ask("/account"))?.data];
  if (!found || key !== mine) return;
  const { tier, features, streaming, limits } = found;
  const now = JSON.stringify({ tier, features, streams: streaming.enabled, delay: limits.odds_delay_seconds });
  if (now !== before) enter(key);
}

function listen() {
  if (own() && may("ev")) {
    fair.open([[`${BASE}/opportunities/ev?min_ev=0${viewOf("ev")}`, (rows) => ["ev:detected", rows]]], key);
  } else fair.close();
  if (rights.streams !== false) return opportunities.open(`${BASE}/stream/opportunities?min_ev=0${ofBooks()}${staked()}${included()}`, key);
  const parts = Object.entries(KINDS).filter(([kind]) => may(kind) && !(kind === "ev" && own()))
    .map(([kind, { path, event }]) => [`${BASE}/opportunities/${path}${viewOf(kind)}`, (rows) => [`${event}:detected`, rows]]);
  if (parts.length) opportunities.open(parts, key);
}

// A request that changes something; what went wrong is `error`.
async function call(method, path, body) {
  try {
    const headers = { "X-API-Key": key, ...(body && { "Content-Type": "application/json" }) };
    const answer = await fetch(BASE + path, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) return { error: (await refusal(answer)).text, status: answer.status };
    return answer.status === 204 ? {} : await answer.json();
  } catch {
    return { error: "The server cannot be reached." };
  }
}

async function ask(path) {
  try {
    const answer = await fetch(BASE + path, { headers: { "X-API-Key": key } });
    setClock(answer);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

// Names of sports, leagues, books and markets.
async function learnNames() {
  const mine = key;
  await Promise.all(Object.keys(names).map(async (what) => {
    const found = await ask(`/${what}`);
    if (!found || key !== mine) return;
    names[what] = new Map(found.data.map((each) => [each.id, each.name]));
    if (what === "leagues") sportOf = new Map(found.data.map((each) => [each.id, each.sport]));
    if (what === "sportsbooks") {
      tierOf = new Map(found.data.map((each) => [each.id, each.requires_tier]));
      places = [...new Set(found.data.flatMap((each) => each.places?.open ?? []))].sort();
    }
    if (what === "markets") sportsOf = new Map(found.data.map((each) => [each.id, each.sports]));
    if (what === "markets") for (const map of Object.values(lists.held)) for (const it of map.values()) Object.assign(it, item(it.kind, it.row));
  }));
  if (key !== mine) return;
  known += 1;
  drawFilters();
  drawBooks();
  draw();
}

// What the key has stored, and the events there are.
async function learn() {
  if (Object.keys(KINDS).some(may)) { // without opportunities these are asked for where they are looked at: few requests a minute are left
    readSaved();
    readMarks();
    alerts.read();
    tracker.read();
  }
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

const OTHERS = { board: ["Odds ", ""], movers: ["Movers ", ""], bets: ["Bets ", ""], alerts: ["Alerts ", ""], record: ["Track record ", ""] };
const TABS = [...Object.keys(KINDS), ...Object.keys(OTHERS)];
const panelOf = (id) => (id in KINDS ? "panel-list" : `panel-${id}`);

function makeTabs() {
  $("tabs").append(...TABS.map((id) => el(
    "button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": panelOf(id) },
    ...(id in OTHERS ? [OTHERS[id][0], el("span", {}, OTHERS[id][1])] : [`${KINDS[id].tab} `, el("span", { class: "count" })]),
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
  lists.still = false;
  lists.loosen();
  const isBoard = id === "board";
  for (const each of TABS) {
    $(`tab-${each}`).setAttribute("aria-selected", String(each === id));
    $(`tab-${each}`).tabIndex = each === id ? 0 : -1;
  }
  const [bar, chosen] = [$("tabs"), $(`tab-${id}`)];
  bar.scrollLeft = chosen.offsetLeft - bar.offsetLeft - (bar.clientWidth - chosen.offsetWidth) / 2;
  for (const panel of new Set(TABS.map(panelOf))) $(panel).hidden = panel !== panelOf(id);
  $(panelOf(id)).setAttribute("aria-labelledby", `tab-${id}`);
  $("filters").hidden = id in OTHERS && !["board", "movers"].includes(id);
  if (!(id in KINDS) && $("more-filters").getAttribute("aria-expanded") === "true") $("more-filters").click();
  for (const node of document.querySelectorAll(".list-only")) node.hidden = !(id in KINDS || (id === "movers" && node.classList.contains("movers-too")) || (isBoard && !board.event && node.classList.contains("screen-too")));
  for (const node of document.querySelectorAll(".board-only")) node.hidden = !isBoard || node.classList.contains(board.event ? "screen-only" : "event-only");
  $("one-event").hidden = !board.event;
  $("all-games").hidden = Boolean(board.event);
  if (isBoard) {
    if (Date.now() - readAt > EVENTS_MS) learnEvents();
    drawEvents();
    openBoard();
  } else {
    prices.close();
    screenPrices.close();
    openScores();
    if (id === "movers") movers.read();
    if (id === "bets") tracker.read();
    if (id === "alerts") alerts.read();
    if (id === "record") trackRecord.read();
    if (id in KINDS) {
      lists.kind = id;
      write($("least-label"), KINDS[id].threshold);
      if (!$("legend").hidden) showLegend(true);
    }
  }
  drawFilters();
  writeAddress();
  draw();
}

// ---- the board's event ----

const eventsOf = () => events.filter((each) => !lists.filter.sport || each.sport === lists.filter.sport);

function drawEvents() {
  const leagues = new Map();
  for (const each of eventsOf()) {
    const list = leagues.get(each.league) ?? leagues.set(each.league, []).get(each.league);
    const at = new Date(each.start_time);
    const when = each.is_live ? "in play" : local(at, { weekday: "short", hour: "numeric", minute: "2-digit" });
    list.push([each.id, `${each.away_team} @ ${each.home_team} (${when})`]);
  }
  const groups = [...leagues].map(([league, list]) => [called("leagues", league), list]);
  if (board.event && !events.some((each) => each.id === board.event)) groups.unshift(["", [[board.event, "This event"]]]);
  choose($("event"), [["", [["", "All games"]]], ...groups], board.event);
  if (onScreen() && events.length && screenPrices.state === "idle" && key) openBoard();
}

// Two streams at once and no more: a browser has six connections to a server, over all of its windows.
function openBoard() {
  if (!board.event) {
    prices.close();
    openScores();
    screen.settle();
    if (screen.league && screen.market) screenPrices.open([[`${BASE}${screen.path()}`, (rows) => ["games", rows]]], key);
    return;
  }
  scores.close();
  screenPrices.close();
  const event = encodeURIComponent(board.event);
  const all = rights.features?.gamestate;
  if (rights.streams === false) prices.open([[`${BASE}/odds?event=${event}`, (odds) => ["snapshot", { odds }]]], key);
  else prices.open(`${BASE}/stream/${all ? `all?min_ev=0&event=${event}` : `events/${event}`}`, key);
}

function openScores() {
  if (scores.state === "idle" && rights.streams && rights.features?.gamestate) scores.open(`${BASE}/stream/gamestate`, key);
}

// One event, or all games of a league.
function watchEvent(id) {
  board.choose(id);
  show("board");
}

function compare(it) {
  if (it.eventId !== board.event) board.choose(it.eventId);
  board.market = "";
  board.forget();
  board.wanted = marketKey({ market_type: it.market, market_segment: it.row.market_segment ?? "full_game" });
  if (it.row.is_alternate_line) $("alternates").checked = board.alternates = true;
  show("board");
  $("tab-board").focus();
}
