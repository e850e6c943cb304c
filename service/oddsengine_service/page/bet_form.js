// Bets that are added by hand, edited, or imported from a file.

class BetForm {
  #bet = null; // the one that is edited

  open(bet = null) {
    this.#bet = bet;
    write($("bet-title"), bet ? "Edit bet" : "Add bet");
    choose($("bet-book"), [["", byName(names.sportsbooks)]], bet ? "" : $("bet-book").value || tracker.bets[0]?.sportsbook || "fanduel");
    if (bet && !names.sportsbooks.has(bet.sportsbook)) $("bet-book").append(el("option", { value: bet.sportsbook }, called("sportsbooks", bet.sportsbook)));
    choose($("bet-market"), [["", [["", "Not given"], ...byName(names.markets)]]], "");
    for (const node of document.querySelectorAll("#bet-form .only-new")) node.hidden = Boolean(bet);
    const values = bet
      ? { book: bet.sportsbook, selection: bet.selection, odds: typed(bet.odds_decimal), stake: bet.stake, placed: localInput(bet.placed_at), fair: bet.fair_probability ? typed(1 / bet.fair_probability) : "", note: bet.note, result: bet.result ?? "" }
      : { selection: "", odds: "", stake: "", placed: localInput(clock()), fair: "", note: "", result: "", game: "" };
    for (const [name, value] of Object.entries(values)) $(`bet-${name}`).value = value;
    for (const [name, decimal] of [["odds", bet?.odds_decimal], ["fair", bet?.fair_probability && 1 / bet.fair_probability]]) {
      $(`bet-${name}`).defaultValue = $(`bet-${name}`).value;
      $(`bet-${name}`).dataset.decimal = decimal || "";
    }
    write($("bet-said"), "");
    $("bet").showModal();
    $("bet-selection").focus();
  }

