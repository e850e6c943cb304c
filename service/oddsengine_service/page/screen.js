// The odds screen: a league's games in rows, books in columns, one market at a time.

const SCREEN_S = 2; // between two requests

class Screen {
  league = "";
  market = "";
  games = [];
  settled = false;
  paused = false;
  #coming = [];
  #version = 0;
  #drawn = ""; // what the page was drawn from
  #rows = new Map(); // by key
  #head = "";

  // Clear the table: the league, the market or the books have changed.
  forget() {
    this.games = [];
    this.settled = false;
    this.#version += 1;
    this.#wipe();
  }

  #wipe() {
    this.#rows.clear();
    this.#head = "";
    $("screen").tHead.replaceChildren();
    $("screen").tBodies[0].replaceChildren();
  }

  take(name, payload) {
    if (name === "connected") this.#coming = [];
    else if (name === "games") this.#coming.push(...payload);
    else if (!this.paused) {
      this.games = this.#coming;
      this.#version += 1;
      this.settled = true;
    }
    return name === "snapshot:complete" && !this.paused;
  }

  // Games, or markets of players, in which the words that were searched for occur.
  #matching() {
    const { words } = lists.filter;
    const has = (text) => words.every((word) => text.toLowerCase().includes(word));
    return this.games.map((game) => (has(game.event_name) ? game : { ...game, markets: game.markets.filter((market) => has(`${game.event_name} ${market.player_name ?? ""}`)) }))
      .filter((game) => game.markets.length);
  }

  // Leagues with games, soonest first.
  leagues() {
    return [...new Set(eventsOf().map((each) => each.league))].map((id) => [id, called("leagues", id)]);
  }

  markets() {
    const sport = sportOf.get(this.league);
    const key = (id) => marketKey({ market_type: id, market_segment: "full_game" });
    return [...names.markets].filter(([id]) => !sport || (sportsOf.get(id) ?? []).includes(sport))
      .sort((a, b) => rank(key(a[0])) - rank(key(b[0])) || isProp(a[0]) - isProp(b[0]) || collator.compare(a[1], b[1]));
  }

  // Keep the chosen league and market if they have games, else take the first that do.
  settle() {
    const leagues = this.leagues();
    if (!leagues.some(([id]) => id === this.league)) this.league = leagues.find(([id]) => id === lists.filter.league)?.[0] ?? leagues[0]?.[0] ?? "";
    const markets = this.markets();
    if (!markets.some(([id]) => id === this.market)) this.market = markets[0]?.[0] ?? "";
  }

  path() {
    return `/odds/screen?league=${encodeURIComponent(this.league)}&market=${encodeURIComponent(this.market)}${ofBooks()}`;
  }

  // ---- on the page ----

  render() {
    // Other lists also cause redraws: skip those without a change; scores and lateness show within two seconds.
    const from = `${this.#version} ${known} ${settings.format} ${stalled()} ${this.paused} ${events.length} ${lists.filter.find} ${Math.floor(Date.now() / 2000)}`;
    if (from === this.#drawn) return;
    this.#drawn = from;
    choose($("screen-league"), [["", this.leagues()]], this.league);
    choose($("market"), [["", this.markets()]], this.market);
    const shown = this.#matching();
    const books = [...new Set(this.games.flatMap((game) => game.markets.flatMap((market) => market.outcomes.flatMap((each) => Object.keys(each.prices)))))]
      .sort((a, b) => collator.compare(called("sportsbooks", a), called("sportsbooks", b)));
    const mark = `${books.join()} ${known} ${this.market}`;
    if (mark !== this.#head) {
      this.#wipe();
      this.#head = mark;
      const heads = ["Game", "Best", "Fair", ...books.map((book) => called("sportsbooks", book))];
      $("screen").tHead.replaceChildren(...(books.length ? [el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))] : []));
    }
    const body = $("screen").tBodies[0];
    const made = [...this.#lines(shown, books)];
    let at = body.firstElementChild;
    for (const { key, kind, event, cells } of made) {
      let row = this.#rows.get(key);
      if (!row) {
        row = el("tr", { class: kind }, ...cells.map((cell, i) => el(i ? "td" : "th", i ? {} : { scope: kind === "outcome" ? "row" : "rowgroup" })));
        row.marks = [];
        if (event) row.cells[0].dataset.event = event;
        this.#rows.set(key, row);
      }
      if (row === at) at = at.nextElementSibling;
      else body.insertBefore(row, at);
      cells.forEach((cell, i) => this.#fill(row, i, cell));
    }
    while (at) {
      const next = at.nextElementSibling;
      at.remove();
      at = next;
    }
    const keys = new Set(made.map(({ key }) => key));
    for (const key of this.#rows.keys()) if (!keys.has(key)) this.#rows.delete(key);
    const count = shown.length;
    write($("screen-summary"), count ? `${stalled() ? "Not live: these prices may be out of date. " : ""}${called("leagues", this.league)} · ${called("markets", this.market)} · ${counted(count, "game")}, ${counted(books.length, "book")}${this.paused ? ", paused" : ""}`
      : this.games.length ? "No matches for this search." : !events.length ? "No games yet." : this.settled ? "No prices for this market." : "Loading prices…");
    $("screen-legend").hidden = !count;
  }

  // What stands in each row: `mark` says whether a cell differs from before, `fill` makes it.
  * #lines(shown, books) {
    for (const game of shown) {
      const alone = game.markets.length === 1;
      const state = games.of(game.event_id);
      // Teams that are outcomes need not be named twice.
      const named = alone && game.markets[0].outcomes.some((each) => each.selection_type === "home");
      const when = game.is_live ? [state ? scoreChip(state) : "in play"] : kickOff(game.event_start_time);
      const about = {
        mark: `${game.event_start_time} ${game.is_live} ${state?.home_score} ${state?.away_score} ${state?.game_clock} ${state?.stale} ${named}`,
        fill: () => [el("button", { type: "button", class: "plain", "data-event": game.event_id, "aria-label": `All markets of ${game.event_name}` }, ...(named ? when : [game.event_name])), !named && el("span", { class: "under start" }, ...when)],
      };
      const holds = (market) => [
        { mark: market.hold_percentage, fill: () => (market.hold_percentage === null ? [] : [el("span", { class: "dim" }, `${percent(market.hold_percentage, 1)} hold`)]) }, { mark: "", fill: () => [] },
        ...books.map((book) => ({ mark: market.holds[book], fill: () => (market.holds[book] === undefined ? [] : [el("span", { class: "unseen" }, "hold "), el("span", { class: "dim" }, percent(market.holds[book], 1))]) })),
      ];
      const empty = () => [...books, 1, 2].map(() => ({ mark: "", fill: () => [] }));
      yield { key: game.event_id, kind: "game", cells: [about, ...(alone ? holds(game.markets[0]) : empty())] };
      for (const market of game.markets) {
        const subject = market.player_name ?? (market.team_side ? game[`${market.team_side}_team`] : "");
        const key = [game.event_id, market.market_type, subject, market.outcomes.length].join("|");
        if (!alone) yield { key, kind: "market", cells: [{ mark: subject, fill: () => [subject || called("markets", market.market_type)] }, ...holds(market)] };
        for (const outcome of market.outcomes) yield { key: `${key}|${outcome.selection_type}|${outcome.selection_type ? "" : outcome.selection}`, kind: "outcome", event: game.event_id, cells: this.#outcome(game, outcome, books) };
      }
    }
  }

  #outcome(game, outcome, books) {
    const { selection_type: type, line } = outcome;
    const team = type === "home" || type === "away" ? game[`${type}_team`] : ["over", "under", "draw", "yes", "no"].includes(type) ? spelled(type) : outcome.selection;
    const shown = line === null ? "" : team === spelled(type) && type !== "draw" ? ` ${line}` : ` ${signed(line)}`;
    const best = outcome.prices[outcome.best[0]];
    const fair = outcome.fair_probability;
    return [
      { mark: `${team}${shown}`, fill: () => [team, shown && el("b", {}, shown)] },
      { mark: `${best?.odds_decimal} ${outcome.best}`, fill: () => (best ? [el("b", {}, odds(best.odds_american, best.odds_decimal)), el("span", { class: "under" }, called("sportsbooks", outcome.best[0]) + (outcome.best.length > 1 ? ` and ${outcome.best.length - 1} more` : ""))] : []) },
      { mark: fair, fill: () => (fair === null ? [] : [odds(outcome.fair_odds_american, 1 / fair)]) },
      ...books.map((book) => this.#price(outcome.prices[book], outcome, book)),
    ];
  }

  #price(price, outcome, book) {
    if (!price) return { mark: "none", fill: () => [el("span", { class: "dim", "aria-label": "no price" }, "·")] };
    const top = !stalled() && outcome.best.includes(book);
    const ev = price.ev_percentage;
    const out = price.rejection || !price.is_active;
    return {
      mark: `${price.odds_decimal} ${price.line} ${top} ${out} ${ev === null ? "" : ev.toFixed(1)}`, odds: price.odds_decimal,
      class: `${top ? "best" : ""} ${out ? "refused" : ""} ${ev > 0.05 ? (ev >= 2 ? "ev-high" : "ev") : ""}`.trim(),
      fill: () => [
        price.line !== outcome.line && el("small", {}, `${price.line === null ? "" : outcome.selection_type === "over" || outcome.selection_type === "under" ? price.line : signed(price.line)} `),
        el(out ? "s" : "span", { title: price.rejection }, odds(price.odds_american, price.odds_decimal)),
        top && el("span", { class: "unseen" }, " best price"),
        ev > 0.05 && el("span", { class: "under" }, `EV ${percent(ev, 1)}`),
      ],
    };
  }

  #fill(row, i, cell) {
    const mark = `${cell.mark} ${settings.format}`;
    if (row.marks[i] === mark) return;
    row.marks[i] = mark;
    const node = row.cells[i];
    const before = Number(node.dataset.odds);
    if (cell.class !== undefined) node.className = cell.class;
    node.replaceChildren(...cell.fill().filter((child) => child !== null && child !== false && child !== ""));
    if (cell.odds) node.dataset.odds = cell.odds;
    else delete node.dataset.odds;
    if (before && cell.odds && before !== cell.odds) flash(node, cell.odds > before);
  }
}
