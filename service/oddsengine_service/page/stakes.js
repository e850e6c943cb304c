// Stakes: the Kelly share of a bankroll, or a total split for equal payouts.

let stakeMark = 0; // moves when amounts do
const limits = new Map(); // by id of a price: the most that its book takes, where it says so

const stepped = (amount, step = settings.step) => (step > 0 ? Math.round(amount / step) * step : amount);
const lower = (amount, step = settings.step) => (step > 0 ? Math.floor(amount / step + 1e-9) * step : amount); // within a limit
// The step of stakes on a price: the multiple of its venue's that is nearest to the one in the settings.
const stepOf = (price) => (price?.bet_step ? price.bet_step * Math.max(1, Math.round(settings.step / price.bet_step)) : settings.step);
// Which stakes a venue accepts on a price, and how late in play.
const rulesOf = (price) => [
  price?.min_bet && `minimum ${cash(price.min_bet)}`, price?.bet_step && `in steps of ${cash(price.bet_step)}`, price?.bet_delay && `accepted after ${price.bet_delay} s`,
].filter(Boolean).join(", ");
const amounts = new Map();
function cash(amount) {
  const digits = settings.step % 1 || amount % 1 ? 2 : 0;
  const mark = `${settings.currency} ${digits}`;
  const made = () => new Intl.NumberFormat([], {
    ...(settings.currency && { style: "currency", currency: settings.currency, currencyDisplay: "narrowSymbol" }), minimumFractionDigits: digits, maximumFractionDigits: 2,
  });
  return (amounts.get(mark) ?? amounts.set(mark, made()).get(mark)).format(amount);
}

// The share of the bankroll for a +EV bet, and its name: Kelly reduced for the uncertainty of the fair price, or where that is
// unknown, the fraction of full Kelly in the settings.
const kellyOf = (row) => {
  if (row.kelly_shrunk !== null && row.kelly_shrunk !== undefined) return { share: row.kelly_shrunk, name: "Kelly, reduced for uncertainty" };
  if (row.kelly_percent === null || row.kelly_percent === undefined) return null;
  return { share: row.kelly_percent * settings.fraction, name: { 1: "Full Kelly", 0.5: "Half Kelly", 0.25: "Quarter Kelly" }[settings.fraction] ?? `Kelly × ${settings.fraction}` };
};

// The stake on a +EV bet: Kelly's share, at most a share of the bankroll, at most what the book takes; none below its minimum.
function stakeOf(row) {
  const kelly = kellyOf(row);
  if (kelly === null || !settings.bankroll) return null;
  const wanted = settings.bankroll * kelly.share, most = settings.bankroll * settings.most / 100;
  const limit = row.max_bet ?? limits.get(row.odds_id) ?? Infinity;
  const step = stepOf(row), least = row.min_bet ?? 0, whole = stepped(wanted, step);
  const amount = whole > Math.min(most, limit) ? lower(Math.min(most, limit), step) : whole;
  const taken = amount >= least ? amount : 0;
  return { amount: taken, limited: limit < Math.min(whole, most), under: wanted > 0 && taken === 0 ? Math.max(step, least) : 0 };
}

// Growth-optimal stakes on rows that are one bet in several forms: the easier form wins whenever a harder one does.
function jointKelly(rows) {
  const bets = rows.map((row) => {
    const pushed = row.push_probability ?? 0, won = row.fair_probability * (1 - pushed);
    return { won, whole: won + pushed, odds: (row.net_odds ?? row.odds_decimal) - 1 };
  });
  const ends = [...new Set([0, ...bets.flatMap(({ won, whole }) => [won, whole]), 1])].sort((a, b) => a - b);
  const gain = ({ won, whole, odds }, at) => (at < won ? odds : at < whole ? 0 : -1);
  const cases = ends.slice(1).map((end, k) => ({ chance: end - ends[k], gains: bets.map((bet) => gain(bet, (end + ends[k]) / 2)) }));
  const stakes = bets.map(() => 0);
  const left = (gains) => gains.reduce((sum, each, j) => sum + each * stakes[j], 1);
  const slope = (i) => cases.reduce((sum, { chance, gains }) => sum + (chance * gains[i]) / left(gains), 0);
  for (let sweep = 0, moved = 1; sweep < 60 && moved > 1e-7; sweep += 1) {
    moved = 0;
    for (const i of stakes.keys()) {
      const before = stakes[i];
      let [low, high] = [0, 1 - 1e-9 - stakes.reduce((sum, each, j) => sum + (j === i ? 0 : each), 0)];
      for (let step = 0; step < 30; step += 1) {
        stakes[i] = (low + high) / 2;
        [low, high] = slope(i) > 0 ? [stakes[i], high] : [low, stakes[i]];
      }
      stakes[i] = low;
      moved = Math.max(moved, Math.abs(low - before));
    }
  }
  return stakes;
}

// Rows of one event that are one bet, by what they share; a side of the result has a form in several markets.
const RESULT = /(^|_)(moneyline(_3way|_regulation)?|point_spread|puck_line|run_line|draw_no_bet)$/;
const sameBet = ({ row, market, eventId }) => [eventId, row.is_live, row.market_segment, RESULT.test(market) ? "result" : market, row.player_name, row.team_side, row.selection_type].join("|");
const together = new Map(); // what to stake on rows in all, by their ids and odds

