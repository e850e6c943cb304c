// A row opened: how its prices moved, every book's price, why it is fair, calculators, and the bet that is placed.

const SVG_NS = SVG;
const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const ODDS_FIELDS = ["odds", "against"]; // of calculators, whose service takes decimal odds
// Of a field of one price, or of several between semicolons or commas; what is no price is left to the service.
function decimalsIn(input) {
  if (input.value === input.defaultValue) return input.dataset.decimal;
  const several = "list" in input.dataset;
  const texts = several ? input.value.split(input.value.includes(";") ? ";" : ",") : [input.value];
  return texts.map((text) => priceOf(text) || text.trim()).join(",");
}
// What the levels of an exchange's price after the first take, and how much an arbitrage has over all levels.
const deeper = (levels) => `then ${levels.slice(1, 4).map((each) => `${cash(each.stake)} at ${oddsText(each.odds_decimal)}`).join(", ")}`;
const largest = ({ largest_stakes: stakes, largest_profit: profit }) => (profit > 0
  ? el("span", { class: "under", title: "Over all levels of the prices, as far as their limits are known" }, `up to ${cash(stakes.reduce((sum, each) => sum + each, 0))} staked, for a profit of ${cash(profit)}`) : "");
const between = (low, high) => [...new Set([low, high].map(Math.round))].join(" to ");
const couldBeHad = (like) => (like
  ? el("span", { class: "under", title: `Of ${like.shown.toLocaleString()} that this node showed before games${like.sportsbooks ? " at these books" : ""}, by the prices that followed, at least and at most` }, `${between(like.whole_least, like.whole_most)} % of similar ones could be taken in full at $${like.stake}`) : "");
let marks = new Map(); // by id of an opportunity: hidden, note
let placedIds = new Set(); // opportunities with a bet of this key

// Dates below a chart, each under its point: those of both ends, and of points between that have room.
function datesBelow(points, y) {
  const [first, last] = [points[0], points.at(-1)];
  const days = (last.at - first.at) / 86_400_000;
  const options = days < 0.8 ? { hour: "numeric", minute: "2-digit" } : days < 300 ? { month: "short", day: "numeric" } : { month: "short", year: "numeric" };
  const named = points.map((each) => ({ ...each, text: each.text ?? local(each.at, options) }));
  const shown = [named[0]];
  for (const each of named.slice(1, -1)) if (each.x - shown.at(-1).x > 90 && last.x - each.x > 90 && each.text !== shown.at(-1).text) shown.push(each);
  if (named.length > 1 && last.x - first.x > 90 && named.at(-1).text !== shown.at(-1).text) shown.push(named.at(-1));
  return shown.flatMap((each) => [
    svg("line", { class: "tick", x1: each.x, x2: each.x, y1: y - 15, y2: y - 11 }),
    svg("text", { x: each.x, y, "text-anchor": each === named.at(-1) ? "end" : each === named[0] ? "start" : "middle" }, each.text),
  ]);
}

// A price's history as the service tells it.
const pointsOf = (opening, points) => [{ at: Date.parse(opening.at), odds: opening.odds_decimal }, ...points.at.map((at, i) => ({ at: Date.parse(at), odds: points.odds_decimal[i] }))];
// Steps of prices over time: the other books thin, the legs' books and the fair price strong.
function chart(lines, fairLine, sharpLine, wide) {
  const [width, height, left, bottom] = [Math.max(300, wide), 240, 56, 22];
  const all = [...lines, fairLine, sharpLine].filter((line) => line.points.length);
  const values = all.flatMap((line) => line.points.map((point) => point.odds));
  if (!values.length) return el("p", { class: "dim" }, "No price history yet.");
  const now = clock();
  const first = Math.min(...all.map((line) => line.points[0].at), now - 60_000);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = Math.max((high - low) * 0.08, 0.01);
  const x = (at) => left + (Math.min(1, (at - first) / (now - first))) * (width - left - 8);
  const y = (value) => 8 + ((high + pad - value) / (high - low + 2 * pad)) * (height - bottom - 16);
  const path = ({ points }) => points.map(({ at, odds: value }, i) => `${i ? `H${x(at).toFixed(1)}V` : `M${x(at).toFixed(1)} `}${y(value).toFixed(1)}`).join("") + `H${x(now)}`;
  const ticks = [0, 1, 2, 3].map((i) => low + ((high - low) * i) / 3).filter((value, i, list) => !i || value - list[i - 1] > 0.004);
  const words = `Prices of ${lines.length} books since ${local(first)}, from ${low.toFixed(2)} to ${high.toFixed(2)} decimal${fairLine.points.length ? `; fair now ${fairLine.points.at(-1).odds.toFixed(2)}` : ""}`;
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": words },
    ...ticks.flatMap((value) => [
      svg("line", { class: "grid", x1: left, x2: width - 8, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, oddsText(value)),
    ]),
    ...datesBelow([0, 1, 2, 3, 4].map((i) => first + ((now - first) * i) / 4).map((at, i) => ({ at, x: x(at), ...(i === 4 && { text: "now" }) })), height - 6),
    ...[...lines].sort((a, b) => a.leg - b.leg).filter((line) => line.points.length).map((line) => svg(
      "path", { class: line.leg ? "leg-line" : "book-line", d: path(line) }, svg("title", {}, called("sportsbooks", line.book)),
    )),
    ...(sharpLine.points.length ? [svg("path", { class: "sharp-line", d: path(sharpLine) }, svg("title", {}, sharpLine.name))] : []),
    ...(fairLine.points.length ? [svg("path", { class: "fair-line", d: path(fairLine) }, svg("title", {}, "Fair"))] : []),
  );
}

