// The four lists: what is held, what of it is shown, and in which order.

const PAGE = 50; // rows that are on the page at once
const collator = new Intl.Collator("en", { numeric: true });

// A selection as its book words it, and what that leaves out: the team of a side, the player, the line.
function wording({ selection: worded, line, selection_type: type, outcome = type }, player, game) {
  const selection = (/^(home|away|[12ha])$/i.test(worded) && game?.[`${outcome}_team`]) || worded;
  const who = player && !selection.includes(player) ? `${player} ` : "";
  const bare = line === null || line === undefined || namesLine(selection, line);
  return who + selection.replace(/(^|\s)-(?=[\d.])/g, "$1−") + (bare ? "" : ` ${/\b(over|under)\b/i.test(selection) ? line : signed(line)}`);
}
// Whether a selection has its line as a number of its own: the 6 of the 76ers is none.
function namesLine(selection, line) {
  const number = String(Math.abs(line)).replace(".", "\\.");
  return new RegExp(`(?<![\\d.])${number}(\\.0+)?(?![\\w.])`).test(selection);
}
const side = (row, each, book, stake) => ({
  selection: wording(each, row.player_name, row), market: each.market_type ?? row.market_type, plain: each.selection, line: each.line ?? null, type: each.selection_type,
  books: [book].flat(), ids: each.odds_ids ?? { [book]: each.odds_id }, american: each.odds_american, decimal: each.odds_decimal, stake,
});
const sides = (row) => [row.side1, row.side2, row.side3].filter(Boolean);

// By kind, what the node says of it. Inside, rows have the names of the library's columns: those of the API that differ are undone here.
const KINDS = Object.fromEntries(kinds.map((kind) => [kind.name, kind]));
function named(part, fields) {
  const out = { ...part };
  for (const [, path] of fields) delete out[path.split(".")[0]];
  for (const [column, path] of fields) {
    const value = path.split(".").reduce((inner, step) => inner?.[step], part);
    if (value !== undefined) out[column] = value;
  }
  return out;
}
function ownNames(kind, row) {
  const fields = Object.entries(KINDS[kind].fields);
  const out = named(row, fields.filter(([column]) => !column.includes(".")));
  for (const [name, part] of Object.entries(out)) {
    const outer = `${/^side\d$/.test(name) ? "side" : name}.`;
    const own = fields.filter(([column]) => column.startsWith(outer)).map((pair) => pair.map((path) => path.slice(outer.length)));
    if (own.length && part) out[name] = Array.isArray(part) ? part.map((each) => named(each, own)) : named(part, own);
  }
  return out;
}
function legsOf(row) {
  if (row.legs) return row.legs.map((leg) => side(row, leg, leg.sportsbook, leg.stake_percent ?? null));
  const all = sides(row);
  if (!all.length) return [side(row, row, row.sportsbook, null)];
  const sum = all.reduce((total, each) => total + each.implied_probability, 0); // after commission: every outcome pays alike
  return all.map((each) => side(row, each, each.books ?? each.sportsbook, each.stake_percent ?? (100 * each.implied_probability) / sum));
}

function item(kind, published) {
  const row = ownNames(kind, published);
  const made = {
    id: row.id, kind, row, value: row[KINDS[kind].value], legs: legsOf(row),
    game: row.event_name, market: row.market_type, eventId: row.event_id,
    told: clock(), seen: clock() - 1000 * (row.oldest_odds_age_seconds ?? row.odds_age_seconds ?? 0),
    start: Date.parse(row.event_start_time ?? "") || null, found: Date.parse(row.detected_at) || null,
  };
  made.text = [made.game, called("markets", made.market), row.player_name, row.league, ...made.legs.map((leg) => leg.selection)]
    .join(" ").replaceAll("−", "-").toLowerCase();
  return made;
}

// For how long nobody has seen a price of a row, as of the last answer; 0 if that is not long.
function unconfirmed({ row, told, seen }) {
  const age = (told - seen) / 1000;
  return age >= doubtful[row.is_live ? "live" : "before"] ? age : 0;
}
function doubt(node, it) {
  const age = it.gone ? 0 : unconfirmed(it);
  node.classList.toggle("doubtful", age > 0);
  node.title = age ? `A price of this row was not seen for ${span(age)}: check it at the book` : "";
}

