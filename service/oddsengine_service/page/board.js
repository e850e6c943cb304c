// One event: books as columns, selections as rows, how each price moved.

const MOST_POINTS = 60; // of one price
const HELD_MS = 30_000; // a suspended market keeps its place

// What a price pays once its commission or fee is off: its own, or the book's.
function net(price, decimal = price.odds_decimal) {
  const [ofBook, feeOfBook, liveFeeOfBook] = fees[price.sportsbook] ?? [0, 0, 0];
  const [commission, fee] = [price.commission ?? ofBook, price.contract_fee ?? (price.is_live ? liveFeeOfBook : feeOfBook)];
  const share = 1 / (1 + (decimal - 1) * (1 - commission));
  return 1 / (share + fee * share * (1 - share));
}
const seenAt = (price) => Math.max(Date.parse(price.last_seen_at) || 0, Date.parse(price.odds_changed_at) || 0);
// Why a price cannot be bet, in words; empty if it can.
function refused(price) {
  if (price.rejection) return price.rejection.reason;
  if (price.is_active === false) return "suspended by the book";
  const age = (clock() - seenAt(price)) / 1000 - (rights.delay ?? 0);
  return age > stale[price.is_live ? "live" : "before"] ? "not seen for too long" : "";
}

class Board {
  event = "";
  market = "";
  alternates = false;
  prices = new Map();
  shown = this.prices;
  moves = new Map(); // by id of a price; null where it was away
  settled = false;
  paused = false;
  books = null;
  #seeded = new Set();
  #seen = new Set(); // books that had a price: their columns stay
  #lately = new Map(); // rows, by key, and when they were last priced
  #forgetful = false; // the service keeps no history
  #cells = new Map();
  #rows = new Map();
  #head = "";

  choose(event) {
    this.event = event;
    this.prices = this.shown = new Map();
    this.moves = new Map();
    this.#seeded.clear();
    this.settled = false;
    this.forget();
  }

  // Another event, another market, other books: nothing keeps its place.
  forget() {
    this.#seen.clear();
    this.#lately.clear();
    this.wipe();
  }

  wipe() {
    this.#cells.clear();
    this.#rows.clear();
    this.#head = "";
    $("board").tBodies[0].replaceChildren();
    $("board").tHead.replaceChildren();
  }

  pause(paused) {
    this.paused = paused;
    if (paused) this.shown = new Map(this.shown);
    else if (this.settled) this.shown = this.prices;
  }

  take(name, payload) {
    const now = Date.now();
    if (name === "connected") {
      this.prices = new Map();
      this.settled = false;
    } else if (name === "snapshot") {
      for (const row of payload.odds) {
        this.prices.set(row.id, row);
        this.#moved(row.id, Date.parse(row.odds_changed_at) || now, row.odds_decimal);
      }
    } else if (name === "odds:update") {
      for (const delta of payload.odds) {
        const row = this.prices.get(delta.id);
        if (!row) continue; // until the next snapshot
        this.prices.set(delta.id, { ...row, ...delta });
        this.#moved(delta.id, Date.parse(delta.odds_changed_at) || now, delta.odds_decimal);
      }
    } else if (name === "odds:removed") {
      for (const id of payload.ids) if (this.prices.delete(id)) this.#moved(id, now, null);
    } else if (name === "snapshot:complete") {
      this.settled = true;
    }
    if (this.settled && !this.paused) this.shown = this.prices;
    return this.settled && !this.paused;
  }

