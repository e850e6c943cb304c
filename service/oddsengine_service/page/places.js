// Where a price stands on the board of an event: its market, its row, its words.

const OUTCOMES = ["home", "draw", "away", "over", "under", "yes", "no"];
const MAIN = ["moneyline|full_game", "moneyline_3way|full_game", "spread|full_game", "total|full_game"];
const ALL_MAIN = "main";
const rank = (market) => (MAIN.includes(market) ? MAIN.indexOf(market) : MAIN.length);

function marketKey(row) {
  const segment = row.market_segment ?? "";
  const plain = row.market_type.startsWith(`${segment}_`) ? row.market_type.slice(segment.length + 1) : row.market_type;
  return `${families[plain] ?? plain}|${segment}`;
}

// `drawn` says which books price the draw of a market: without one, a side's price is of another bet.
function place(row, drawn) {
  const market = marketKey(row);
  const type = row.selection_type ?? "";
  const subject = row.player_name ?? (row.team_side ? row[`${row.team_side}_team`] ?? row.team_side : "");
  const line = row.line === null || row.line === undefined ? null : row.line;
  const anchor = line === null ? null : type === "away" ? -line : line;
  const known = OUTCOMES.includes(type);
  let label = row.selection;
  const refunds = drawn.has(market) && !drawn.has(`${market} ${row.sportsbook}`) && (type === "home" || type === "away");
  if (type === "home" || type === "away") label = row[`${type}_team`] + (line === null ? "" : ` ${signed(line)}`);
  else if (type === "draw") label = "Draw";
  else if (type === "over" || type === "under") label = `${subject ? `${subject} ` : ""}${spelled(type)} ${line ?? ""}`;
  if (refunds) label += " (no draw price)";
  const section = `${market}|${refunds}|${subject}`;
  return {
    key: [section, known ? type : row.selection.toLowerCase(), anchor].join("|"), group: `${section}|${anchor}`,
    section, rank: rank(market), anchor, order: known ? OUTCOMES.indexOf(type) : OUTCOMES.length, label,
  };
}
