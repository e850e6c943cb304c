// Stakes: the Kelly share of a bankroll, or a total split for equal payouts.

let stakeMark = 0; // moves when amounts do
const limits = new Map(); // by id of a price: the most that its book takes, where it says so

const stepped = (amount) => (settings.step > 0 ? Math.round(amount / settings.step) * settings.step : amount);
const lower = (amount) => (settings.step > 0 ? Math.floor(amount / settings.step + 1e-9) * settings.step : amount); // within a limit
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

// The stake on a +EV bet: Kelly's share, at most a share of the bankroll, at most what the book takes.
function stakeOf(row) {
  const kelly = kellyOf(row);
  if (kelly === null || !settings.bankroll) return null;
  const wanted = settings.bankroll * kelly.share, most = settings.bankroll * settings.most / 100;
  const limit = row.max_bet ?? limits.get(row.odds_id) ?? Infinity;
  const amount = stepped(wanted) > Math.min(most, limit) ? lower(Math.min(most, limit)) : stepped(wanted);
  return { amount, limited: limit < Math.min(stepped(wanted), most), under: wanted > 0 && amount === 0 };
}

function stakeCell({ row }) {
  const kelly = kellyOf(row);
  if (kelly === null) return [];
  const [share, title] = [percent(100 * kelly.share, 1), `${kelly.name}, as a share of the bankroll`];
  const stake = stakeOf(row);
  if (!stake) return [el("span", { title }, share)];
  return [
    el("b", { title: `${kelly.name}: ${share} of the bankroll` }, stake.under ? `under ${cash(settings.step)}` : cash(stake.amount)),
    el("span", { class: "under", title }, [stake.limited ? "book's limit" : "", settings.unit && !stake.under ? `${(stake.amount / settings.unit).toFixed(1)} u` : `Kelly ${share}`].filter(Boolean).join(", ")),
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
  const bounds = [limit && `the book takes ${cash(limit)}`, settings.bankroll && `at most ${settings.most} % of the bankroll, ${cash((settings.bankroll * settings.most) / 100)}`].filter(Boolean);
  return [
    el("table", { class: "rows kelly" }, el("caption", { class: "unseen" }, "Kelly stakes"), el("tbody", {}, ...rows.map(([name, share, why]) => el(
      "tr", { class: Math.abs(share - used.share) < 1e-12 ? "used" : null }, el("th", { scope: "row" }, name), el("td", { class: "number" }, percent(100 * share)),
      el("td", { class: "number" }, settings.bankroll ? cash(stepped(settings.bankroll * share)) : ""), el("td", { class: "dim" }, why),
    )))),
    el("p", { class: "dim" }, stake ? `Staked: ${stake.under ? `under ${cash(settings.step)}` : cash(stake.amount)}, ${used.name.toLowerCase().replace("kelly", "Kelly")}${bounds.length ? `; limits: ${bounds.join(", ")}` : ""}.` : "Enter a bankroll in Settings to see amounts."),
  ];
}

// What goes on one leg of an arbitrage, a middle or a low hold.
const legAmount = (share, total = settings.total) => stepped((total * share) / 100);
const legStake = (share) => (settings.total ? cash(legAmount(share)) : `${share.toFixed(1)} %`);