  #moved(id, at, odds) {
    const points = this.moves.get(id) ?? [];
    this.moves.set(id, points);
    const last = points[points.length - 1];
    if (last && last.odds === odds) return;
    points.push({ at: last ? Math.max(at, last.at) : at, odds });
    if (points.length > MOST_POINTS) points.shift();
  }

  // When prices were last seen: nothing moves then, and no stream says it.
  async refresh(ask) {
    const event = this.event;
    const found = event && this.settled ? await ask(`/odds/comparison?event=${encodeURIComponent(event)}`) : null;
    if (!found || event !== this.event) return;
    for (const row of Object.values(found.data).flat()) {
      const held = this.prices.get(row.id);
      if (held && row.last_seen_at > (held.last_seen_at ?? "")) this.prices.set(row.id, { ...held, last_seen_at: row.last_seen_at });
    }
    draw();
  }

  // What the service remembers of a market's prices, put before what was seen here.
  async seed(ask) {
    const key = `${this.event} ${this.market}`;
    if (!this.settled || !this.market || this.#seeded.has(key) || this.#forgetful) return;
    this.#seeded.add(key);
    const types = [...new Set(this.#ofMarket().map((row) => row.market_type))].join(",");
    for (let offset = 0; offset !== null; ) {
      const page = await ask(`/odds/history?event=${encodeURIComponent(this.event)}&market=${encodeURIComponent(types)}&limit=200&offset=${offset}`);
      if (!page) this.#forgetful = true;
      if (!page || !this.#seeded.has(key)) return;
      for (const price of page.data) {
        const { at, odds_decimal: values, is_active: active } = price.points;
        const points = at.map((text, i) => ({ at: Date.parse(text), odds: active[i] ? values[i] : null }));
        if (price.opening && !price.omitted) points.unshift({ at: Date.parse(price.opening.at), odds: price.opening.odds_decimal });
        const seen = this.moves.get(price.id) ?? [];
        const first = seen[0]?.at ?? Infinity;
        const joined = [...points.filter((point) => point.at < first), ...seen];
        this.moves.set(price.id, joined.filter((point, i) => !i || point.odds !== joined[i - 1].odds).slice(-MOST_POINTS));
      }
      offset = page.pagination.next_offset;
    }
    this.#cells.forEach((cell) => (cell.dataset.mark = ""));
    this.#rows.forEach((row) => (row.mark = ""));
    draw();
  }

  #ofMarket() {
    const fits = this.market === ALL_MAIN ? (key) => MAIN.includes(key) : (key) => key === this.market;
    return [...this.shown.values()].filter((row) => fits(marketKey(row)));
  }

  markets() {
    const found = new Map();
    for (const row of this.shown.values()) {
      const key = marketKey(row);
      const types = found.get(key) ?? found.set(key, new Map()).get(key);
      types.set(row.market_type, (types.get(row.market_type) ?? 0) + 1);
    }
    const named = [...found].map(([key, types]) => {
      const [most] = [...types].sort((a, b) => b[1] - a[1])[0];
      return [key, called("markets", most)];
    });
    named.sort((a, b) => rank(a[0]) - rank(b[0]) || collator.compare(a[1], b[1]));
    return named.some(([key]) => MAIN.includes(key)) ? [[ALL_MAIN, "Main markets"], ...named] : named;
  }

  // ---- on the page ----

  render() {
    const markets = this.markets();
    if (!markets.some(([key]) => key === this.market)) {
      const meant = markets.find(([key]) => key === this.wanted) ?? markets[0];
      if (meant) this.market = meant[0];
    }
    choose($("market"), [["", markets.map(([key, label]) => [key, label])]], this.market);
    const rows = this.#ofMarket().filter((row) => !this.books || this.books.has(row.sportsbook));
    const lines = this.#lines(rows);
    for (const line of lines) for (const book of line.prices.keys()) this.#seen.add(book);
    const books = [...this.#seen].sort((a, b) => collator.compare(called("sportsbooks", a), called("sportsbooks", b)));
    this.#heading(books);
    this.#body(lines, books);
    const first = rows[0];
    const at = first?.event_start_time;
    const game = games.of(this.event);
    $("board-score").hidden = !game;
    morph($("board-score").firstElementChild, game ? scoreLine(game) : el("span"));
    $("board-summary").replaceChildren(...(first
      ? [el("b", {}, stalled() ? "Not live: these prices may be out of date. " : ""), `${called("leagues", first.league)} · `, first.is_live ? "in play" : "starts ", ...(first.is_live ? [] : starts(at)),
        ` · ${lines.reduce((n, line) => n + line.prices.size, 0)} prices of ${books.length} books${this.paused ? ", paused" : ""}`]
      : [this.event ? (this.paused ? "Paused: press Pause again to load this event." : this.settled ? "No prices." : "Loading prices…") : events.length ? "Choose an event." : "No events yet."]));
    write($("board-note"), first ? "★ marks the best price that can be bet, after the book's commission. Below each price is how long ago it was seen; one that is crossed out cannot be bet, for the reason given. Lines show how prices moved: up is better for the bettor." : "");
  }

  #lines(rows) {
    const found = new Map();
    const drawn = new Set(rows.filter((row) => row.selection_type === "draw").flatMap((row) => [marketKey(row), `${marketKey(row)} ${row.sportsbook}`]));
    for (const row of rows) {
      const at = place(row, drawn);
      const line = found.get(at.key) ?? found.set(at.key, { ...at, prices: new Map() }).get(at.key);
      const other = line.prices.get(row.sportsbook);
      if (!other || (refused(other) && !refused(row)) || (!refused(other) === !refused(row) && other.odds_decimal < row.odds_decimal)) line.prices.set(row.sportsbook, row);
    }
    let lines = [...found.values()];
    if (!this.alternates) {
      const sizes = new Map();
      for (const line of lines) sizes.set(line.group, (sizes.get(line.group) ?? 0) + line.prices.size);
      const main = new Map(); // by section
      for (const line of lines) {
        const held = main.get(line.section);
        if (held === undefined || sizes.get(line.group) > sizes.get(held)) main.set(line.section, line.group);
      }
      lines = lines.filter((line) => line.anchor === null || main.get(line.section) === line.group);
    }
    return this.#suspended(lines).sort((a, b) => a.rank - b.rank || collator.compare(a.section, b.section) || (a.anchor ?? 0) - (b.anchor ?? 0) || a.order - b.order || collator.compare(a.key, b.key));
  }

  // With the rows of markets that nobody prices just now.
  #suspended(lines) {
    const now = Date.now();
    const sections = new Set(lines.map((line) => line.section));
    for (const [key, { line, at }] of this.#lately) {
      if (now - at > HELD_MS || sections.has(line.section)) this.#lately.delete(key);
      else lines.push({ ...line, prices: new Map() });
    }
    for (const line of lines) if (line.prices.size) this.#lately.set(line.key, { line, at: now });
    return lines;
  }

  #heading(books) {
    const mark = `${books.join()} ${known}`;
    if (mark === this.#head) return;
    this.wipe();
    this.#head = mark;
    const table = $("board");
    const heads = ["Selection", "Best", "Movement", ...books.map((book) => called("sportsbooks", book))];
    table.tHead.replaceChildren(el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head))));
  }

  #body(lines, books) {
    const body = $("board").tBodies[0];
    write($("board").caption, "Prices of a market by book");
    let at = body.firstElementChild;
    let group = null;
    for (const line of lines) {
      let row = this.#rows.get(line.key);
      if (!row) {
        row = el("tr", {}, el("th", { scope: "row" }, line.label), el("td"), el("td"), ...books.map(() => el("td")));
        row.mark = "";
        this.#rows.set(line.key, row);
        books.forEach((book, i) => this.#cells.set(`${line.key} ${book}`, row.cells[i + 3]));
      }
      if (row === at) at = at.nextElementSibling;
      else body.insertBefore(row, at);
      row.classList.toggle("group", group !== null && line.group !== group);
      group = line.group;
      this.#fill(row, line, books);
    }
    while (at) {
      const next = at.nextElementSibling;
      for (const [key, row] of this.#rows) {
        if (row !== at) continue;
        this.#rows.delete(key);
        for (const book of books) this.#cells.delete(`${key} ${book}`);
      }
      at.remove();
      at = next;
    }
  }

  #fill(row, line, books) {
    const worth = new Map();
    for (const [book, price] of line.prices) if (books.includes(book) && !refused(price)) worth.set(book, net(price));
    const most = Math.max(...worth.values());
    const top = stalled() ? [] : [...worth.keys()].filter((book) => worth.get(book) > most - 1e-9).sort((a, b) => books.indexOf(a) - books.indexOf(b));
    let moved = "";
    for (const book of books) {
      const price = line.prices.get(book);
      const cell = this.#cells.get(`${line.key} ${book}`);
      const points = price ? (this.moves.get(price.id) ?? []).filter((point) => point.odds !== null) : [];
      const mark = price ? `${price.odds_decimal} ${price.odds_american} ${top.includes(book)} ${refused(price)} ${points.length} ${settings.format}` : "none";
      moved += mark;
      const age = cell.querySelector(".seen");
      if (price && age) age.dataset.seen = seenAt(price);
      if (cell.dataset.mark === mark) continue;
      const before = Number(cell.dataset.odds);
      cell.dataset.mark = mark;
      cell.dataset.odds = price?.odds_decimal ?? "";
      cell.className = top.includes(book) ? "best" : price && refused(price) ? "refused" : "";
      if (!price) cell.replaceChildren(el("span", { class: "dim", "aria-label": "no price" }, "·"));
      else {
        const why = refused(price);
        cell.replaceChildren(el(why ? "s" : "span", {}, odds(price.odds_american, price.odds_decimal)));
        if (top.includes(book)) cell.append(el("span", { class: "unseen" }, " best price"));
        cell.append(aged(seenAt(price)));
        if (why) cell.append(el("span", { class: "why", ...(price.rejection && { title: `guard: ${price.rejection.guard}` }) }, why));
        else if (points.length > 1) cell.append(sparkline(points, 46, 12));
        if (before && before !== price.odds_decimal) flash(cell, price.odds_decimal > before);
      }
    }
    moved += `${stalled()} ${known}`;
    if (row.mark === moved) return;
    row.mark = moved;
    const one = line.prices.get(top[0]);
    row.cells[1].replaceChildren(...(one
      ? [
        el("b", {}, odds(one.odds_american, one.odds_decimal)),
        el("span", { class: "under" }, called("sportsbooks", top[0]) + (top.length > 1 ? ` and ${top.length - 1} more` : "")),
        most < one.odds_decimal - 1e-9 ? el("span", { class: "under" }, `${most.toFixed(2)} after commission`) : "",
      ]
      : [el("span", { class: "dim" }, worth.size ? "not confirmed" : "no offer")]));
    if (!worth.size) return row.cells[2].replaceChildren();
    const path = this.#bestPath(line);
    const text = path.length > 1 ? `best price: ${path.length - 1} ${path.length > 2 ? "moves" : "move"}, from ${path[0].odds.toFixed(2)} to ${path[path.length - 1].odds.toFixed(2)} decimal` : "";
    row.cells[2].replaceChildren(path.length > 1 ? sparkline(path, 92, 26, text) : el("span", { class: "dim" }, "none yet"));
  }

  // The best price at each moment.
  #bestPath(line) {
    const paths = [...line.prices.values()].filter((price) => !refused(price))
      .map((price) => (this.moves.get(price.id) ?? []).map(({ at, odds }) => ({ at, odds: odds && net(price, odds) }))).filter((points) => points.length);
    const times = [...new Set(paths.flatMap((points) => points.map((point) => point.at)))].sort((a, b) => a - b);
    const places = paths.map(() => 0);
    // Until half of the books are heard of, the best price is the best of a few.
    const begin = paths.map((points) => points[0].at).sort((a, b) => a - b)[Math.floor((paths.length - 1) / 2)];
    const out = [];
    for (const at of times) {
      let best = 0;
      paths.forEach((points, i) => {
        while (places[i] < points.length && points[places[i]].at <= at) places[i] += 1;
        if (places[i]) best = Math.max(best, points[places[i] - 1].odds ?? 0);
      });
      if (at >= begin && best && best !== out[out.length - 1]?.odds) out.push({ at, odds: best });
    }
    return out.slice(-MOST_POINTS);
  }
}
