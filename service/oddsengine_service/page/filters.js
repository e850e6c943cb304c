// Filters: which rows a list shows. They are the parameters of the lists' endpoints, stand in the address, and can be saved.

const FIELDS = { sport: "sport", league: "league", market: "market", when: "live", find: "q", low: "min_odds", high: "max_odds", hours: "starts_within", stands: "min_still_there", terms: "terms", stake: "stake", include: "include", sharp: "devig_book", method: "devig_method" };
const LIVE = { pre: "false", live: "true" };
let saved = []; // of this key, from the service

const isProp = (type) => type.startsWith("player_");
const alike = (one, other) => one === other || (families[one] !== undefined && families[one] === families[other]);
const ofMarket = (wanted, type) => wanted === type || (categories[wanted] ?? []).some((each) => alike(each, type) || (each === "player_*" && isProp(type)));

function fits(it, filter, least) {
  const { sport, league, market, when, words, low, high, hours, stands, terms, books } = filter;
  if (!filter.hidden && marks.get(it.id)?.hidden) return false;
  if (sport && it.row.sport !== sport) return false;
  if (league && it.row.league !== league) return false;
  if (market && !ofMarket(market, it.market)) return false;
  if (when && it.row.is_live !== (when === "live")) return false;
  if (least !== "" && (KINDS[it.kind].rises ? it.value < least : it.value > least)) return false;
  if (low !== "" && it.legs.some((leg) => leg.american < low)) return false;
  if (high !== "" && it.legs.some((leg) => leg.american > high)) return false;
  if (hours !== "" && (it.start === null || it.start > clock() + hours * 3_600_000)) return false;
  if (stands !== "" && it.kind === "ev" && !(it.row.still_there >= stands)) return false;
  if (terms === "same" && it.row.terms_differ) return false;
  if (books && !it.legs.every((leg) => leg.books.some((book) => books.has(book)))) return false;
  return words.every((word) => it.text.includes(word));
}

// American odds, also where somebody types decimal ones.
function americanOdds(text) {
  const value = Number(text.replace("−", "-"));
  if (text.trim() === "" || Number.isNaN(value)) return "";
  if (Math.abs(value) >= 100) return value;
  return value > 1 ? wholeOdds(americanOf(value)) : "";
}

// ---- as parameters ----

// The chosen books, or a word that no book has if none is.
const bookList = () => [...lists.filter.books].join(",") || "none";
const ofBooks = () => (lists.filter.books ? `&sportsbook=${encodeURIComponent(bookList())}` : "");
const staked = () => (lists.filter.stake === "" ? "" : `&stake=${lists.filter.stake}`);
// +EV by a reference or a method of somebody's choice is asked for: the stream has the usual ones.
const own = () => Boolean(lists.filter.sharp || lists.filter.method);
const reference = () => [["devig_book", lists.filter.sharp], ["devig_method", lists.filter.method]].map(([name, value]) => value && `&${name}=${encodeURIComponent(value)}`).join("");
const included = () => lists.filter.include && `&include=${lists.filter.include}`;
// What decides which opportunities of a kind there are.
const viewOf = (kind) => ofBooks() + staked() + (kind === "ev" ? reference() + included() : "");

function queryOf() {
  const { filter } = lists;
  const query = new URLSearchParams();
  for (const [name, param] of Object.entries(FIELDS)) {
    const value = name === "when" ? LIVE[filter.when] : filter[name];
    if (value !== "" && value !== undefined) query.set(param, value);
  }
  if (filter.books) query.set("sportsbook", bookList());
  const least = lists.least[lists.kind] === "" && settings[lists.kind] !== "" && KINDS[lists.kind].rises ? 0 : lists.least[lists.kind];
  if (least !== "") query.set(KINDS[lists.kind].limit, least);
  return query;
}

const leastOf = (query, kind) => (query.has(KINDS[kind].limit) ? numberOf(query, KINDS[kind].limit) : settings[kind]);
const numberOf = (query, name) => (query.get(name) === null || Number.isNaN(Number(query.get(name))) ? "" : Number(query.get(name)));

function filterOf(query) {
  const filter = {};
  for (const [name, param] of Object.entries(FIELDS)) filter[name] = ["low", "high", "hours", "stands", "stake"].includes(name) ? numberOf(query, param) : query.get(param) ?? "";
  if (filter.terms !== "same") filter.terms = "";
  if (!(filter.stake > 0)) filter.stake = "";
  if (filter.include !== "one_sided") filter.include = "";
  filter.when = Object.keys(LIVE).find((each) => LIVE[each] === filter.when) ?? "";
  filter.words = filter.find.toLowerCase().split(/\s+/).filter(Boolean);
  const books = query.get("sportsbook");
  filter.books = books === null ? null : new Set(books.split(","));
  return filter;
}

