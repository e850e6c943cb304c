// Movers: the bets that shortened in the last minutes, and the markets where books disagree, with the chart of all books.

class Movers {
  minutes = 10;
  sort = "move";
  live = "false"; // in play, everything moves
  rows = null; // null: not loaded yet
  #opened = null;

  async read() {
    const mine = key;
    const places = ["sport", "league"].map((name) => lists.filter[name] && `&${name}=${encodeURIComponent(lists.filter[name])}`).join("");
    const answer = await call("GET", `/odds/movers?minutes=${this.minutes}&sort=${this.sort}&limit=50${this.live && `&live=${this.live}`}${places}${ofBooks()}`);
    if (key !== mine) return;
    this.rows = (answer.data ?? []).filter((row) => this.sort !== "move" || row.move_points >= 0.1); // a smaller move rounds to 0
    const since = Date.parse(answer.meta?.since ?? "");
    const known = (clock() - since) / 60_000;
    const short = this.sort === "move" && known < this.minutes - 0.5 ? `Prices are recorded since ${local(since, { hour: "numeric", minute: "2-digit" })}: the last ${counted(Math.floor(known), "minute")} of ${this.minutes}.` : "";
    const none = this.rows.length || answer.error ? "" : this.sort === "move" ? "No price shortened in this time." : "No market has prices of three books.";
    write($("movers-said"), answer.error ?? [short, none].filter(Boolean).join(" "));
    this.render();
  }

  render() {
    if (this.rows === null) return;
    $("movers-table").hidden = !this.rows.length;
    const body = $("movers-table").tBodies[0];
    this.rows.forEach((row, i) => {
      const made = this.#row(row, i);
      if (body.rows[i]) morph(body.rows[i], made);
      else body.append(made);
    });
    while (body.rows.length > this.rows.length) body.lastElementChild.remove();
  }

  #row({ odds: best, ...row }, i) {
    const bet = wording(best, best.player_name, best);
    const points = (value) => (value === null ? "–" : `${Math.abs(value).toFixed(1)} pt`);
    return el(
      "tr", {},
      el("td", { class: "number" }, el("button", { type: "button", class: `plain value ${row.move_points > 0 ? "positive" : ""}`, "data-move": i, "aria-label": `Chart of ${bet}` }, row.move_points > 0 ? `+${points(row.move_points)}` : points(row.move_points))),
      el("td", { class: "whole" }, el("span", { class: "bet" }, bet), best.is_live && el("span", { class: "chip live" }, "In play"), el("span", { class: "under" }, [best.away_team && `${best.away_team} @ ${best.home_team}`, called("markets", best.market_type), called("leagues", best.league)].filter(Boolean).join(" · "))),
      el("td", { class: "number nowrap", "data-label": "Average price" }, oddsText(1 / row.probability_before), " → ", el("b", {}, oddsText(1 / row.probability_now))),
      el("td", { class: "number", "data-label": "Books" }, `${row.shorter} of ${row.books} shortened`, row.longer > 0 && el("span", { class: "under" }, `${row.longer} drifted`)),
      el("td", { class: "number", "data-label": "Spread between books" }, points(row.spread_points)),
      el("td", { class: "number", "data-label": "Best price left" }, el("b", {}, odds(best.odds_american, best.odds_decimal)), el("span", { class: "under" }, called("sportsbooks", best.sportsbook))),
      el("td", { class: `number ${row.ev_percentage > 0 ? "positive" : ""}`, "data-label": "EV" }, row.ev_percentage === null ? "–" : percent(row.ev_percentage)),
      el("td", { "data-label": "Starts" }, ...(best.is_live ? ["in play"] : kickOff(best.event_start_time))),
    );
  }

  // The price history of one outcome at all books.
  async open(i) {
    const { odds: best, fair_probability: fair, ev_percentage: ev } = this.rows[i];
    this.#opened = best.id;
    write($("moves-title"), wording(best, best.player_name, best));
    write($("moves-game"), [best.away_team && `${best.away_team} @ ${best.home_team}`, called("markets", best.market_type)].filter(Boolean).join(" · "));
    $("moves-chart").replaceChildren(el("p", { class: "dim" }, "Loading…"));
    $("moves").showModal();
    const query = `event=${encodeURIComponent(best.event_id)}&market=${encodeURIComponent(best.market_type)}`;
    const [prices, moves, screened] = await Promise.all([ask(`/odds/comparison?${query}`), ask(`/odds/history?${query}&limit=200`), ask(`/odds/screen?${query}${ofBooks()}`)]);
    if (this.#opened !== best.id) return;
    const same = Object.values(prices?.data ?? {}).flat().filter((each) => ["selection_type", "line", "player_name", "team_side", "market_segment"].every((name) => each[name] === best[name]));
    const ids = new Map(same.map((each) => [each.id, each]));
    const lines = (moves?.data ?? []).filter((each) => ids.has(each.id)).map(({ id, sportsbook, opening, points }) => ({ book: sportsbook, leg: id === best.id, points: pointsOf(opening, points) }));
    const begin = Math.min(...lines.map((each) => each.points[0].at), clock() - 60_000);
    const fairLine = { points: fair ? [{ at: begin, odds: 1 / fair }] : [] };
    $("moves-chart").replaceChildren(
      chart(lines, fairLine, { points: [] }, $("moves-chart").clientWidth),
      el("p", { class: "dim legend" }, el("span", { class: "leg-key" }), ` ${called("sportsbooks", best.sportsbook)}, best price  `, el("span", { class: "book-key" }), ` ${counted(Math.max(0, lines.length - 1), "other book")}  `, fair && el("span", { class: "fair-key" }), fair && ` fair now, ${oddsText(1 / fair)}`),
    );
    const screenedPrices = (screened?.data ?? []).flatMap((game) => game.markets).flatMap((market) => market.outcomes).flatMap((outcome) => Object.values(outcome.prices));
    this.#table(same, new Map([...screenedPrices.map((each) => [each.id, each.ev_percentage]), [best.id, ev]]));
  }

  // `values`: the EV of each price by its id, as far as it is known.
  #table(prices, values) {
    const sorted = prices.filter((each) => !refused(each)).sort((a, b) => net(b) - net(a));
    $("moves-prices").tBodies[0].replaceChildren(...sorted.map((each) => el(
      "tr", {}, el("th", { scope: "row" }, called("sportsbooks", each.sportsbook)), el("td", { class: "number" }, el("b", {}, odds(each.odds_american, each.odds_decimal))),
      el("td", { class: "number" }, typeof values.get(each.id) === "number" ? percent(values.get(each.id)) : "–"), el("td", {}, past(each.odds_changed_at)),
    )));
  }
}