// ---- columns ----

const chips = ({ id, row, gone, eventId }) => [
  gone && el("span", { class: "chip gone" }, "Gone"),
  row.is_live && (games.of(eventId) ? scoreChip(games.of(eventId)) : el("span", { class: "chip live" }, "In play")),
  placedIds.has(id) && el("span", { class: "chip good" }, "Placed"),
  marks.get(id)?.hidden && el("span", { class: "chip gone" }, "Hidden"),
  marks.get(id)?.note && el("span", { class: "chip note", title: marks.get(id).note }, marks.get(id).note),
  row.possibly_stale && el("span", { class: "chip", title: "One of the prices has not been confirmed" }, "May be old"),
  row.terms_differ && el("span", { class: "chip", title: row.terms.join("; ") }, "Terms differ"),
  ...(row.flags ?? []).map(flagChip),
];
const gameLine = (it, ...after) => el(
  "span", { class: "under game" },
  el("button", { type: "button", class: "plain", title: "Compare books", "data-compare": true }, it.game), ...after.map((text) => el("span", {}, text)),
);
const league = (it) => called("leagues", it.row.league);
function bookLink(it, book) {
  const href = `${BASE}/deeplink/${encodeURIComponent(it.id)}?book=${encodeURIComponent(book)}`;
  return el("a", { href, target: "_blank", rel: "noopener noreferrer" }, called("sportsbooks", book));
}
const bookLinks = (it, books) => books.flatMap((book, i) => [i ? ", " : null, bookLink(it, book)]);
// A bet may have another name in another market: a home win is home −0.5.
const elsewhere = ({ market }, it) => (market && market !== it.market ? el("small", { class: "dim" }, ` (${called("markets", market)})`) : "");
const legRows = (it) => it.legs.map((leg) => el(
  "span", { class: "leg" },
  el("span", {}, leg.selection, elsewhere(leg, it)), el("span", {}, ...bookLinks(it, leg.books)), el("b", {}, odds(leg.american, leg.decimal)),
  leg.stake !== null && el("small", { title: percent(leg.stake, 1) }, legStake(leg.stake)),
));

const VALUE = (name, tone) => ({
  id: "value", name, number: true, key: (it) => it.value,
  fill: (it) => [
    el("button", { type: "button", class: `plain value ${tone(it.value)}`, "data-open": true, title: "Show details: price history, all books, calculators, mark as placed", "aria-label": `${percent(it.value)}, open ${it.legs.map((leg) => leg.selection).join(" and ")}` }, percent(it.value)),
    ...doubts(it.row),
  ],
});
// How far a +EV figure may be off, where the service says it.
function doubts({ ev_low: low, ev_high: high, prob_positive: chance, ev_vs_sharp: sharp, reference }) {
  if (low === null || low === undefined) return [];
  const said = [`90 % interval: between ${percent(low, 1)} and ${percent(high, 1)}`, `${(100 * chance).toFixed(0)} % probability of a positive EV`];
  if (reference === "close" && sharp !== null && sharp !== undefined) said.push(`${percent(sharp)} against the first sharp book`);
  return [el("span", { class: "under range", title: said.join("; ") }, `${low.toFixed(1).replace("-", "−")} to ${percent(high, 1)}`)];
}
// Whose prices say what is fair. What all rows share is said above the list; so is how old prices are, but for those of grey rows.
const referenceOf = ({ reference, sharp_book: book }) => (reference === "close" ? "expected at the close" : `by ${called("sportsbooks", book)}`);
function fairCell({ row, seen }) {
  const said = referenceOf(row);
  const whose = row.reference === "close" ? `All other books, weighted by how well they predict the close; the first sharp book is ${called("sportsbooks", row.sharp_book)}` : `Prices of ${called("sportsbooks", row.sharp_book)}`;
  const title = `${whose}; margin removed (${spelled(row.devig_method)})`;
  return [el("span", { title }, odds(row.no_vig_odds, decimalOf(row.no_vig_odds))), said !== lists.shared && el("span", { class: "under", title }, said), ageOf(seen)];
}
const ageOf = (seen) => el("span", { class: "under age" }, aged(seen), " old");
// Independent books, whose own prices say that the bet is worth more than it costs; books of one odds provider are one.
const agreeing = ({ agreeing_books: agree, independent_books: others }) => (others ? `${agree} of ${others} independent books agree` : "");
function agreement(row) {
  const title = [agreeing(row) && `${agreeing(row)} that the bet has a positive EV, by their own prices`, `${row.book_count} books quote the market`].filter(Boolean).join("; ");
  return row.book_count ? el("span", { class: "under", title }, row.independent_books ? `${row.agreeing_books} of ${row.independent_books} agree` : `${row.book_count} books`) : null;
}
const stands = ({ still_there: chance }) => (chance === null || chance === undefined ? "–" : percent(100 * chance, 0));
const GAME = { id: "game", name: "Event", key: (it) => it.game, fill: (it) => [el("span", { class: "bet" }, called("markets", it.market)), ...chips(it), gameLine(it, league(it))] };
const LEGS = (name) => ({ id: "legs", name, fill: legRows });
const STARTS = { id: "start", name: "Starts", label: "Starts", key: (it) => it.start, fill: (it) => kickOff(it.row.event_start_time) };
const FOUND = { id: "found", name: "Found", label: "Found", key: (it) => it.found, fill: (it) => [past(it.row.detected_at), ageOf(it.seen)], latest: true };
const good = (value) => (value > 0 ? "positive" : value < 0 ? "negative" : "");