function takeQuery(query, kind) {
  Object.assign(lists.filter, filterOf(query));
  board.books = lists.filter.books;
  lists.least[kind] = leastOf(query, kind);
}

// The address says what is shown, so that it can be sent to somebody; the key is not in it.
function writeAddress() {
  const query = queryOf();
  query.delete("list");
  if (lists.least[lists.kind] === settings[lists.kind]) query.delete(KINDS[lists.kind].limit);
  if (tab !== "ev") query.set("list", tab);
  if (tab === "board" && board.event) query.set("event", board.event);
  if (!lists.filter.group) query.set("group", "none");
  if (details.it?.kind === tab) query.set("open", details.it.id);
  const address = query.size ? `?${query}` : location.pathname;
  if (address !== (location.search || location.pathname)) history.replaceState(null, "", address);
}

let linked = ""; // id of the row that the address opens

function readAddress() {
  const query = new URLSearchParams(location.search);
  const wanted = query.get("list");
  if (TABS.includes(wanted)) tab = wanted;
  if (tab in KINDS) lists.kind = tab;
  if (tab === "board" && query.get("event")) board.choose(query.get("event"));
  lists.filter.group = query.get("group") !== "none";
  takeQuery(query, lists.kind);
  if (settings.books && !query.has("sportsbook")) lists.filter.books = board.books = new Set(settings.books);
  if (settings.sharp && !query.has("devig_book")) lists.filter.sharp = settings.sharp;
  linked = query.get("open") ?? "";
}

// ---- on the page ----

function drawFilters() {
  const { filter } = lists;
  const leagues = byName([...names.leagues].filter(([id]) => !filter.sport || sportOf.get(id) === filter.sport));
  const kinds = byName(names.markets);
  const other = (list, value, name) => (value && !list.some(([id]) => id === value) ? [[value, name(value)]] : []);
  choose($("sport"), [["", [["", "All"], ...names.sports, ...other([...names.sports], filter.sport, spelled)]]], filter.sport);
  choose($("league"), [["", [["", "All"], ...leagues, ...other(leagues, filter.league, spelled)]]], filter.league);
  const short = Object.keys(categories).map((id) => [id, { main: "Main lines", spread: "Spreads", total: "Totals", props: "Player props" }[id] ?? spelled(id)]);
  choose($("only"), [["", [["", "All"], ...short]], ["Markets", [...kinds, ...other([...kinds, ...short], filter.market, spelled)]]], filter.market);
  choose($("sharp"), [["", [["", "Automatic"], ...byName(names.sportsbooks)]]], filter.sharp);
  choose($("method"), [["", [["", "Automatic"], ...methods.map((each) => [each, spelled(each)])]]], filter.method);
  for (const [id, value] of [["when", filter.when], ["find", filter.find], ["low", filter.low], ["high", filter.high], ["hours", filter.hours], ["stands", filter.stands === "" ? "" : Math.round(100 * filter.stands)], ["terms", filter.terms], ["staked", filter.stake], ["least", lists.least[lists.kind]]]) {
    if (document.activeElement !== $(id) && $(id).value !== String(value)) $(id).value = value;
  }
  $("group").checked = filter.group;
  $("one-sided").checked = filter.include === "one_sided";
  write($("books"), filter.books === null ? "All" : filter.books.size === 1 ? called("sportsbooks", [...filter.books][0]) : `${filter.books.size} books`);
  const count = ["low", "high", "hours", "stands", "terms", "stake", "include", "sharp", "method"].filter((name) => filter[name] !== "").length;
  write($("more-filters"), count ? `More (${count})` : "More");
  choose($("saved"), [["", [["", saved.length ? "Choose" : "None"], ...saved.map((each) => [each.name, each.name])]]], $("saved").value);
  $("forget").disabled = $("saved").value === "";
}

// ---- saved ones ----

async function readSaved() {
  const mine = key;
  const found = await ask("/filters");
  if (key !== mine) return;
  saved = found?.data ?? [];
  drawFilters();
  alerts.render();
}
function applySaved(name) {
  const one = saved.find((each) => each.name === name);
  if (!one) return;
  takeQuery(new URLSearchParams(one.query), one.list);
  drawBooks();
  show(one.list);
  listen();
  changed();
}
async function save(name) {
  const answer = await call("PUT", `/filters/${encodeURIComponent(name)}`, { list: lists.kind, query: queryOf().toString() });
  write($("save-said"), answer.error ?? `Saved as ${name}.`);
  if (!answer.error) await readSaved();
  $("saved").value = name;
  drawFilters();
}
async function forgetSaved(name) {
  const answer = await call("DELETE", `/filters/${encodeURIComponent(name)}`);
  write($("save-said"), answer.error ?? `${name} was deleted.`);
  $("saved").value = "";
  await readSaved();
}
