// Money: what to stake of a bankroll, by Kelly or in equal payouts.

let stakeMark = 0; // moves when amounts do
const limits = new Map(); // by id of a price: the most that its book takes, where it says so

const stepped = (amount) => (settings.step > 0 ? Math.round(amount / settings.step) * settings.step : amount);
const lower = (amount) => (settings.step > 0 ? Math.floor(amount / settings.step + 1e-9) * settings.step : amount); // within a limit
const cash = (amount) => amount.toLocaleString([], {
  ...(settings.currency && { style: "currency", currency: settings.currency, currencyDisplay: "narrowSymbol" }),
  minimumFractionDigits: settings.step % 1 || amount % 1 ? 2 : 0, maximumFractionDigits: 2,
});

// The share of the bankroll for a +EV bet, and what it is called. Kelly's share reduced for the uncertainty of the fair price is
// staked as it is; where that uncertainty is unknown, a fraction of full Kelly.
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

// What goes on one leg of an arbitrage, a middle or a low hold.
const legAmount = (share) => (settings.step > 0 ? Math.round((settings.total * share) / 100 / settings.step) * settings.step : (settings.total * share) / 100);
const legStake = (share) => (settings.total ? cash(legAmount(share)) : `${share.toFixed(1)} %`);
