// The legend: what columns and chips mean.

// Flags of +EV rows: the text of the chip, and its meaning.
const FLAGS = {
  one_reference: ["One reference", "One sharp book is all there is to compare the price with"],
  thin: ["Two books", "Only two other books quote this line, and no sharp one"],
  no_sharp: ["No sharp book", "No sharp book quotes this three-way market; 40 % of the EV is shown"],
  early: ["Early", "The game starts in more than three days; prices are less certain"],
  long: ["Long odds", "Odds of 4.00 (+300) or longer: small errors in the fair price matter more"],
  total: ["Over/under", "Three quarters of the EV is shown: estimates for over/unders have been too high"],
  unmeasured: ["Untested market", "The fair price is estimated as usual, but has not been tested against closing prices in this kind of market"],
  suspect: ["Suspect", "The price is far better than those of the other books, and is probably an error; or one exchange is all there is to compare it with"],
  one_sided: ["One-sided", "The fair price needs books that quote one side only, with margins estimated from similar prices in the same game; three fifths of the EV is shown"],
  live: ["In play", "In play the fair price is not calibrated; a third of an EV below 6 % is shown"],
};
const flagChip = (flag) => {
  const [name, meaning] = FLAGS[flag.toLowerCase()] ?? [spelled(flag.toLowerCase()), ""];
  return el("span", { class: "chip", title: meaning }, name);
};

const ABOUT = {
  value: {
    EV: "The bet's average profit in percent of the stake, if the fair price is right. Below it, the 90 % range of the EV.",
    Profit: "The guaranteed profit in percent of the total stake.",
    Hold: "What betting every side at its best price costs; below 0 it is an arbitrage.",
  },
  game: "The bet, its game, market and league. Open a row for the price history, all books and calculators.",
  book: "The book with the price; the link opens it. A second book below it offers the same price and belongs to the same operator.",
  odds: "The price at the book.",
  fair: "The no-vig price, at which the bet would break even. \"At the close\" is an estimate of the closing price from all other books.",
  kelly: "The Kelly stake, reduced for the uncertainty of the fair price. To see amounts, enter a bankroll in Settings.",
  trust: "Confidence in the row, from 0 to 100, and how many independent books agree that the bet is +EV.",
  stands: "The probability that the price is still available in ten minutes.",
  legs: "One bet on each side: the bet, its book, its odds, and its share of the total stake.",
  size: "The gap between the two lines, and the results on which both bets win.",
  chance: "The probability that both bets win.",
  start: "When the game starts.",
  found: "How long ago the row appeared, and how old its oldest price is.",
};

function drawLegend() {
  const columns = KINDS[lists.kind].columns.map((each) => [each.name, each.id === "value" ? ABOUT.value[each.name] : ABOUT[each.id]]);
  const chips = [["May be old", "A price in the row has not been seen for a while"], ["Terms differ", "The bets are known to settle differently in some case, such as a tie"], ...(lists.kind === "ev" ? Object.values(FLAGS) : [])];
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

// On a touch screen, a tap shows the tooltip.
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