KINDS.ev.columns = [
  VALUE("EV", good),
  { id: "game", name: "Bet", key: (it) => it.game, fill: (it) => [el("span", { class: "bet" }, it.legs[0].selection), ...chips(it), gameLine(it, called("markets", it.market), league(it))] },
  { id: "book", name: "Book", key: (it) => called("sportsbooks", it.row.sportsbook), fill: (it) => [
    ...bookLinks(it, [it.row.sportsbook]),
    it.brands && el("span", { class: "under line", title: "The same bet, at books of the same operator" }, ...it.brands.flatMap((brand, i) => [i ? ", " : "", bookLink(brand, brand.row.sportsbook), ` ${odds(brand.row.odds_american, brand.row.odds_decimal)}`])),
  ] },
  { id: "odds", name: "Odds", number: true, key: (it) => it.row.odds_decimal, fill: (it) => [el("b", {}, odds(it.row.odds_american, it.row.odds_decimal))] },
  { id: "fair", name: "Fair", label: "Fair", number: true, key: (it) => decimalOf(it.row.no_vig_odds), fill: (it) => fairCell(it) },
  { id: "kelly", name: "Stake", label: "Stake", number: true, key: (it) => kellyOf(it.row)?.share ?? null, fill: (it) => stakeCell(it) },
  { id: "trust", name: "Confidence", label: "Confidence", number: true, key: (it) => it.row.confidence_score, fill: (it) => [it.row.confidence_score.toFixed(0), agreement(it.row)] },
  { id: "stands", name: "Still there in 10 min", label: "Still there in 10 min", number: true, key: (it) => it.row.still_there ?? null, fill: (it) => [stands(it.row)] },
  STARTS, { ...FOUND, fill: (it) => [past(it.row.detected_at)] },
];
KINDS.low_hold.columns = [VALUE("Hold", (value) => (value <= 0 ? "positive" : "")), GAME, LEGS("Sides: bet, books, odds, stake"), STARTS, FOUND];
KINDS.middles.columns = [
  VALUE("EV", good), GAME, LEGS("Sides: bet, book, odds, stake"),
  { id: "size", name: "Window", label: "Window", number: true, key: (it) => it.row.middle_size, fill: (it) => [el("span", {}, String(it.row.middle_size)), it.row.middle_numbers.length ? el("span", { class: "under" }, `wins on ${numbers(it.row.middle_numbers)}`) : null] },
  { id: "chance", name: "Chance", label: "Chance", number: true, key: (it) => it.row.middle_probability, fill: (it) => [percent(100 * it.row.middle_probability, 1)] },
  STARTS, FOUND,
];
for (const kind of Object.values(KINDS)) kind.columns ??= [VALUE(spelled(kind.measure), good), GAME, LEGS(kind.single ? "Bet, book, odds" : "Legs: bet, book, odds, stake"), STARTS, FOUND];
const numbers = (list) => (list.length > 2 ? `${list[0]} to ${list[list.length - 1]}` : list.join(", ")).replaceAll("-", "−");

