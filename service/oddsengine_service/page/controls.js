// What people press, choose and type; and the beginning.

const REST_MS = 60_000;
let agesAt = 0;

// ---- books ----

function drawBooks() {
  const rank = tiers.indexOf(rights.tier);
  const open = (id) => rank < 0 || tiers.indexOf(tierOf.get(id)) <= rank;
  choose($("books-place"), placeGroups(), "");
  write($("books-said"), "");
  $("books-boxes").replaceChildren(...byName([...names.sportsbooks].filter(([id]) => open(id))).map(([id, name]) => {
    const box = el("input", { type: "checkbox", value: id });
    box.checked = !lists.filter.books || lists.filter.books.has(id);
    return el("label", {}, box, name);
  }));
}

const countryNames = new Intl.DisplayNames(["en"], { type: "region" });

function placeGroups() {
  const named = places.map((place) => [place, place.includes("-") ? place : countryNames.of(place)]);
  return [["", [["", "Choose"]]], ["Countries", byName(named.filter(([place]) => !place.includes("-")))], ["States", named.filter(([place]) => place.includes("-"))]];
}

// Take the books that are known to take bets in a place.
async function choosePlace(place) {
  const found = place && (await ask(`/sportsbooks?location=${place}`));
  if (!found || $("books-place").value !== place) return;
  const here = new Set(found.data.map((each) => each.id));
  const boxes = [...$("books-boxes").querySelectorAll("input")];
  for (const box of boxes) box.checked = here.has(box.value);
  chooseBooks();
  const count = boxes.filter((box) => box.checked).length;
  write($("books-said"), `${counted(count, "book")} known to take bets there. Of most others it is not known: add the ones you use.`);
}

let relisten = 0;
function chooseBooks() {
  const boxes = [...$("books-boxes").querySelectorAll("input")];
  const on = boxes.filter((box) => box.checked).map((box) => box.value);
  const books = on.length === boxes.length ? null : new Set(on);
  lists.filter.books = board.books = books;
  board.forget();
  screen.forget();
  clearTimeout(relisten);
  relisten = setTimeout(() => { listen(); if (onScreen()) openBoard(); if (tab === "movers") movers.read(); }, 700); // the best prices of fewer books are other opportunities
  asks();
}

// On a phone, what the header has no room for.
function openMenu(open) {
  document.querySelector("header").classList.toggle("open", open);
  $("menu-open").setAttribute("aria-expanded", String(open));
}

function openBooks(open) {
  $("books-list").hidden = !open;
  $("books").setAttribute("aria-expanded", String(open));
}

// ---- what people do ----

