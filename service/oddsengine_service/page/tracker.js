// The tracker: placed bets, their closing lines, results and profit.

const RESULTS = [["", "Open"], ["won", "Won"], ["half_won", "Half won"], ["push", "Push"], ["half_lost", "Half lost"], ["lost", "Lost"], ["void", "Void"]];

// When a bet was placed: how long ago, or the day.
const placedAt = (text) => (clock() - Date.parse(text) < 2 * 86_400_000 ? past(text) : el("time", { datetime: text, title: local(text) }, local(text, { year: "numeric", month: "short", day: "numeric" })));

class Tracker {
  bets = [];
  #sure = ""; // id of the bet whose deletion was asked for
  meta = null;
  page = 0;

  // The filters of this tab as query parameters.
  query() {
    const query = new URLSearchParams();
    const day = (id, more) => { const at = new Date(`${$(id).value}T00:00`); at.setDate(at.getDate() + more); return at.toISOString(); };
    if ($("bets-status").value) query.set("status", $("bets-status").value);
    if ($("bets-since").value) query.set("since", day("bets-since", 0));
    if ($("bets-until").value) query.set("until", day("bets-until", 1));
    if ($("bets-book").value) query.set("sportsbook", $("bets-book").value);
    if ($("bets-market").value) query.set("market", $("bets-market").value);
    if ($("bets-find").value.trim()) query.set("q", $("bets-find").value.trim());
    return query.toString();
  }

  async read() {
    const mine = key;
    const query = this.query();
    choose($("bets-book"), [["", [["", "All"], ...byName(names.sportsbooks)]]], $("bets-book").value);
    choose($("bets-market"), [["", [["", "All"], ...Object.keys(categories).map((id) => [id, spelled(id)])]], ["Markets", byName(names.markets)]], $("bets-market").value);
    const found = await ask(`/bets?limit=200&offset=${200 * this.page}&${query}`);
    if (tab === "bets") report.read(query);
    if (key !== mine || !found) return;
    this.bets = found.data;
    this.meta = found.meta;
    this.more = found.pagination.has_more;
    placedIds = new Set([...placedIds, ...found.data.map((bet) => bet.group)]);
    stakeMark += 1;
    this.render();
  }

  render() {
    const sum = this.meta?.summary;
    const figure = (name, ...values) => el("div", {}, el("dt", {}, name), el("dd", {}, ...values));
    const signedCash = (value) => el("span", { class: good(value) }, `${value < 0 ? "−" : value > 0 ? "+" : ""}${cash(Math.abs(value))}`);
    const rows = (figures) => figures.filter(([, each]) => each.length).map(([name, each]) => el("div", { class: "figures", role: "group", "aria-label": name }, el("b", {}, name), el("dl", { class: "figures" }, ...each)));
    $("bets-summary").replaceChildren(...rows(!sum?.count ? [] : [
      ["Settled", [
        figure("Bets", sum.settled.toLocaleString()), figure("Staked", cash(sum.staked)), figure("Profit", signedCash(sum.profit)),
        figure("ROI", sum.roi_percent === null ? "–" : percent(sum.roi_percent, 1)), figure("Expected profit", signedCash(sum.expected), sum.with_fair < sum.settled && el("span", { class: "under" }, `of ${counted(sum.with_fair, "bet")}, which made ${cash(sum.profit_with_fair).replace("-", "−")}`)),
      ]],
      ["Open", sum.open ? [figure("Bets", sum.open.toLocaleString()), figure("Staked", cash(sum.open_staked)), figure("Expected profit", signedCash(sum.open_expected))] : []],
      ["With a closing line", sum.with_close ? [
        figure("Bets", sum.with_close.toLocaleString()), figure("Closing line value", percent(sum.avg_clv_percent)), figure("Beat the close", percent(100 * sum.beat_close, 0)),
      ] : []],
    ]));
    const body = $("bets-table").tBodies[0];
    if (body.contains(document.activeElement) && document.activeElement.matches("select, input")) return; // somebody chooses
    body.replaceChildren(...this.bets.map((bet) => this.#row(bet)));
    if (!this.bets.length) body.append(el("tr", { class: "empty" }, el("td", { colspan: 9 }, this.query() ? "No bets match these filters." : "No bets yet. Open a row in a list and mark it as placed, add a bet, or import a file.")));
    $("bets-more").hidden = !this.more && !this.page;
  }

  #row(bet) {
    const label = `Result of ${bet.selection}`;
    const result = el("select", { "data-bet": bet.id, "aria-label": label }, ...RESULTS.map(([value, name]) => el("option", { value }, name)));
    result.value = bet.result ?? "";
    return el(
      "tr", { "data-id": bet.id },
      el("td", { "data-label": "Placed" }, placedAt(bet.placed_at)),
      el("td", { class: "whole" }, el("span", { class: "bet" }, wording(bet, bet.player_name, bet)), el("span", { class: "under" }, [bet.away_team && `${bet.away_team} @ ${bet.home_team}`, called("markets", bet.market_type)].filter(Boolean).join(" · ")), bet.note && el("span", { class: "under note" }, bet.note)),
      el("td", {}, called("sportsbooks", bet.sportsbook)),
      el("td", { class: "number" }, el("b", {}, oddsText(bet.odds_decimal)), bet.ev_percent !== null && el("span", { class: "under" }, `EV ${percent(bet.ev_percent, 1)}`)),
      el("td", { class: "number", "data-label": "Stake" }, cash(bet.stake)),
      el("td", { class: "number", "data-label": "Close" }, bet.closing_odds ? oddsText(bet.closing_odds) : bet.closing_probability ? "" : "–", bet.closing_probability && el("span", { class: "under" }, `fair ${oddsText(1 / bet.closing_probability)}`), bet.no_close && el("span", { class: "under" }, `none: ${bet.no_close}`)),
      el("td", { class: `number ${good(bet.clv_percent)}`, "data-label": "CLV" }, bet.clv_percent === null ? "–" : percent(bet.clv_percent, 1)),
      el("td", {}, result, bet.graded_by === "score" && el("span", { class: "under" }, `${bet.away_score}–${bet.home_score}, by score`)),
      el("td", { class: `number ${good(bet.profit)}`, "data-label": "Profit" }, bet.profit === null ? "–" : cash(bet.profit).replace("-", "−"), el("span", { class: "under" }, el("button", { type: "button", class: "plain remove", "data-edit": bet.id, "aria-label": `Edit ${bet.selection}` }, "Edit"), el("button", { type: "button", class: "plain remove", "data-remove": bet.id, "aria-label": `${this.#sure === bet.id ? "Delete for good:" : "Delete"} ${bet.selection}` }, this.#sure === bet.id ? "Delete for good" : "Delete"))),
    );
  }

  async settle(id, result) {
    const answer = await call("PATCH", `/bets/${id}`, { result: result || null });
    write($("bets-said"), answer.error ?? "Saved.");
    document.activeElement.blur();
    await this.read();
  }

  // A first click asks, a second one deletes.
  async remove(id) {
    if (this.#sure !== id) {
      this.#sure = id;
      return this.render();
    }
    this.#sure = "";
    const answer = await call("DELETE", `/bets/${id}`);
    write($("bets-said"), answer.error ?? "Deleted.");
    await this.read();
    $("panel-bets").focus({ preventScroll: true });
  }

  async download() {
    const answer = await fetch(`${BASE}/bets?format=csv&${this.query()}`, { headers: { "X-API-Key": key } });
    if (!answer.ok) return write($("bets-said"), (await refusal(answer)).text);
    const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: "bets.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  }
}
