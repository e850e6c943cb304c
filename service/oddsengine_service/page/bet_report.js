// Results of bets: cumulative profit, CLV by month, and figures by book, market and month.

// Running totals, from 0: profit, expected profit when placed, and at the close with its range.
function profitChart(points, wide) {
  const [width, height, left, bottom] = [Math.max(300, wide), 220, 62, 22];
  const closing = points.filter((each) => each.closing !== null);
  const values = [0, ...points.map((each) => each.profit), ...points.map((each) => each.expected ?? 0), ...closing.flatMap((each) => [each.closing - each.error, each.closing + each.error])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(high - low, 1);
  const x = (i) => left + ((i + 1) / points.length) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / room) * (height - bottom - 16);
  const path = (name) => (points.some((each) => each[name] !== null) ? `M${left} ${y(0).toFixed(1)}` : "") + points.map((each, i) => (each[name] === null ? "" : `L${x(i).toFixed(1)} ${y(each[name]).toFixed(1)}`)).join("");
  const places = points.map((each, i) => [each, i]).filter(([each]) => each.closing !== null);
  const edge = (sign, list) => list.map(([each, i]) => `${x(i).toFixed(1)} ${y(each.closing + sign * each.error).toFixed(1)}`);
  const band = places.length ? `M${left} ${y(0).toFixed(1)}L${[...edge(1, places), ...edge(-1, [...places].reverse())].join("L")}Z` : "";
  const last = points.at(-1);
  const words = `Cumulative profit: ${cash(last.profit)}${last.closing === null ? "" : `; expected at closing prices ${cash(last.closing)}, plus or minus ${cash(last.error)}`}`;
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": words },
    ...[low, 0, high].filter((value, i, all) => all.indexOf(value) === i && (value === 0 || Math.abs(value) > room / 8)).flatMap((value) => [
      svg("line", { class: "grid", x1: left, x2: width - 8, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, cash(Math.round(value)).replace("-", "−")),
    ]),
    ...datesBelow(points.map((each, i) => ({ at: Date.parse(each.at), x: x(i) })), height - 6),
    svg("path", { class: "band", d: band }), svg("path", { class: "book-line", d: path("expected") }), svg("path", { class: "fair-line", d: path("closing") }), svg("path", { class: "leg-line", d: path("profit") }),
  );
}

// The mean CLV of each month with its 90 % error bar.
function clvChart(months, wide) {
  const shown = months.filter((each) => each.clv_percent !== null);
  const all = months.reduce((sum, each) => sum + each.count, 0);
  if (!shown.length) return el("p", { class: "dim" }, `No settled bet has a closing price yet. ${counted(all, "bet")} recorded.`);
  const points = shown.map((each) => ({ group: each.group, value: each.clv_percent, error: each.clv_error, title: `${each.group}: ${percent(each.clv_percent)}, ${counted(each.with_close, "bet")}` }));
  return meansChart(points, wide, `CLV by month: ${shown.map((each) => `${each.group} ${percent(each.clv_percent, 1)}`).join(", ")}`);
}

class BetReport {
  #report = null;

  async read(query) {
    const mine = key;
    const found = await ask(`/bets/report?${query}`);
    if (key !== mine) return;
    this.#report = found?.data ?? null;
    this.render();
  }

  clear() {
    this.#report = null;
    this.render();
  }

  render() {
    const report = this.#report;
    $("bets-report").hidden = !report?.sportsbooks.length;
    if (!report?.sportsbooks.length) return;
    const wide = $("bets-course").clientWidth;
    const key = (name, words) => [el("span", { class: name }), ` ${words}  `];
    $("bets-course").replaceChildren(...(report.course.length ? [
      profitChart(report.course, wide),
      el("p", { class: "dim legend" }, ...key("leg-key", "profit"), ...key("fair-key", "expected at closing prices, with its 90 % range"), ...key("book-key", "expected when placed"), "all of the same bets: one for which no expected profit is known counts with its profit"),
    ] : [el("p", { class: "dim" }, "No settled bets yet.")]));
    $("bets-clv").replaceChildren(clvChart(report.months, wide));
    const what = { sportsbooks: (group) => called("sportsbooks", group), markets: (group) => called("markets", group), months: (group) => group };
    const by = $("bets-by").value;
    const fewer = (count, { settled }) => count > 0 && count < settled && el("span", { class: "under" }, `${count} of the ${settled} bets`);
    const ranged = (value, error) => (value === null ? "–" : `${percent(value, 1)}${error === null ? "" : ` ± ${error.toFixed(1)}`}`);
    $("bets-groups").tBodies[0].replaceChildren(...report[by].map((each) => el(
      "tr", {}, el("th", { scope: "row" }, what[by](each.group)), el("td", { class: "number" }, String(each.settled)), el("td", { class: "number" }, cash(each.staked)),
      el("td", { class: `number ${good(each.profit)}` }, cash(each.profit).replace("-", "−")), el("td", { class: "number" }, each.roi_percent === null ? "–" : percent(each.roi_percent, 1)),
      el("td", { class: "number" }, each.ev_percent === null ? "–" : percent(each.ev_percent, 1), fewer(each.with_fair, each)), el("td", { class: "number" }, ranged(each.clv_percent, each.clv_error), fewer(each.with_close, each)),
      el("td", { class: "number" }, String(each.open), each.open > 0 && el("span", { class: "under" }, `${cash(each.open_staked)} staked`)),
    )));
  }
}