// In which orders a list can be shown: by each column, in its usual direction or the other one.
const WAYS = { start: ["latest first", "soonest first"], found: ["newest first", "oldest first"] };
const wayOf = ({ id, number }, down) => (WAYS[id] ?? (number ? ["highest first", "lowest first"] : ["Z to A", "A to Z"]))[down ? 0 : 1];
const usuallyDown = (kind, { id, number, latest }) => Boolean((number && !(id === "value" && !KINDS[kind].rises)) || latest);
function orderChoices(kind) {
  const sorted = KINDS[kind].columns.filter((each) => each.key);
  const made = (other) => sorted.map((each) => [each, usuallyDown(kind, each) !== other]).map(([each, down]) => [`${each.id} ${down}`, `${each.name}, ${wayOf(each, down)}`]);
  return [["", made(false)], ["The other way round", made(true)]];
}

// ---- what is held ----

const fresh = () => Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, new Map()]));

class Lists {
  // `held` follows the stream; `shown` is the same, unless it is paused or a new beginning is on its way.
  held = fresh();
  shown = this.held;
  settled = false;
  paused = false;
  orders = Object.fromEntries(Object.entries(KINDS).map(([kind, { rises }]) => [kind, { column: "value", down: rises }]));
  least = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, settings[kind]]));
  pages = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  filter = { sport: "", league: "", market: "", when: "", find: "", words: [], low: "", high: "", hours: "", stands: "", terms: "", stake: "", include: "", sharp: "", method: "", books: null, group: true, hidden: false };
  folded = 0; // rows of brands that stand in another's
  shared = ""; // the reference of the fair prices, if all rows have the same
  example = ""; // id of the row that is explained
  kind = "ev";
  still = false; // somebody points at a row: none moves away below the hand
  #kept = []; // what is on the page
  #nodes = new Map();
  #head = "";

  clear() {
    this.held = this.shown = fresh();
    this.settled = false;
  }

  // Nothing came yet.
  get waiting() {
    return !this.settled && Object.values(this.shown).every((map) => !map.size);
  }

  pause(paused) {
    this.paused = paused;
    if (paused) this.shown = Object.fromEntries(Object.entries(this.shown).map(([kind, map]) => [kind, new Map(map)]));
    else if (this.settled) this.shown = this.held;
  }

  // Take an event of the stream; says whether something may look different now.
  take(name, payload) {
    if (name === "connected") {
      this.held = fresh();
      this.settled = false;
      return false;
    }
    if (name === "snapshot:complete") {
      this.settled = true;
      if (!this.paused) this.shown = this.held;
      return !this.paused;
    }
    const [event, what] = name.split(":");
    const kind = Object.keys(KINDS).find((each) => KINDS[each].event === event);
    if (!kind) return false;
    const map = this.held[kind];
    if (what === "detected") for (const row of payload) map.set(row.id, item(kind, row));
    else if (what === "expired") for (const id of payload.expired) map.delete(id);
    return this.settled && !this.paused;
  }

  // How old prices are: rows are sent again when figures move, not when a price is seen again.
  async refresh(ask) {
    const kind = this.kind;
    const found = may(kind) ? await ask(`/opportunities/${KINDS[kind].path}${viewOf(kind)}&limit=200`) : null;
    for (const row of found?.data ?? []) {
      const it = this.held[kind].get(row.id);
      if (!it) continue;
      const { seen, told } = item(kind, row);
      Object.assign(it, { seen, told });
      const node = this.#nodes.get(row.id);
      node?.querySelector(".seen")?.setAttribute("data-seen", seen);
      if (node) doubt(node, it);
    }
  }

  fits(it) {
    return fits(it, this.filter, this.least[it.kind]);
  }

  // All rows of a kind at once.
  replace(kind, rows) {
    this.held[kind].clear();
    for (const row of rows) this.held[kind].set(row.id, item(kind, row));
  }

  count(kind) {
    let n = 0;
    for (const it of this.shown[kind].values()) n += this.fits(it);
    return n;
  }

  chosen() {
    const { column, down } = this.orders[this.kind];
    const key = KINDS[this.kind].columns.find((each) => each.id === column).key;
    const found = [...this.shown[this.kind].values()].filter((it) => this.fits(it)).map((it) => [key(it), it]);
    const way = down ? -1 : 1;
    found.sort(([a, one], [b, other]) => {
      if (a === null || b === null) return (a === null) - (b === null) || (one.id < other.id ? -1 : 1);
      const by = typeof a === "string" ? collator.compare(a, b) : a - b;
      return by * way || (one.id < other.id ? -1 : 1);
    });
    const open = this.#folded(found.map(([, it]) => it));
    markSameBets(open);
    return this.#grouped(open);
  }

  // Books of one odds provider quote one price under several names: the first stands for all of them.
  #folded(found) {
    const first = new Map();
    this.folded = 0;
    return found.filter((it) => {
      it.brands = null;
      const provider = it.kind === "ev" && providers[it.row.sportsbook];
      if (!provider) return true;
      const { line, player_name, selection_type, selection } = it.row;
      const key = [it.eventId, marketKey({ market_type: it.market, market_segment: it.row.market_segment }), line, player_name, selection_type ?? selection, provider].join("|");
      const leader = first.get(key);
      if (!leader) return first.set(key, it);
      (leader.brands ??= []).push(it);
      this.folded += 1;
      return false;
    });
  }

  // Rows of one event and market stand together, at the place of the first of them.
  #grouped(found) {
    const groups = new Map();
    for (const it of found) {
      const key = this.filter.group ? `${it.eventId}|${it.market}|${it.row.player_name ?? ""}` : it.id;
      const group = groups.get(key) ?? groups.set(key, []).get(key);
      it.follows = group.length > 0;
      group.push(it);
    }
    return [...groups.values()].flat();
  }

  // ---- on the page ----

  render() {
    const { columns, none, tab } = KINDS[this.kind];
    this.#heading(columns, tab);
    const found = this.chosen();
    const references = new Set(this.kind === "ev" ? found.map(({ row }) => referenceOf(row)) : []);
    this.shared = references.size === 1 ? [...references][0] : "";
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    const page = (this.pages[this.kind] = Math.min(this.pages[this.kind], last));
    const rows = this.still && this.#kept.length ? this.#held() : found.slice(page * PAGE, (page + 1) * PAGE);
    this.#kept = rows;
    const body = $("list").tBodies[0];
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const row = focused?.closest("tr");
    const nodes = new Map();
    let at = body.firstElementChild;
    for (const it of rows) {
      const node = this.#row(it, columns);
      nodes.set(it.id, node);
      while (node === row && at && at !== node) { // what is moved loses focus: the others make way
        const next = at.nextElementSibling;
        body.append(at);
        at = next;
      }
      if (node === at) at = at.nextElementSibling;
      else body.insertBefore(node, at);
    }
    while (at) {
      const next = at.nextElementSibling;
      at.remove();
      at = next;
    }
    this.#nodes = nodes;
    if (!rows.length) body.append(el("tr", { class: "empty", role: "row" }, el("td", { colspan: columns.length, role: "cell" }, this.#empty(none))));
    if (focused && !focused.isConnected) $("panel-list").focus({ preventScroll: true });
    write($("what"), KINDS[this.kind].what);
    write($("summary"), may(this.kind) ? this.#summary(found) : "");
    welcome(found);
    $("pages").hidden = last === 0;
    write($("where"), found.length ? `${page * PAGE + 1} to ${page * PAGE + rows.length} of ${found.length}` : "");
    $("before").disabled = page === 0;
    $("after").disabled = page === last;
  }

  // How many rows there are, and what is the same in all of them.
  #summary(found) {
    const [all, count] = [this.shown[this.kind].size, found.length + this.folded];
    const ages = found.filter((it) => !unconfirmed(it)).map(({ seen }) => (clock() - seen) / 1000);
    const grey = found.length - ages.length;
    return [
      `${stalled() ? "Not live: these may be out of date. " : ""}${count === all ? all : `${count} of ${all}`} open${this.paused ? ", paused" : this.still ? ", order held while you point at the list" : ""}`,
      this.shared && `fair prices ${this.shared}`,
      ages.length > 0 && `prices up to ${span(Math.max(0, ages.reduce((a, b) => Math.max(a, b), 0)))} old${grey ? `, older in ${counted(grey, "grey row")}` : ""}`,
      this.folded > 0 && `${this.folded} at a second book of an operator`,
    ].filter(Boolean).join(" · ");
  }

  // Those on the page, as they are now or as they were last.
  #held() {
    const now = this.shown[this.kind];
    return this.#kept.map((it) => now.get(it.id) ?? (it.gone ? it : { ...it, gone: true }));
  }

  // Somebody asked for something else than what is on the page.
  loosen() {
    this.#kept = [];
  }

  #empty(none) {
    if (!may(this.kind)) return `${KINDS[this.kind].tab} requires the ${needs[this.kind]} tier or higher; this key has the ${rights.tier} tier.`;
    if (this.waiting) return "Loading…";
    return this.shown[this.kind].size ? "No matches for these filters." : none;
  }

  #heading(columns, tab) {
    const { column, down } = this.orders[this.kind];
    const mark = `${this.kind} ${column} ${down}`;
    if (mark === this.#head) return;
    const other = !this.#head.startsWith(`${this.kind} `);
    this.#head = mark;
    const table = $("list");
    write(table.caption, `${tab}: open opportunities; use the column buttons to sort`);
    if (other) {
      this.#nodes = new Map();
      table.tBodies[0].replaceChildren();
      table.tHead.replaceChildren(el("tr", { role: "row" }, ...columns.map((each) => el(
        "th", { scope: "col", role: "columnheader", class: `${each.number ? "number " : ""}c-${each.id}`, "data-column": each.id },
        each.key ? el("button", { type: "button", title: aboutColumn(each) }, each.name) : each.name,
      ))));
    }
    choose($("order"), orderChoices(this.kind), `${column} ${down}`);
    for (const th of table.tHead.rows[0].cells) {
      if (th.dataset.column === column) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
  }

  #row(it, columns) {
    let node = this.#nodes.get(it.id);
    const before = node?.item;
    const score = it.row.is_live ? games.of(it.eventId) : null;
    const mark = `${settings.format} ${known} ${it.follows} ${it.same ? `${it.same.others} ${it.same.share}` : ""} ${(it.brands ?? []).map((each) => each.id + each.row.odds_decimal)} ${stakeMark} ${this.shared} ${it.id === this.example}`;
    if (before === it && node.mark === mark && node.score === score) return node;
    node ??= el("tr", { role: "row", "data-id": it.id });
    node.classList.toggle("gone", Boolean(it.gone));
    const cells = columns.map((each) => el(
      "td", { role: "cell", class: `${each.number ? "number " : ""}c-${each.id}`, "data-label": each.label },
      ...each.fill(it),
    ));
    if (before) cells.forEach((cell, i) => morph(node.cells[i], cell));
    else node.append(...cells);
    if (before && before.value !== it.value) flash(node, it.value > before.value === KINDS[it.kind].rises);
    node.classList.toggle("follows", Boolean(it.follows));
    node.classList.toggle("example", it.id === this.example);
    doubt(node, it);
    Object.assign(node, { item: it, mark, score });
    return node;
  }

  // By a column: in its usual direction first, then the other way round.
  sort(column) {
    const order = this.orders[this.kind];
    this.order(column, order.column === column ? !order.down : usuallyDown(this.kind, KINDS[this.kind].columns.find((each) => each.id === column)));
  }

  order(column, down) {
    this.orders[this.kind] = { column, down };
    this.pages[this.kind] = 0;
    this.loosen();
  }
}
