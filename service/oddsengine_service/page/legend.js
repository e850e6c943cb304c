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
  book: "The book with the price; the link opens it. A second book below it belongs to the same operator.",
  odds: "What the book pays.",
  fair: "The price without the books' margin, at which the bet would break even. \"Expected at the close\" is an estimate, from all other books, of the price when the game starts.",
  kelly: "How much of your bankroll to stake: Kelly's share, reduced where the fair price is uncertain. Open a row to enter a bankroll and see amounts.",
  trust: "How sure the EV is, from 0 to 100, and how many independent books agree that the bet is worth it.",
  stands: "The probability that this price is still there ten minutes from now; unknown in play.",
  legs: "One bet on each side: the bet, its book, its odds, and its share of the total stake.",
  size: "The gap between the two lines, and the results on which both bets win.",
  chance: "The probability that both bets win.",
  start: "When the game starts.",
  found: "How long ago the row appeared, and how old its oldest price is.",
};

const aboutColumn = ({ id, name }) => (id === "value" ? ABOUT.value[name] : ABOUT[id]);

// A row in words.
function readAloud({ kind, row, value, legs, game }) {
  const bets = legs.map((leg) => `${leg.selection} at ${called("sportsbooks", leg.books[0])} (${odds(leg.american, leg.decimal)})`).join(" and ");
  const size = Math.abs(value).toFixed(2);
  if (kind === "arbitrage") return `${game}: ${bets}. With the stakes shown, 100 in all come back as ${(100 + value).toFixed(2)}, whichever bet wins.`;
  if (kind === "low_hold") return `${game}: ${bets}. Betting every side costs ${value > 0 ? `${size} of 100` : "nothing"}, whichever bet wins.`;
  if (kind === "middles") return `${game}: ${bets}. Most results win one of the bets, some win both (${percent(100 * row.middle_probability, 1)}): on average that earns ${size} on 100 staked.`;
  if (kind !== "ev") return `${game}: ${bets}. ${KINDS[kind].what} ${spelled(KINDS[kind].measure)}: ${percent(value)}.`;
  const kelly = kellyOf(row);
  return `${game}: ${bets}. The fair price is ${odds(row.no_vig_odds, decimalOf(row.no_vig_odds))}, so 100 staked earns ${size} on average${typeof row.ev_low === "number" ? `, with a 90 % range from ${row.ev_low.toFixed(1).replace("-", "−")} to ${row.ev_high.toFixed(1).replace("-", "−")}` : ""}.${kelly ? ` Kelly stakes ${percent(100 * kelly.share, 1)} of the bankroll.` : ""}`;
}

function drawLegend(it) {
  const columns = KINDS[lists.kind].columns.map((each) => [each.name, aboutColumn(each)]);
  const chips = [["May be old", "A price in the row has not been seen for a while"], ["Terms differ", "The bets are known to settle differently in some case, such as a tie"], ...(lists.kind === "ev" ? Object.values(FLAGS) : [])];
  $("legend").replaceChildren(
    it ? el("p", { class: "example" }, el("b", {}, "An example, the outlined row: "), readAloud(it)) : "",
    el("dl", {}, ...columns.filter(([, meaning]) => meaning).map(([name, meaning]) => el("div", {}, el("dt", {}, name), el("dd", {}, meaning)))),
    el("details", {}, el("summary", {}, "What the labels mean"), el("dl", {}, ...chips.map(([name, meaning]) => el("div", {}, el("dt", {}, el("span", { class: "chip" }, name)), el("dd", {}, meaning))))),
  );
}

// How to read a list, by the example of its first row.
function showLegend(open) {
  $("legend").hidden = !open;
  $("legend-open").setAttribute("aria-expanded", String(open));
  const [first] = open ? lists.chosen() : [];
  lists.example = first?.id ?? "";
  if (open) drawLegend(first);
  draw();
}

// To a first visitor: what this is. On a wide screen, how to read the list as well, once it has a row.
const WIDE = matchMedia("(min-width: 74.01rem)");
let welcoming = !settings.welcomed;
function welcome(found) {
  if (!welcoming || !found.length) return;
  welcoming = false;
  if (WIDE.matches) showLegend(true);
}
function welcomed() {
  keepSettings({ welcomed: true });
  $("welcome").hidden = true;
  showLegend(false);
  $("panel-list").focus({ preventScroll: true });
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