class Details {
  it = null;
  total = 0; // for all legs together
  #said = null; // what explain said
  #like; // how many of those like it could be had
  #rows = new Map(); // prices by id
  #moves = [];
  #outcome = 0;
  #opener = null;
  #ended = ""; // why it is not open any more

  // The row of a link, if it is open.
  async find(kind, id) {
    const answer = await call("GET", pathOf(kind, id));
    if (answer.data) return this.open(item(kind, answer.data));
    write($("alert-now"), `The opportunity of this link: ${reasonOf(answer.error)}`);
    $("alert-now").hidden = false;
    speak("alert", $("alert-now").textContent, 0);
    writeAddress();
  }

  async open(it) {
    this.it = it;
    this.#opener = document.activeElement;
    this.#said = null;
    this.#like = undefined;
    this.#rows = new Map();
    this.#moves = [];
    this.#outcome = 0;
    this.#ended = "";
    this.total = settings.total;
    this.gone = false;
    write($("details-said"), "");
    $("details").showModal();
    this.render();
    writeAddress();
    await this.refresh();
    if (this.it?.id === it.id) this.#calculator();
  }

  close() {
    this.it = null;
    if ($("details").open) $("details").close();
    writeAddress();
    if (this.#opener?.isConnected) this.#opener.focus();
    else $("panel-list").focus({ preventScroll: true });
  }

  async refresh() {
    const it = this.it;
    if (!it) return;
    const markets = new Set([it.market, ...it.legs.map((leg) => leg.market ?? it.market)]);
    const [event, market] = [encodeURIComponent(it.eventId), encodeURIComponent([...markets].join(","))];
    const [again, like, said, prices, moves] = await Promise.all([
      call("GET", pathOf(it.kind, it.id)),
      trackRecord.sharesOf(it),
      ask(`/opportunities/explain/${encodeURIComponent(it.id)}?event_id=${event}${ofBooks()}${staked()}${reference()}`),
      ask(`/odds/comparison?event=${event}&market=${market}`),
      ask(`/odds/history?event=${event}&market=${market}&limit=200`),
    ]);
    if (this.it?.id !== it.id) return;
    if (again.data) this.it = item(it.kind, again.data);
    this.#like = like;
    this.#ended = again.status === 404 ? reasonOf(again.error) : "";
    this.#said = said?.data ?? this.#said;
    this.#rows = new Map(Object.values(prices?.data ?? {}).flat().map((row) => [row.id, row]));
    for (const row of this.#rows.values()) if (row.max_bet) limits.set(row.id, row.max_bet);
    this.#moves = moves?.data ?? this.#moves;
    this.gone = !again.data && (!said || again.status === 404);
    this.render();
  }

  get legs() {
    return (this.#said?.prices ?? []).filter((each) => each.role === "leg");
  }

  // The fair probability of a price's outcome; both sides of a spread stand under the line of one.
  #fairOf(price) {
    const same = (this.#said?.fair ?? []).filter((each) => each.outcome === price?.outcome);
    return (same.find((each) => each.line === price.line) ?? (same.length === 1 ? same[0] : null))?.fair_probability ?? null;
  }

  // What is placed: each leg with its row of prices, stake and fair probability.
  tickets() {
    const { it } = this;
    const plain = it.legs.map((leg, i) => ({ leg, i }));
    return plain.map(({ leg, i }) => {
      const mine = (each) => Object.values(leg.ids).includes(each.odds_id);
      const said = this.legs.find(mine) ?? this.#said?.prices.find(mine);
      const book = said?.sportsbook ?? leg.books[0];
      const row = this.#rows.get(leg.ids[book]);
      const stake = leg.stake === null ? stakeOf(it.row)?.amount ?? 0 : legAmount(leg.stake, this.total, row);
      return { leg, i, row, book, fair: said?.fair_probability ?? this.#fairOf(said) ?? it.row.fair_probability ?? null, stake };
    });
  }

  render() {
    const { it } = this;
    if (!it) return;
    write($("details-title"), it.kind === "ev" ? it.legs[0].selection : `${KINDS[it.kind].tab}: ${called("markets", it.market)}`);
    $("details-game").replaceChildren(`${it.game} · ${called("markets", it.market)} · ${called("leagues", it.row.league)} · `, ...starts(it.row.event_start_time), this.gone ? el("span", { class: "chip" }, "No longer open") : "");
    $("details-value").replaceChildren(el("b", { class: `value ${it.value > 0 === KINDS[it.kind].rises ? "positive" : ""}` }, percent(it.value)), ` ${KINDS[it.kind].measure}`, it.kind === "ev" && typeof it.row.still_there === "number" ? el("span", { class: "under", title: ABOUT.stands }, `${stands(it.row)} still there in 10 min`) : "", largest(it.row), couldBeHad(this.#like));
    write($("details-ended"), this.#ended);
    this.#tickets();
    this.#kelly();
    this.#chart();
    this.#prices();
    this.#why();
    this.#terms();
    const mark = marks.get(it.id);
    if (document.activeElement !== $("details-note")) $("details-note").value = mark?.note ?? "";
    write($("details-hide"), mark?.hidden ? "Show again" : "Hide");
  }

  #tickets() {
    const body = $("details-legs");
    if (body.contains(document.activeElement)) return; // somebody types
    body.replaceChildren(...this.tickets().map(({ leg, i, row, book, stake }) => el(
      "div", { class: "ticket" },
      el("span", {}, el("b", {}, leg.selection), el("span", { class: "under" }, bookLink(this.it, book), ` ${[row?.max_bet && `maximum bet ${cash(row.max_bet)}`, rulesOf(row)].filter(Boolean).join(", ")}`)),
      el("label", {}, "Odds", el("input", { "data-ticket": i, name: "odds", value: typed(leg.decimal), "data-decimal": leg.decimal, inputmode: "text", size: 6 })),
      el("label", {}, "Stake", el("input", { "data-ticket": i, name: "stake", value: stake || "", inputmode: "decimal", size: 7 })),
    )));
  }

  #kelly() {
    const { it } = this;
    if ($("details-kelly").contains(document.activeElement)) return; // somebody types
    const asks = !settings.bankroll && !settings.asked;
    $("details-kelly").replaceChildren(...(it.kind === "ev" ? [asks ? bankrollForm() : "", ...kellyTable(it.row)] : it.legs.every((leg) => leg.stake !== null) ? this.#shares() : []));
  }

  // The bankroll that was asked for; 0: not now, and not again.
  takeBankroll(bankroll) {
    if (!(bankroll >= 0)) return write($("details-said"), "Enter the bankroll as a number.");
    document.activeElement.blur();
    keepSettings({ bankroll, asked: true });
    write($("details-said"), "");
    this.render();
    $("details-legs").querySelector("[name=stake]").focus();
  }

  // Each leg's share of a total stake, and the payout.
  #shares() {
    const { it } = this;
    const sure = it.kind === "arbitrage" || it.kind === "low_hold";
    const back = it.kind === "arbitrage" ? 100 + it.value : it.kind === "low_hold" ? 10_000 / (100 + it.value) : 0;
    return [
      el("p", {}, `${it.legs.map((leg) => `${leg.stake.toFixed(1)} %`).join(" + ")} of the stake${sure ? `: whichever bet wins returns ${back.toFixed(2)} for every 100 staked, after commission` : ""}.`),
      el("label", { class: "together total" }, "Total stake", el("input", { id: "details-total", inputmode: "decimal", size: 8, value: this.total || "" })),
    ];
  }

  // Split a total among the legs.
  share(total) {
    this.total = total > 0 ? total : 0;
    this.#tickets();
  }

  #named(price) {
    return wording(price, null, this.it.row);
  }

  #outcomes() {
    return [...new Map(this.legs.map((leg) => [`${leg.outcome} ${leg.line}`, leg])).values()];
  }

  #chart() {
    const outcomes = this.#outcomes();
    const chosen = outcomes[Math.min(this.#outcome, outcomes.length - 1)];
    $("details-outcome").parentElement.hidden = outcomes.length < 2;
    choose($("details-outcome"), [["", outcomes.map((leg, i) => [String(i), this.#named(leg)])]], String(this.#outcome));
    if (!chosen) return $("details-chart").replaceChildren(el("p", { class: "dim" }, this.#said === null ? "Asking…" : "No price history."));
    const mine = (this.#said?.prices ?? []).filter((each) => each.outcome === chosen.outcome && each.line === chosen.line);
    const ids = new Map(mine.map((each) => [each.odds_id, each]));
    const lines = this.#moves.filter((each) => ids.has(each.id)).map(({ id, sportsbook, opening, points }) => ({
      book: sportsbook, leg: ids.get(id).role === "leg",
      points: pointsOf(opening, points),
    }));
    const now = this.#fairOf(chosen);
    const { reference, fair_line: line = [], fair_line_book: book } = this.#said ?? {};
    const past = line.map(({ at, probability }) => ({ at: Date.parse(at), odds: 1 / probability }));
    const own = past.length && reference === book; // the EV is computed from the prices of that book
    const begin = Math.min(...lines.map((each) => each.points[0].at), clock() - 60_000);
    const fair = { points: own ? past : now ? [{ at: begin, odds: 1 / now }] : [] };
    const sharp = { points: own ? [] : past, name: `${called("sportsbooks", book)} without its margin` };
    const key = (name, words) => [el("span", { class: name }), ` ${words}  `];
    const legend = el(
      "p", { class: "dim legend" }, ...key("leg-key", called("sportsbooks", chosen.sportsbook)), ...key("book-key", "other books"),
      ...key("fair-key", own ? `fair, by ${called("sportsbooks", book)}` : "fair now"), ...(sharp.points.length ? key("sharp-key", sharp.name) : []),
    );
    $("details-chart").replaceChildren(chart(lines, fair, sharp, $("details-chart").clientWidth), legend);
  }

  #prices() {
    const outcomes = this.#outcomes();
    const chosen = outcomes[Math.min(this.#outcome, outcomes.length - 1)];
    const mine = (this.#said?.prices ?? []).filter((each) => chosen && each.outcome === chosen.outcome && each.line === chosen.line);
    write($("details-agree"), this.it.kind === "ev" && agreeing(this.it.row) ? `${agreeing(this.it.row)}: the bet has a positive EV by their own prices.` : "");
    $("details-prices").tBodies[0].replaceChildren(...mine.map((each) => {
      const row = this.#rows.get(each.odds_id);
      const why = row ? refused(row) : "";
      return el(
        "tr", {}, el("th", { scope: "row" }, called("sportsbooks", each.sportsbook), elsewhere({ market: each.market_type }, this.it), each.role === "reference" ? el("span", { class: "chip" }, "Reference") : each.role === "leg" ? el("span", { class: "chip good" }, "This bet") : ""),
        el("td", {}, el(why ? "s" : "b", {}, odds(each.odds_american, each.odds_decimal))),
        el("td", {}, each.own_fair_probability ? oddsText(1 / each.own_fair_probability) : ""),
        el("td", {}, each.ev_percent === undefined ? "" : percent(each.ev_percent)),
        el("td", {}, row ? aged(seenAt(row)) : each.age_seconds !== undefined ? span(each.age_seconds) : ""),
        el("td", {}, row?.max_bet ? cash(row.max_bet) : "", row?.levels ? el("span", { class: "under" }, deeper(row.levels)) : "", rulesOf(row) ? el("span", { class: "under" }, rulesOf(row)) : ""),
        el("td", { class: "why" }, why || (each.role === "set aside" ? "rejected" : "")),
      );
    }));
  }

  #why() {
    const said = this.#said;
    $("details-why").replaceChildren(...(said ? [
      el("p", {}, `Fair price from ${said.reference === "close" ? `all ${this.it.kind === "ev" ? "other " : ""}books, as expected at the close` : called("sportsbooks", said.reference)}, margin removed by ${said.devig_method}: `, said.fair.map((each) => `${this.#named(said.prices.find((price) => price.outcome === each.outcome && price.line === each.line) ?? { ...each, selection: spelled(each.outcome), line: null })} ${percent(100 * each.fair_probability, 1)}`).join(", "), "."),
      el("p", { class: "dim" }, said.formula),
      said.rejected.length ? el("details", {}, el("summary", {}, `${counted(said.rejected.length, "price")} not used`), el("ul", {}, ...said.rejected.map((each) => el("li", {}, `${called("sportsbooks", each.sportsbook)} ${this.#named(each)} ${odds(each.odds_american, each.odds_decimal)}: ${each.why}`)))) : "",
    ] : []));
  }

  // What the bets settle on where the game does not end in the usual way, side by side.
  #terms() {
    const cases = this.#said?.terms ?? [];
    $("details-terms").closest("section").hidden = !cases.length;
    $("details-terms").tBodies[0].replaceChildren(...cases.map(({ case: name, differ, result_percent: result, legs }) => el(
      "tr", {}, el("th", { scope: "row" }, spelled(name)),
      el("td", {}, ...legs.map(({ sportsbook, terms, source, date }) => el("span", { class: "leg-terms", title: source ? `${source}, ${date}` : "" }, el("b", {}, called("sportsbooks", sportsbook)), ` ${terms ?? "has unknown terms"}`))),
      el("td", {}, !differ ? "" : result === null ? "unknown" : percent(result)),
    )));
  }

  // ---- calculators ----

  #calculator() {
    const usual = { ev: "hedge", arbitrage: "arbitrage", low_hold: "arbitrage", middles: "middle" }[this.it.kind] ?? "hedge";
    $("calculator").value = usual;
    this.calculator();
  }

  // The best price of the other side, for hedges.
  #against() {
    const [leg] = this.legs;
    const other = (this.#said?.prices ?? []).find((each) => leg && each.outcome !== leg.outcome && each.role !== "set aside" && each.line === (leg.line === undefined ? undefined : each.line));
    return other?.odds_decimal ?? 2;
  }

  calculator() {
    const { it } = this;
    const [first] = this.tickets();
    const decimals = it.legs.map((leg) => leg.decimal);
    const [stake, p] = [first.stake || 100, first.fair ?? 0.5];
    const fields = {
      arbitrage: [["odds", "Odds of all legs", decimals], ["total", "Amount", settings.total || 100], ["step", "Round to", settings.step || 0.01]],
      hedge: [["stake", "Stake placed", stake], ["odds", "Its odds", decimals[0]], ["against", "Odds of the other side", this.#against()]],
      middle: [["total", "Amount", settings.total || 100], ["odds", "Odds", decimals[0]], ["against", "Odds of the other line", decimals[1] ?? 2], ["probability", "Probability of the middle", it.row.middle_probability ?? ""]],
      boost: [["odds", "Odds before the boost", decimals[0]], ["boost", "Boost, %", 50], ["probability", "Fair probability", p]],
      "free-bet": [["stake", "Free bet", stake], ["odds", "Its odds", decimals[0]], ["against", "Odds of the other side", this.#against()]],
      parlay: [["odds", "Odds of all legs", [decimals[0], 2]], ["probabilities", "Fair probabilities", `${p},0.5`]],
    }[$("calculator").value];
    $("calculator-fields").replaceChildren(...fields.map(([name, label, value]) => {
      const priced = ODDS_FIELDS.includes(name);
      const shown = priced ? { value: [value].flat().map(typed).join("; "), "data-decimal": [value].flat().join(","), "data-list": Array.isArray(value), inputmode: "text" } : { value, inputmode: "decimal" };
      return el("label", {}, label, el("input", { name, ...shown, size: 9 }));
    }));
    this.calculate();
  }

  async calculate() {
    const query = new URLSearchParams([...$("calculator-fields").querySelectorAll("input")].map((input) => [input.name, ODDS_FIELDS.includes(input.name) ? decimalsIn(input) : input.value.replaceAll(" ", "")]));
    const answer = await call("GET", `/calculators/${$("calculator").value}?${query}`);
    const said = (name, value) => (value === null ? "–" : /percent|conversion|break_even|kelly|probability/.test(name) ? percent(/percent/.test(name) ? value : 100 * value, 1) : name === "odds" ? typed(value) : cash(value).replace("-", "−"));
    $("calculator-out").replaceChildren(...(answer.error ? [el("p", { class: "error" }, answer.error)] : Object.entries(answer.data).map(([name, value]) => el(
      "div", {}, el("dt", {}, spelled(name)), el("dd", {}, [value].flat().map((each) => said(name, each)).join(" · ")),
    ))));
  }

  outcome(at) {
    this.#outcome = at;
    this.render();
  }

  // ---- what is done with it ----

  async place() {
    const { it } = this;
    const input = (i, name) => $("details-legs").querySelector(`[data-ticket="${i}"][name=${name}]`);
    const bets = this.tickets().map(({ leg, i, row, book, fair: p }) => {
      const facts = row ?? { ...it.row, selection: leg.plain, selection_type: leg.type, line: leg.line, market_type: it.market, event_id: it.eventId, event_start_time: it.row.event_start_time };
      const copied = ["event_id", "sport", "league", "home_team", "away_team", "event_start_time", "market_type", "market_segment", "selection", "selection_type", "line", "player_name", "stat_category", "team_side", "is_live"];
      return {
        ...Object.fromEntries(copied.filter((name) => facts[name] !== null && facts[name] !== undefined).map((name) => [name, facts[name]])),
        sportsbook: book, odds_decimal: decimalIn(input(i, "odds")), stake: numeral(input(i, "stake").value), kind: it.kind, group: it.id,
        ...(leg.ids[book] && { odds_id: leg.ids[book] }), ...(p && { fair_probability: p }), note: $("details-note").value,
      };
    });
    if (bets.some((bet) => !(bet.odds_decimal > 1))) return write($("details-said"), "Enter the odds of each leg.");
    if (bets.some((bet) => !(bet.stake > 0))) return write($("details-said"), "Enter the stake of each leg.");
    for (const bet of bets) {
      const answer = await call("POST", "/bets", bet);
      if (answer.error) return write($("details-said"), answer.error);
    }
    placedIds.add(it.id);
    const when = onClock(it.row.event_start_time);
    const next = it.row.is_live ? "Placed in play, it has no closing price."
      : `When the game starts${when && ` (${when})`}, the closing price is recorded, and gives the CLV.`;
    write($("details-said"), `${bets.length === 1 ? "Bet added" : `${bets.length} bets added`}; see Bets. ${next} The result follows after the game, if the node has its score.`);
    lists.loosen();
    tracker.read();
  }

  async mark(changes) {
    const { it } = this;
    const before = marks.get(it.id);
    const one = { hidden: false, note: "", ...before, ...changes };
    const bare = !one.hidden && !one.note;
    marks.set(it.id, one); // a second change may come before this one is stored
    const answer = bare ? await call("DELETE", `/marks/${encodeURIComponent(it.id)}`) : await call("PUT", `/marks/${encodeURIComponent(it.id)}`, { hidden: one.hidden, note: one.note });
    if (answer.error && !bare) {
      if (marks.get(it.id) === one) marks.set(it.id, before ?? { hidden: false, note: "" });
      return write($("details-said"), answer.error);
    }
    stakeMark += 1; // rows are drawn again
    write($("details-said"), one.hidden ? "Hidden." : one.note ? "Noted." : "No longer hidden.");
    this.render();
    changed();
  }
}

// Where one opportunity is looked up again, over the books and by the reference of the lists.
function pathOf(kind, id) {
  return `/opportunities/${kind}/${encodeURIComponent(id)}${viewOf(kind).replace("&", "?")}`;
}
// What a refusal says, without the id.
const reasonOf = (text) => text.replace(/^Opportunity .* has ended: /s, "No longer open: ").replace(/^No open opportunity .*: (?=unknown)/s, "Not open: ");

async function readMarks() {
  const mine = key;
  const found = await ask("/marks");
  if (key !== mine) return;
  marks = new Map((found?.data ?? []).map((each) => [each.id, each]));
  stakeMark += 1;
}
