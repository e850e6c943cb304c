// Money: what to stake of a bankroll, by Kelly or in equal payouts.

const MONEY = "oddsengine.money";
const money = { bankroll: 0, fraction: 0.25, most: 5, unit: 0, step: 1, total: 0, ...JSON.parse(localStorage.getItem(MONEY) ?? "{}") };
let stakeMark = 0; // moves when amounts do
const limits = new Map(); // by id of a price: the most that its book takes, where it says so

function keepMoney(changes) {
  Object.assign(money, changes);
  localStorage.setItem(MONEY, JSON.stringify(money));
  stakeMark += 1;
}

const stepped = (amount) => (money.step > 0 ? Math.round(amount / money.step) * money.step : amount);
const lower = (amount) => (money.step > 0 ? Math.floor(amount / money.step + 1e-9) * money.step : amount); // within a limit
const cash = (amount) => amount.toLocaleString([], { minimumFractionDigits: money.step % 1 || amount % 1 ? 2 : 0, maximumFractionDigits: 2 });

// The share of the bankroll for a +EV bet, and what it is called. Kelly's share reduced for the uncertainty of the fair price is
// staked as it is; where that uncertainty is unknown, a fraction of full Kelly.
const kellyOf = (row) => {
  if (row.kelly_shrunk !== null && row.kelly_shrunk !== undefined) return { share: row.kelly_shrunk, name: "Kelly, reduced for uncertainty" };
  if (row.kelly_percent === null || row.kelly_percent === undefined) return null;
  return { share: row.kelly_percent * money.fraction, name: { 1: "Full Kelly", 0.5: "Half Kelly", 0.25: "Quarter Kelly" }[money.fraction] ?? `Kelly × ${money.fraction}` };
};

// The stake on a +EV bet: Kelly's share, at most a share of the bankroll, at most what the book takes.
function stakeOf(row) {
  const kelly = kellyOf(row);
  if (kelly === null || !money.bankroll) return null;
  const wanted = money.bankroll * kelly.share, most = money.bankroll * money.most / 100;
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
    el("b", { title: `${kelly.name}: ${share} of the bankroll` }, stake.under ? `under ${cash(money.step)}` : cash(stake.amount)),
    el("span", { class: "under", title }, [stake.limited ? "book's limit" : "", money.unit && !stake.under ? `${(stake.amount / money.unit).toFixed(1)} u` : `Kelly ${share}`].filter(Boolean).join(", ")),
  ];
}

// What goes on one leg of an arbitrage, a middle or a low hold.
const legAmount = (share) => (money.step > 0 ? Math.round((money.total * share) / 100 / money.step) * money.step : (money.total * share) / 100);
const legStake = (share) => (money.total ? cash(legAmount(share)) : `${share.toFixed(1)} %`);
