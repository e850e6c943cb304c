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

// Down to a whole step, so that a stake is never more than was asked for.
const stepped = (amount) => (money.step > 0 ? Math.floor(amount / money.step + 1e-9) * money.step : amount);
const cash = (amount) => amount.toLocaleString([], { minimumFractionDigits: money.step % 1 || amount % 1 ? 2 : 0, maximumFractionDigits: 2 });
const kellyOf = (row) => row.kelly_shrunk ?? row.kelly_percent ?? null;

// The stake on a +EV bet: a fraction of Kelly's, at most a share of the bankroll, at most what the book takes.
function stakeOf(row) {
  const kelly = kellyOf(row);
  if (kelly === null || !money.bankroll) return null;
  const wanted = money.bankroll * Math.min(kelly * money.fraction, money.most / 100);
  const limit = row.max_bet ?? limits.get(row.odds_id) ?? Infinity;
  return { amount: stepped(Math.min(wanted, limit)), limited: limit < wanted };
}

function stakeCell({ row }) {
  const kelly = kellyOf(row);
  if (kelly === null) return [];
  const full = `Kelly ${percent(100 * kelly, 1)}`;
  const stake = stakeOf(row);
  if (!stake) return [el("span", { title: "Full Kelly, as a share of the bankroll" }, percent(100 * kelly, 1))];
  return [
    el("b", { title: full }, cash(stake.amount)),
    el("span", { class: "under" }, [stake.limited ? "book's limit" : "", money.unit ? `${(stake.amount / money.unit).toFixed(1)} u` : full].filter(Boolean).join(", ")),
  ];
}

// What goes on one leg of an arbitrage, a middle or a low hold.
const legAmount = (share) => (money.step > 0 ? Math.round((money.total * share) / 100 / money.step) * money.step : (money.total * share) / 100);
const legStake = (share) => (money.total ? cash(legAmount(share)) : `${share.toFixed(1)} %`);