function changed() {
  if (tab === "movers") movers.read();
  for (const kind of Object.keys(KINDS)) lists.pages[kind] = 0;
  asks();
}
function filtered(name, value) {
  lists.filter[name] = value;
  changed();
}
// Draw what was asked for, and say how much it is.
function asks() {
  drawFilters();
  writeAddress();
  lists.loosen();
  draw();
  requestAnimationFrame(() => setTimeout(() => speak("answer", (onScreen() ? $("screen-summary") : tab === "board" ? $("board-summary") : $("summary")).textContent, 600)));
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
  else leave("An API key contains letters, digits and punctuation, but no spaces.");
});
on("leave", "click", () => leave());
on("again", "click", () => [opportunities, prices, screenPrices].forEach((each) => each.again()));
on("pause", "click", () => {
  const paused = !lists.paused;
  lists.pause(paused);
  board.pause(paused);
  screen.paused = paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  draw();
});
on("sport", "change", () => {
  lists.filter.sport = $("sport").value;
  lists.filter.league = "";
  if (tab === "board" && !eventsOf().some((each) => each.id === board.event)) {
    screen.forget();
    watchEvent("");
  }
  drawEvents();
  changed();
});
for (const [id, name] of [["league", "league"], ["only", "market"], ["when", "when"], ["terms", "terms"]]) on(id, "change", () => filtered(name, $(id).value));
on("find", "input", () => {
  lists.filter.words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  filtered("find", $("find").value.trim());
});
for (const id of ["low", "high"]) on(id, "change", () => filtered(id, americanOdds($(id).value)));
on("staked", "change", () => { filtered("stake", $("staked").valueAsNumber > 0 ? $("staked").valueAsNumber : ""); listen(); });
on("hours", "input", () => filtered("hours", Number.isNaN($("hours").valueAsNumber) ? "" : $("hours").valueAsNumber));
on("stands", "input", () => filtered("stands", Number.isNaN($("stands").valueAsNumber) ? "" : $("stands").valueAsNumber / 100));
for (const id of ["sharp", "method"]) {
  on(id, "change", () => {
    filtered(id, $(id).value);
    lists.replace("ev", []);
    listen();
  });
}
on("saved", "change", () => { applySaved($("saved").value); drawFilters(); });
on("forget", "click", () => forgetSaved($("saved").value));
on("one-sided", "change", () => { filtered("include", $("one-sided").checked ? "one_sided" : ""); listen(); });
on("hidden-too", "change", () => filtered("hidden", $("hidden-too").checked));
on("details-close", "click", () => details.close());
on("details", "close", () => details.close());
on("details", "click", (event) => { if (event.target === $("details")) details.close(); });
on("details-place", "click", () => details.place());
on("details-hide", "click", () => details.mark({ hidden: !marks.get(details.it.id)?.hidden }));
on("details-note", "change", () => details.mark({ note: $("details-note").value.trim() }));
on("details-kelly", "submit", (event) => { event.preventDefault(); details.takeBankroll(numeral($("details-bankroll").value)); });
on("details-kelly", "click", (event) => event.target.id === "details-bankroll-later" && details.takeBankroll(0));
on("details-kelly", "input", (event) => event.target.id === "details-total" && details.share(numeral(event.target.value)));
on("details-outcome", "change", () => details.outcome(Number($("details-outcome").value)));
on("calculator", "change", () => details.calculator());
on("calculator-form", "submit", (event) => event.preventDefault());
on("calculator-fields", "change", () => details.calculate());
for (const id of ["status", "since", "until", "book", "market"]) on(`bets-${id}`, "change", () => { tracker.page = 0; tracker.read(); });
let finding = 0;
on("bets-find", "input", () => { clearTimeout(finding); finding = setTimeout(() => { tracker.page = 0; tracker.read(); }, 300); });
on("bets-filter", "submit", (event) => event.preventDefault());
on("bets-by", "change", () => report.render());
on("record-by", "change", () => trackRecord.render());
on("bets-add", "click", () => betForm.open());
on("bets-table", "click", (event) => event.target.dataset.edit && betForm.open(tracker.bets.find((bet) => bet.id === event.target.dataset.edit)));
on("bet-form", "submit", (event) => { event.preventDefault(); betForm.save(); });
on("bets-import", "click", () => $("bet-file").showModal());
on("file-chosen", "change", () => $("file-chosen").files.length && betFile.choose($("file-chosen").files[0]));
on("file-columns", "change", () => betFile.read());
on("file-order", "change", () => betFile.read());
on("file-import", "click", () => betFile.send());
on("bell", "click", () => alerts.ring());
on("bell-form", "submit", (event) => { event.preventDefault(); alerts.answer(); });
on("market-simulated", "click", () => OF_LIVE && location.assign(LIVE_AT.replace(/live$/, "")));
on("market-live", "click", () => markets.choose());
on("market-close", "click", () => markets.close());
on("market-league", "change", () => OF_LIVE && markets.choose());
on("sources", "click", () => { sources.render(); $("sources-dialog").showModal(); });
on("rotate", "click", () => { $("rotate-ask").hidden = false; write($("rotate-said"), ""); });
on("rotate-now", "click", rotateKey);
on("backup", "click", saveBackup);
on("restore", "change", () => { if ($("restore").files.length) restoreBackup($("restore").files[0]); $("restore").value = ""; });
for (const id of ["bet", "bet-file", "bell-dialog", "sources-dialog", "settings", "moves"]) {
  on(id, "click", (event) => { if (event.target === $(id) || event.target.dataset.close) $(id).close(); });
}
on("bets-export", "click", () => tracker.download());
on("bets-older", "click", () => { tracker.page = tracker.more ? tracker.page + 1 : 0; tracker.read(); });
on("bets-table", "change", (event) => event.target.dataset.bet && tracker.settle(event.target.dataset.bet, event.target.value));
on("bets-table", "click", (event) => event.target.dataset.remove && tracker.remove(event.target.dataset.remove));
on("alert-form", "submit", (event) => { event.preventDefault(); alerts.create(); });
on("alert-list", "click", (event) => event.target.dataset.do && alerts.act(event.target.closest("li").dataset.id, event.target.dataset.do, event.target.closest("li").querySelector("input")?.value.trim()));
on("alert-allow", "click", () => Notification.requestPermission().then(() => alerts.render()));
on("more-panel", "submit", (event) => {
  event.preventDefault();
  const name = $("save-name").value.trim();
  if (name) save(name);
});
on("order", "change", () => {
  const [column, down] = $("order").value.split(" ");
  lists.order(column, down === "true");
  asks();
});
on("least", "input", () => {
  const value = $("least").valueAsNumber;
  lists.least[lists.kind] = Number.isNaN(value) ? "" : value;
  changed();
});
on("group", "change", () => filtered("group", $("group").checked));
on("legend-open", "click", () => showLegend($("legend").hidden));
document.addEventListener("click", tapped, true);
on("more-filters", "click", () => {
  $("more-panel").hidden = !$("more-panel").hidden;
  $("more-filters").setAttribute("aria-expanded", String(!$("more-panel").hidden));
});
on("welcome-close", "click", welcomed);
on("menu-open", "click", () => openMenu($("menu-open").getAttribute("aria-expanded") !== "true"));
on("open-settings", "click", openSettings);
on("settings", "change", (event) => event.target.dataset.setting && changeSetting(event.target));
on("settings-form", "submit", (event) => { event.preventDefault(); $("settings").close(); });
on("setting-books-keep", "click", () => keepBooks(lists.filter.books && [...lists.filter.books]));
on("setting-books-all", "click", () => keepBooks(null));
on("filters", "submit", (event) => event.preventDefault());
on("event", "change", () => watchEvent($("event").value));
on("back-to-games", "click", () => { watchEvent(""); $("event").focus(); });
on("screen", "click", (event) => {
  const game = event.target.closest("[data-event]");
  if (game) { watchEvent(game.dataset.event); $("event").focus(); }
});
on("market", "change", () => {
  if (onScreen()) return chooseScreen("market", $("market").value);
  board.market = $("market").value;
  board.forget();
  asks();
});
on("movers-minutes", "change", () => { movers.minutes = Number($("movers-minutes").value); movers.read(); });
on("movers-sort", "change", () => { movers.sort = $("movers-sort").value; movers.read(); });
on("movers-live", "change", () => { movers.live = $("movers-live").value; movers.read(); });
on("movers-table", "click", (event) => {
  const row = event.target.closest("tbody tr");
  if (row && !getSelection().toString()) movers.open(row.rowIndex - 1);
});
on("screen-league", "change", () => chooseScreen("league", $("screen-league").value));
function chooseScreen(name, value) {
  screen[name] = value;
  screen.forget();
  openBoard();
  asks();
}
on("alternates", "change", () => { board.alternates = $("alternates").checked; board.forget(); asks(); });
on("books", "click", () => openBooks($("books-list").hidden));
on("books-boxes", "change", chooseBooks);
on("books-place", "change", () => choosePlace($("books-place").value));
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
  asks();
  requestAnimationFrame(() => $("summary").scrollIntoView({ block: "nearest" }));
}
on("list", "click", (event) => {
  const sorted = event.target.closest("th button");
  if (sorted) { lists.sort(sorted.parentElement.dataset.column); asks(); }
  const game = event.target.closest("[data-compare]");
  if (game) compare(game.closest("tr").item);
  const opened = event.target.closest("[data-open]") ?? (event.target.closest("a, button, input, select") || getSelection().toString() ? null : event.target.closest("tbody tr[data-id]"));
  if (opened) details.open(opened.closest("tr").item);
});
// Rows keep their places while a mouse or the keyboard is among them.
function rests(still) {
  if (lists.still === still) return;
  lists.still = still;
  draw();
}
const rows = $("list").tBodies[0];
rows.addEventListener("pointerover", (event) => event.pointerType === "mouse" && rests(true));
rows.addEventListener("pointerleave", () => rests(rows.contains(document.activeElement)));
rows.addEventListener("focusin", () => rests(true));
rows.addEventListener("focusout", (event) => rests(rows.contains(event.relatedTarget) || rows.matches(":hover")));
$("books").parentElement.addEventListener("focusout", (event) => {
  if (event.relatedTarget && !event.currentTarget.contains(event.relatedTarget)) openBooks(false);
});
on("more", "click", () => $("more").setAttribute("aria-expanded", String($("filters").classList.toggle("open"))));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") $("tip").hidden = true;
  if (event.key === "Escape" && !$("books-list").hidden) { openBooks(false); $("books").focus(); }
  else if (event.key === "Escape" && $("menu-open").getAttribute("aria-expanded") === "true") { openMenu(false); $("menu-open").focus(); }
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".books")) openBooks(false);
  if (!event.target.closest("header")) openMenu(false);
});
addEventListener("online", () => [opportunities, prices, scores, screenPrices].forEach((each) => each.again()));
// A tab that nobody sees for a while leaves its connections to those that are seen.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!key) return;
  if (document.hidden) hiding = setTimeout(rest, REST_MS);
  else if (resting) wake();
});
function rest() {
  resting = true;
  for (const each of [opportunities, prices, scores, fair, screenPrices]) each.close();
}
function wake() {
  resting = false;
  listen();
  if (tab === "board") openBoard();
  else openScores();
}
setInterval(() => {
  const now = Date.now();
  opportunities.look(now);
  prices.look(now);
  fair.look(now);
  scores.look(now);
  screenPrices.look(now);
  if (tab === "board" && key && !resting && now - readAt > (events.length ? EVENTS_MS : EVENTS_MS / 4)) learnEvents();
  if (key && rights.tier && !stalled() && rights.streams !== false && now - agesAt > AGES_MS) {
    agesAt = now;
    if (details.it) details.refresh();
    if (tab === "bets") tracker.read();
    if (tab === "alerts") alerts.read();
    if (tab === "movers") movers.read();
    if (tab === "board" && board.event) board.refresh(ask);
    else if (tab in KINDS) lists.refresh(ask);
  }
  if (tab === "board") later();
  alerts.look();
  if (key && !resting) sources.look();
  if (!resting) markets.look();
  showAge();
  tickTimes();
}, 1000);

// ---- the beginning ----

document.documentElement.style.colorScheme = settings.theme;
makeTabs();
const given = new URLSearchParams(location.hash.slice(1)).get("key"); // from `oddsengine init`; the address does not keep it
if (given) history.replaceState(null, "", location.pathname + location.search);
readAddress();
const demo = document.body.dataset.demoKey;
$("demo-help").hidden = !demo;
$("own-help").hidden = Boolean(demo);
$("welcome").hidden = settings.welcomed;
$("welcome-simulated").hidden = document.body.dataset.market !== "simulated";
$("simulated").hidden = $("real-prices").hidden = document.body.dataset.market !== "simulated" || Boolean(LIVE_AT);
markets.begin();
$("key").value = demo;
if (demo) $("key").type = "text"; // everybody knows it
$("remember").checked = localStorage.getItem(KEY) !== null;
const kept = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
if (given || kept || demo) enter(given || kept || demo);
