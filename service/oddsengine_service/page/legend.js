// What the words of the lists mean, for those who ask.

// Flags of +EV rows: what a chip says, and what that means.
const FLAGS = {
  one_reference: ["One reference", "One sharp book is all that the price can be compared with"],
  thin: ["Two books", "Only two other books quote this line, and no sharp one"],
  no_sharp: ["No sharp book", "No sharp book quotes this three-way market; less than half of the EV is counted"],
  early: ["Early", "The game starts in more than three days; prices are less certain"],
  long: ["Long odds", "Odds of 4.00 (+300) or more: small errors of the fair price matter more"],
  total: ["Over/under", "Three quarters of the EV are shown: that is what such bets were worth at the close"],
  unmeasured: ["Untested market", "The fair price is made as elsewhere, but has not been tested against closing prices in this kind of market"],
  suspect: ["Suspect", "The price is far better than those of the other books, and is probably an error"],
  one_sided: ["One-sided", "No book quotes the other side; the margin is that which the books take elsewhere in the game"],
  live: ["In play", "In play the fair price has not been tested; a third of the EV is shown"],
};
const flagChip = (flag) => {
  const [name, meaning] = FLAGS[flag.toLowerCase()] ?? [spelled(flag.toLowerCase()), ""];
  return el("span", { class: "chip", title: meaning }, name);
};

const ABOUT = {
  value: {
    EV: "What the bet wins on average, in percent of the stake, if the fair price is right. Below it, the range in which the EV lies with a probability of 90 %.",
    Profit: "What the bets win together, whatever happens, in percent of the money staked.",
    Hold: "What the books keep if every side is bet at its best price; below 0 it is an arbitrage.",
  },
  game: "The bet, its game, market and league. Open a row for the price history, all books and calculators.",
  book: "Where the price is; the link leads to the book. A second book below has the same price from the same operator.",
  odds: "The price at the book.",
  fair: "The price at which the bet would be worth nothing, without any book's margin. \"At the close\" is an estimate of the closing price from all other books.",
  kelly: "How much to stake: Kelly's share of the bankroll, reduced for the uncertainty of the fair price. Amounts need a bankroll, in Settings.",
  trust: "How certain the row is, from 0 to 100, and how many independent books agree that the bet has a positive EV.",
  stands: "How likely it is that this price is still there in ten minutes.",
  legs: "One bet on each side: the bet, its book, its odds, and its share of the total stake.",
  size: "How far the two lines are apart, and the results on which both bets win.",
  chance: "How likely it is that both bets win.",
  start: "When the game starts.",
  found: "How long ago the row appeared, and how old its oldest price is.",
};

function drawLegend() {
  const columns = KINDS[lists.kind].columns.map((each) => [each.name, each.id === "value" ? ABOUT.value[each.name] : ABOUT[each.id]]);
  const chips = [["May be old", "A price of the row has not been seen for a while"], ["Terms differ", "The bets are known to settle differently in some case, such as a tie"], ...(lists.kind === "ev" ? Object.values(FLAGS) : [])];
  $("legend").replaceChildren(
    el("dl", {}, ...columns.filter(([, meaning]) => meaning).flatMap(([name, meaning]) => [el("dt", {}, name), el("dd", {}, meaning)])),
    el("dl", {}, ...chips.flatMap(([name, meaning]) => [el("dt", {}, el("span", { class: "chip" }, name)), el("dd", {}, meaning)])),
  );
}

function showLegend(open) {
  $("legend").hidden = !open;
  $("legend-open").setAttribute("aria-expanded", String(open));
  if (open) drawLegend();
}

// Where nothing hovers, a tap says what hovering would.
function tapped(event) {
  $("tip").hidden = true;
  if (event.pointerType === "mouse" || !event.pointerType) return;
  const node = event.target.closest("[title]");
  if (!node?.title || node.closest("a, button, input, select, label")) return;
  event.stopPropagation();
  write($("tip"), node.title);
  $("tip").hidden = false;
  const at = node.getBoundingClientRect();
  $("tip").style.top = `${Math.min(at.bottom + 6, innerHeight - $("tip").offsetHeight - 8)}px`;
  $("tip").style.left = `${Math.max(8, Math.min(at.left, innerWidth - $("tip").offsetWidth - 8))}px`;
}