  async save() {
    const text = (name) => $(`bet-${name}`).value.trim();
    const [price, fair] = [decimalIn($("bet-odds")), text("fair") && decimalIn($("bet-fair"))];
    if (!text("selection")) return write($("bet-said"), "Enter the bet.");
    if (!(price > 1)) return write($("bet-said"), `Enter the odds, such as ${settings.format === "decimal" ? "2.10" : "+110 or −110 (or decimal odds below 20, such as 2.10)"}.`);
    if (!(numeral(text("stake")) > 0)) return write($("bet-said"), "Enter the stake.");
    if (fair !== "" && !(fair > 1)) return write($("bet-said"), "The fair odds are not valid odds.");
    const bet = {
      sportsbook: text("book"), selection: text("selection"), odds_decimal: price, stake: numeral(text("stake")), note: text("note"),
      placed_at: new Date(text("placed") || clock()).toISOString(), fair_probability: fair === "" ? null : 1 / fair,
    };
    const result = text("result") || null;
    const answer = this.#bet
      ? await call("PATCH", `/bets/${this.#bet.id}`, { ...bet, ...(result !== this.#bet.result && { result }) })
      : await call("POST", "/bets/import", { bets: [{ ...bet, result, ...teamsIn(text("game")), market_type: text("market") }] });
    if (answer.error) return write($("bet-said"), answer.error);
    if (answer.data.present) return write($("bet-said"), "This bet is already recorded.");
    $("bet").close();
    await tracker.read();
  }
}
// The teams of a game such as Miami Heat @ Boston Celtics; none if there are not two.
function teamsIn(game) {
  const [away, home] = game.split(/\s+(?:@|at|vs?\.?|-)\s+/i);
  return home ? { home_team: home.slice(0, 200), away_team: away.slice(0, 200) } : { home_team: "", away_team: "" };
}

// The value of a datetime-local field.
function localInput(at) {
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// ---- files ----

// Rows of a file of comma-, semicolon- or tab-separated values.
function csvRows(text) {
  const first = text.slice(0, text.search(/\r?\n|$/));
  const between = [",", ";", "\t"].sort((a, b) => first.split(b).length - first.split(a).length)[0];
  const rows = [];
  let [row, cell, quoted] = [[], "", false];
  for (let i = text.charCodeAt(0) === 0xfeff ? 1 : 0; i < text.length; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += c; i += 1; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === between) { row.push(cell); cell = ""; }
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i += 1;
      row.push(cell);
      rows.push(row);
      [row, cell] = [[], ""];
    } else cell += c;
  }
  if (cell || row.length) rows.push([...row, cell]);
  return rows.filter((each) => each.some((value) => value.trim()));
}

// Fields of a bet: label, whether required, and common column names.
const COLUMNS = {
  sportsbook: ["Book", true, /^(sports?book|book(maker|ie)?|site|operator)$/],
  selection: ["Bet", true, /^(selection|bet|pick|bet.?name|description|outcome|side|bet.?info)$/],
  odds: ["Odds", true, /^(odds|price|odds.?(american|decimal)|american.?odds|decimal.?odds)$/],
  stake: ["Stake", true, /^(stake|amount|wager(ed)?|risk|bet.?(amount|size)|size)$/],
  placed_at: ["Placed", false, /^(placed(.?at)?|date|time|time.?placed(.?iso)?|bet.?date|created(.?at)?|timestamp)$/],
  result: ["Result", false, /^(result|status|outcome.?status|settlement|w.?l)$/],
  closing: ["Closing odds", false, /^(closing.?(odds|line|price)|close)$/],
  event: ["Game", false, /^(event|game|match|fixture|event.?name)$/],
  market_type: ["Market", false, /^(market|market.?type|bet.?type|type)$/],
  note: ["Note", false, /^(note|notes|comment|tags?)$/],
};
const RESULT_WORDS = { won: /^(w|won|win|winner|1)$/, lost: /^(l|lost|loss|lose|loser|0)$/, push: /^(p|push(ed)?|tie|draw)$/, void: /^(v|void(ed)?|cancel+ed|refunded?)$/, half_won: /^half.?(won|win)$/, half_lost: /^half.?(lost|loss)$/ };

class BetFile {
  #head = [];
  #rows = [];
  #bets = [];

  async choose(file) {
    const rows = csvRows(await file.text());
    [this.#head, ...this.#rows] = rows.length ? rows : [[]];
    const known = this.#head.map((name) => name.trim().toLowerCase());
    $("file-columns").replaceChildren(...Object.entries(COLUMNS).map(([name, [label, required, usual]]) => {
      const at = known.findIndex((each) => usual.test(each));
      const select = el("select", { "data-column": name }, el("option", { value: -1 }, required ? "Choose" : "None"), ...this.#head.map((each, i) => el("option", { value: i }, each)));
      select.value = String(at);
      return el("label", { class: "field" }, el("span", {}, label + (required ? "" : " (optional)")), select);
    }));
    this.read();
  }

  // The bets of the file, by the chosen columns.
  read() {
    const column = (name) => Number($("file-columns").querySelector(`[data-column=${name}]`)?.value ?? -1);
    const at = Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, column(name)]));
    const missing = Object.entries(COLUMNS).filter(([name, [, required]]) => required && at[name] < 0).map(([, [label]]) => label);
    this.#bets = [];
    const wrong = [];
    if (this.#rows.length && !missing.length) {
      this.#rows.forEach((row, i) => {
        const value = (name) => (at[name] < 0 ? "" : (row[at[name]] ?? "").trim());
        const [bet, why] = this.#bet(value);
        if (why) wrong.push(`row ${i + 2}: ${why}`);
        else this.#bets.push(bet);
      });
    }
    write($("file-said"), !this.#rows.length ? "Choose a CSV file with a header row." : missing.length ? `Choose a column for: ${missing.join(", ")}.`
      : `${counted(this.#bets.length, "bet")} ready to import${wrong.length ? `; ${counted(wrong.length, "row")} skipped: ${wrong.slice(0, 3).join("; ")}${wrong.length > 3 ? " …" : ""}` : ""}.`);
    $("file-preview").tBodies[0].replaceChildren(...this.#bets.slice(0, 5).map((bet) => el("tr", {}, ...[
      bet.placed_at ? local(bet.placed_at) : "now", called("sportsbooks", bet.sportsbook), bet.selection, oddsText(bet.odds_decimal), cash(bet.stake), spelled(bet.result ?? "open"),
    ].map((text) => el("td", {}, text)))));
    $("file-preview").hidden = !this.#bets.length;
    $("file-import").disabled = !this.#bets.length;
  }

  #bet(value) {
    const money = (text) => numeral(text.replace(/[^\d.,−-]/g, ""));
    const price = (text) => { const n = numeral(text.replace("+", "")); return Math.abs(n) >= 100 ? decimalOf(n) : n; };
    const [odds, stake, closing] = [price(value("odds")), money(value("stake")), value("closing") && price(value("closing"))];
    const placed = value("placed_at") && this.#time(value("placed_at"));
    const said = value("result").toLowerCase();
    const result = Object.keys(RESULT_WORDS).find((name) => RESULT_WORDS[name].test(said)) ?? null;
    if (!value("sportsbook") || !value("selection")) return [null, "no book or bet"];
    if (!(odds > 1)) return [null, value("odds") ? `invalid odds ${value("odds")}` : "no odds"];
    if (!(stake > 0)) return [null, value("stake") ? `invalid stake ${value("stake")}` : "no stake"];
    if (placed !== "" && Number.isNaN(placed)) return [null, `invalid date ${value("placed_at")}`];
    return [{
      sportsbook: value("sportsbook").slice(0, 200), selection: value("selection").slice(0, 200), odds_decimal: odds, stake, result, note: value("note").slice(0, 1000),
      market_type: value("market_type").slice(0, 200), ...teamsIn(value("event")),
      ...(placed !== "" && { placed_at: new Date(placed).toISOString() }), ...(closing > 1 && { closing_odds: closing }),
    }, ""];
  }

  // A date with the year first, or in the chosen order of day and month.
  #time(text) {
    const parts = /^(\d{1,2})[./-](\d{1,2})[./-](\d{2,4})(.*)$/.exec(text);
    if (!parts) return Date.parse(text);
    const [, a, b, year, rest] = parts;
    const [month, day] = $("file-order").value === "day" ? [b, a] : [a, b];
    return Date.parse(`${year.length === 2 ? `20${year}` : year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}${rest.trim() ? `T${rest.trim().replace(/^T/, "").padStart(5, "0")}` : "T00:00"}`);
  }

  async send() {
    let [imported, present] = [0, 0];
    $("file-import").disabled = true;
    for (let i = 0; i < this.#bets.length; i += 1000) {
      const answer = await call("POST", "/bets/import", { bets: this.#bets.slice(i, i + 1000) });
      if (answer.error) {
        write($("file-said"), `${answer.error} ${counted(imported, "bet")} imported.`);
        $("file-import").disabled = false;
        return tracker.read();
      }
      imported += answer.data.imported;
      present += answer.data.present;
    }
    write($("file-said"), `${counted(imported, "bet")} imported${present ? `; ${present} already recorded` : ""}.`);
    await tracker.read();
  }
}