// Says of each row with how many others it is one bet, and the share of the bankroll for all of them.
function markSameBets(found) {
  const groups = new Map();
  for (const it of found) {
    it.same = null;
    if (it.kind !== "ev" || !it.row.selection_type || !(it.row.fair_probability > 0) || !kellyOf(it.row)) continue;
    const key = sameBet(it);
    (groups.get(key) ?? groups.set(key, []).get(key)).push(it);
  }
  if (together.size > 500) together.clear();
  for (const group of groups.values()) {
    if (group.length < 2) continue;
    const key = group.map(({ id, row }) => `${id} ${row.odds_decimal} ${row.fair_probability} ${kellyOf(row).share}`).sort().join();
    if (!together.has(key)) {
      const stakes = jointKelly(group.map(({ row }) => row));
      together.set(key, stakes.reduce((sum, stake, i) => sum + stake * (group[i].row.kelly_percent ? kellyOf(group[i].row).share / group[i].row.kelly_percent : 1), 0));
    }
    for (const it of group) it.same = { others: group.length - 1, share: together.get(key) };
  }
}

function sameBetLine({ others, share }) {
  const all = settings.bankroll ? cash(lower(Math.min(settings.bankroll * share, (settings.bankroll * settings.most) / 100))) : percent(100 * share, 1);
  return el("span", { class: "under same", title: `This and ${counted(others, "other row")} are one bet: the same side at other lines, in other markets or at other books. Together they get this stake, not one each.` }, `all ${others + 1}: ${all}`);
}

function stakeCell({ row, same }) {
  const kelly = kellyOf(row);
  if (kelly === null) return [];
  const [share, title] = [percent(100 * kelly.share, 1), `${kelly.name}, as a share of the bankroll`];
  const stake = stakeOf(row);
  if (!stake) return [el("span", { title }, share), same && sameBetLine(same)];
  const about = [stake.limited && "book's limit", settings.unit && !stake.under ? `${(stake.amount / settings.unit).toFixed(1)} u` : `Kelly ${share}`].filter(Boolean).join(", ");
  return [
    el("b", { title: `${kelly.name}: ${share} of the bankroll` }, stake.under ? `under ${cash(stake.under)}` : cash(stake.amount)),
    same ? sameBetLine(same) : el("span", { class: "under", title }, about),
  ];
}

// Kelly stakes side by side: the share of the bankroll, the amount, and which one the lists use.
function kellyTable(row) {
  const used = kellyOf(row);
  if (used === null) return [];
  const rows = [
    ["Full Kelly", row.kelly_percent, "fastest growth, if the fair price is exactly right"],
    ["Half Kelly", row.kelly_percent / 2, "three quarters of that growth, half the swings"],
    ["Quarter Kelly", row.kelly_percent / 4, "common among bettors"],
    ...(row.kelly_shrunk === null || row.kelly_shrunk === undefined ? [] : [["Reduced for uncertainty", row.kelly_shrunk, "full Kelly, less an allowance for error in the fair price"]]),
  ];
  const stake = stakeOf(row), limit = row.max_bet ?? limits.get(row.odds_id);
  const bounds = [rulesOf(row), limit && `the book takes ${cash(limit)}`, settings.bankroll && `at most ${settings.most} % of the bankroll, ${cash((settings.bankroll * settings.most) / 100)}`].filter(Boolean);
  return [
    el("table", { class: "rows kelly" }, el("caption", { class: "unseen" }, "Kelly stakes"), el("tbody", {}, ...rows.map(([name, share, why]) => el(
      "tr", { class: Math.abs(share - used.share) < 1e-12 ? "used" : null }, el("th", { scope: "row" }, name), el("td", { class: "number" }, percent(100 * share)),
      el("td", { class: "number" }, settings.bankroll ? cash(stepped(settings.bankroll * share)) : ""), el("td", { class: "dim" }, why),
    )))),
    !stake && !settings.asked ? "" : el("p", { class: "dim" }, stake ? `Staked: ${stake.under ? `under ${cash(stake.under)}` : cash(stake.amount)}, ${used.name.toLowerCase().replace("kelly", "Kelly")}${bounds.length ? `; limits: ${bounds.join(", ")}` : ""}.` : "Enter a bankroll in Settings to see amounts."),
  ];
}

// Asked for where a stake is first looked at; afterwards it is in the settings.
const bankrollForm = () => el(
  "form", { class: "panel" },
  el("div", { class: "field" }, el("label", { for: "details-bankroll" }, "Your bankroll"), el("input", { id: "details-bankroll", inputmode: "decimal", autocomplete: "off" })),
  el("button", { type: "submit", class: "main" }, "Show my stakes"), el("button", { type: "button", id: "details-bankroll-later" }, "Not now"),
  el("p", { class: "dim" }, "Stakes are shares of it. It stays in this browser; Settings changes it."),
);

// What goes on one leg of an arbitrage, a middle or a low hold.
const legAmount = (share, total = settings.total, price = null) => stepped((total * share) / 100, stepOf(price));
const legStake = (share) => (settings.total ? cash(legAmount(share)) : `${share.toFixed(1)} %`);
