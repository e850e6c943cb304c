// The demo's choice: the simulated market, or live prediction markets, which the server reads once they are chosen.

const LIVE_AT = document.body.dataset.live; // where the live ones are; empty if this is no demo
const OF_LIVE = LIVE_AT !== "" && document.body.dataset.market !== "simulated"; // this page shows them
const STATE_MS = { starting: 700, others: 10_000 };

class Markets {
  #readAt = 0;
  #state = { state: "off", leagues: [] };
  #chosen = false; // on this page, so that it goes on to the live ones once there are games
  #asking = false;

  begin() {
    $("markets").hidden = !LIVE_AT;
    if (!LIVE_AT) return;
    $("market-simulated").setAttribute("aria-pressed", String(!OF_LIVE));
    $("market-live").setAttribute("aria-pressed", String(OF_LIVE));
    this.#read();
  }

  look() {
    const { state } = this.#state;
    if (!LIVE_AT || this.#asking || !(OF_LIVE || state === "starting")) return;
    if (Date.now() - this.#readAt > (state === "starting" ? STATE_MS.starting : STATE_MS.others)) this.#read();
  }

  choose() {
    this.#chosen = true;
    this.#state = { ...this.#state, state: "starting", league: $("market-league").value };
    this.#render(); // the answer comes once what ran before has ended
    this.#read("POST");
  }

  async #read(method = "GET") {
    this.#readAt = Date.now();
    this.#asking = true;
    const league = method === "POST" ? `?league=${encodeURIComponent($("market-league").value)}` : "";
    try {
      const answer = await fetch(`${LIVE_AT}/state${league}`, { method });
      if (answer.ok) this.#state = this.#own((await answer.json()).data);
      else this.#state = { ...this.#state, state: "failed", reason: (await refusal(answer)).text };
    } catch {
      this.#state = { ...this.#state, state: "failed", reason: "the server cannot be reached" };
    }
    this.#asking = false;
    if (this.#chosen && this.#state.state === "ready") return location.assign(`${LIVE_AT}/?list=arbitrage`); // of two exchanges, the list with most to see
    this.#render();
  }

  // A failure is of the visitor who made the choice; others begin with what they can choose.
  #own(said) {
    return said.state === "failed" && !this.#chosen && !OF_LIVE ? { ...said, state: "off", reason: "" } : said;
  }

  // Close what is said of a failure.
  close() {
    this.#chosen = false;
    this.#state = { ...this.#state, state: "off", reason: "" };
    this.#render();
    $("market-live").focus();
  }

  #render() {
    const { state, league, leagues, games, reason } = this.#state;
    const select = $("market-league");
    if (select.options.length !== leagues.length) choose(select, [["", leagues.map((each) => [each.id, each.name])]], league || leagues[0]?.id);
    const name = leagues.find((each) => each.id === league)?.name ?? "";
    const said = {
      off: OF_LIVE ? `${(reason || "stopped").replace(/^./, (c) => c.toUpperCase())}. Choose them again to go on.` : "Kalshi and Polymarket; no key is needed.",
      starting: `Reading the ${name} games of Kalshi and Polymarket…`,
      ready: OF_LIVE ? `${counted(games, `${name} game`)}, from Kalshi and Polymarket` : `${counted(games, `${name} game`)}.`,
      failed: `No live prices. ${reason.replace(/\.$/, "")}.${OF_LIVE ? "" : " This is still the simulated market."}`,
    };
    $("market-live").disabled = state === "starting" || (OF_LIVE && state === "ready");
    select.disabled = state === "starting";
    $("market-said").classList.toggle("error", state === "failed");
    $("market-close").hidden = state !== "failed" || OF_LIVE;
    write($("market-said"), said[state]);
  }
}
const markets = new Markets();
